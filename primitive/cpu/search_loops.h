// SPDX-License-Identifier: Apache-2.0
//
// Searches in sorted rows by vectors, a vector of sought elements at a time.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {

// Rows of cols > 0 elements that never fall; in each, `per_row` elements are sought.
struct SortedRows {
  const void* data;
  int64_t cols, per_row;
  bool right;
};
// Rows so long, at most, are searched.
inline constexpr int64_t kMostSearched = int64_t{1} << 26;

// places[i] = how many elements of row i / per_row come before x[i], or also equal it if `right`,
// for i in [begin, end); NaN is the largest. cols <= kMostSearched.
template <class Out>
using SearchLoop = void (*)(const SortedRows& rows, int64_t begin, int64_t end, const void* x,
                            Out* places);
// Of elements of 4 and 8 bytes; null for others. Out: int32_t, int64_t.
template <class Out>
SearchLoop<Out> FindSearchLoop(DType dtype);

}  // namespace oneflow_lite
