// SPDX-License-Identifier: Apache-2.0
//
// Places that a caller gave, looked at before they are used.
//
//   if (!AllWithin(index, n, /*step=*/1, 0, size - 1)) return FirstOutside(...);
#pragma once

#include <cstdint>

namespace oneflow_lite {

// Whether n places, `step` apart in memory, are all within [low, high]; low is at most 0, and high
// at least -1. Only signs are gathered, which vectors of any instruction set can, and no branch
// depends on them.
inline bool AllWithin(const int64_t* places, int64_t n, int64_t step, int64_t low, int64_t high) {
  const auto first = static_cast<uint64_t>(low), last = static_cast<uint64_t>(high);
  uint64_t signs = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto place = static_cast<uint64_t>(places[i * step]);
    signs |= (place - first) | (last - place);  // one is negative, even where the other wraps
  }
  return static_cast<int64_t>(signs) >= 0;
}

}  // namespace oneflow_lite
