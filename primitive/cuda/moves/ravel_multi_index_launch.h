// SPDX-License-Identifier: Apache-2.0
//
// Launcher of primitive/ravel_multi_index.h.
#pragma once

#include <cuda_runtime_api.h>

#include "primitive/cuda/strided/strided.h"

namespace oneflow_lite {
namespace cuda {

inline constexpr int kMostIndices = 4;  // of a launch

struct MultiIndexDims {
  int count;
  bool continues;  // out has the places of the dims before
  const int64_t* index[kMostIndices];
  int64_t size[kMostIndices];
};

// Operands: the indices, out. `no_place` goes where an index lies outside its dim.
cudaError_t LaunchRavelMultiIndex(const Strided<kMostIndices + 1>& g, const MultiIndexDims& d,
                                  int64_t no_place, int64_t* out, cudaStream_t stream);

}  // namespace cuda
}  // namespace oneflow_lite
