// SPDX-License-Identifier: Apache-2.0
//
// Launchers of primitive/compact.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {
namespace cuda {

struct PlacesProblem {
  int ndim;
  const int64_t* dims;  // on the host, outermost first
  int64_t count;
};
size_t CompactWorkspaceBytes(int64_t n);
cudaError_t LaunchPlaces(DType dtype, const PlacesProblem&, const void* mask, int64_t* y,
                         void* workspace, cudaStream_t);
cudaError_t LaunchMaskedTake(int item, int64_t n, const void* mask, const void* x, int64_t count,
                             void* y, void* workspace, cudaStream_t);
cudaError_t LaunchMaskedPut(int item, int64_t n, const void* mask, const void* x, const void* src,
                            int64_t count, void* y, void* workspace, cudaStream_t);

}  // namespace cuda
}  // namespace oneflow_lite
