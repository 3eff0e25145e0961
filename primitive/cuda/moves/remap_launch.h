// SPDX-License-Identifier: Apache-2.0
//
// Launchers of primitive/remap.h. Null where there is no code for the dtype.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/remap_kinds.h"

namespace oneflow_lite {
namespace cuda {

// Elements of `item` bytes; `fill`: 16 bytes of them.
struct FillElements {
  uint32_t words[4];
};
cudaError_t LaunchRemap(int item, const RemapShape&, const FillElements& fill, const void* x,
                        void* y, cudaStream_t);
using RemapBackwardLauncher = cudaError_t (*)(const RemapShape&, const void* dy, void* dx,
                                              cudaStream_t);
RemapBackwardLauncher FindRemapBackward(DType dtype);

struct TriangleProblem {
  int64_t matrices, rows, cols, diagonal;
  bool lower;
};
cudaError_t LaunchTriangle(int item, const TriangleProblem&, const void* x, void* y, cudaStream_t);

}  // namespace cuda
}  // namespace oneflow_lite
