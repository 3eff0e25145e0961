// SPDX-License-Identifier: Apache-2.0
//
// AllWithin (oneflow_lite/core/places.h) by the vectors of the CPU that runs it.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/places.h"

namespace oneflow_lite::cpu {

// Of places one after another.
bool PlacesWithin(const int64_t* places, int64_t n, int64_t low, int64_t high);

inline bool PlacesWithin(const int64_t* places, int64_t n, int64_t step, int64_t low,
                         int64_t high) {
  constexpr int64_t kFew = 32;  // for which a plain loop takes no longer than the way to another
  return step == 1 && n > kFew ? PlacesWithin(places, n, low, high)
                               : AllWithin(places, n, step, low, high);
}

}  // namespace oneflow_lite::cpu
