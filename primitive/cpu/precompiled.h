// SPDX-License-Identifier: Apache-2.0
//
// Highway for each instruction set, parsed once for the files of vector loops: more than a second
// of each of them otherwise.
#pragma once

#include "cmake/precompiled.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hwy/contrib/math/math-inl.h"
#include "hwy/foreach_target.h"
// clang-format on
#include "hwy/cache_control.h"
#include "hwy/contrib/math/math-inl.h"

#undef HWY_TARGET_TOGGLE
#define OFL_HIGHWAY_PRECOMPILED
