// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/moves/ravel_multi_index_launch.h"
#include "primitive/cuda/strided/elements.cuh"
#include "primitive/places.h"

namespace oneflow_lite {
namespace cuda {
namespace {

struct Ravel {
  MultiIndexDims d;
  int64_t no_place;
  int64_t* out;

  __device__ __forceinline__ void At(const int64_t (&offsets)[kMostIndices + 1]) const {
    int64_t index[kMostIndices];
#pragma unroll
    for (int k = 0; k < kMostIndices; ++k) {
      if (k < d.count) index[k] = d.index[k][offsets[k]];
    }
    int64_t* to = out + offsets[kMostIndices];
    int64_t place = d.continues ? *to : 0;
    bool outside = place < 0;
#pragma unroll
    for (int k = 0; k < kMostIndices; ++k) {
      if (k >= d.count) break;
      const int64_t found = FindPlace(index[k], d.size[k], true);
      outside = outside || found < 0;
      place = place * d.size[k] + found;
    }
    *to = outside ? no_place : place;
  }
};

}  // namespace

cudaError_t LaunchRavelMultiIndex(const Strided<kMostIndices + 1>& g, const MultiIndexDims& d,
                                  int64_t no_place, int64_t* out, cudaStream_t stream) {
  return ForElements(g, Ravel{d, no_place, out}, stream);
}

}  // namespace cuda
}  // namespace oneflow_lite
