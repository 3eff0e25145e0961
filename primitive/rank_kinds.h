// SPDX-License-Identifier: Apache-2.0
//
// Which elements of a row are wanted, by rank, for hosts and kernels.
#pragma once

#include <math.h>

#include "primitive/ordered_keys.h"

namespace oneflow_lite {

enum class RankKind : uint8_t {
  kKth,        // the one of rank k, counted from 0
  kMedian,     // the lower one in the middle; the first NaN where there is one
  kNanMedian,  // the same of what is not NaN; the first NaN of nothing else
  // At share * last, where `last` is the rank of the last element, or of the last that is not NaN:
  kLower,    // the one below
  kHigher,   // the one above
  kNearest,  // the nearest, of two the even one
  kAround,   // those below, then those above
};

// Which elements of each row are wanted.
struct Ranks {
  RankKind kind = RankKind::kKth;
  bool skip_nan = false;  // of shares
  int64_t k = 0;
  int64_t count = 1;               // of shares, else 1
  const double* shares = nullptr;  // in the device's memory; in [0, 1]

  OFL_KEY_FUNCTION int64_t per_row() const { return kind == RankKind::kAround ? 2 * count : count; }
  // The rank that is wanted by number i of a row of cols elements of which so many are no NaN.
  OFL_KEY_FUNCTION int64_t At(int64_t i, int64_t cols, int64_t numbers) const {
    const int64_t some = numbers > 1 ? numbers : 1;
    if (kind == RankKind::kKth) return k;
    if (kind == RankKind::kMedian) return numbers < cols ? numbers : (cols - 1) / 2;
    if (kind == RankKind::kNanMedian) return (some - 1) / 2;
    const int64_t last = (skip_nan ? some : cols) - 1;
    const double place = shares[i < count ? i : i - count] * static_cast<double>(last);
    if (kind == RankKind::kNearest) return static_cast<int64_t>(rint(place));
    if (kind == RankKind::kHigher) return static_cast<int64_t>(ceil(place));
    const int64_t below = static_cast<int64_t>(floor(place));
    return i < count || below == last ? below : below + 1;
  }
};

}  // namespace oneflow_lite
