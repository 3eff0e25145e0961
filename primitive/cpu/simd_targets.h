// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets the CPU kernels are compiled for; Highway picks one at run time. To be
// included before any Highway header. On x86: SSE4 (every processor since 2009) as the base, AVX2,
// AVX-512. Fewer sets, shorter builds: each costs one more compilation of every vector kernel.
#pragma once

#define HWY_WANT_SSE4 1
#define HWY_DISABLED_TARGETS HWY_SSSE3

#include <string>

#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

// The instruction sets that were compiled and that this processor has, best first: "AVX2, SSE4".
OFL_API std::string SimdTargets();

}  // namespace oneflow_lite
