// SPDX-License-Identifier: Apache-2.0
//
// Launchers of random numbers and of dropout. Null where there is no code for the dtype.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/random_kinds.h"

namespace oneflow_lite {
namespace cuda {

struct RandomArguments {
  uint64_t seed, offset;
  const uint64_t* shift;
};
using RandomLauncher = cudaError_t (*)(int64_t n, const RandomArguments&, const RandomNumbers&,
                                       void* y, cudaStream_t);
RandomLauncher FindRandom(RandomKind kind, DType dtype);

// What primitive/dropout.h says; `inner` elements share a draw.
struct DropoutArguments {
  RandomArguments state;  // of forward
  uint32_t threshold;
  double scale, kept, dropped;
  int64_t inner;
  int64_t run, middle, middle_step, outer_step, start;
};
using DropoutLauncher = cudaError_t (*)(int64_t n, const DropoutArguments&, const void* x,
                                        uint64_t* drawn, void* y, cudaStream_t);
// With `drawn` as an input.
using DropoutBackwardLauncher = cudaError_t (*)(int64_t n, const DropoutArguments&, const void* dy,
                                                const uint64_t* drawn, void* dx, cudaStream_t);
struct DropoutLaunchers {
  DropoutLauncher forward = nullptr;
  DropoutBackwardLauncher backward = nullptr;
};
DropoutLaunchers FindDropout(DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
