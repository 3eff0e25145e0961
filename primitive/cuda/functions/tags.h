// SPDX-License-Identifier: Apache-2.0
//
// What a function object tells the kernel of elementwise functions (elementwise/pass.cuh). NVRTC
// reads it too.
#pragma once

#include "oneflow_lite/core/host_device.h"

// OFL_CALLED: of what is rare, and long.
#ifdef __CUDACC__
#define OFL_CALLED __host__ __device__ __noinline__ inline
#else
#define OFL_CALLED inline
#endif

namespace oneflow_lite {
namespace cuda {

// Bases of functions that take more than some hundred instructions, always or in double: they are
// called, and not repeated for each element of a unit.
struct Long {};
struct LongInDouble {};
// Base of a function that takes more registers than its length tells.
struct Spacious {};

// Whether a function's result has a type of its own, and not the compute type.
template <class Op>
inline constexpr bool kChangesType = false;

}  // namespace cuda
}  // namespace oneflow_lite
