// SPDX-License-Identifier: Apache-2.0
//
// Searches in sorted rows by vectors, a vector of sought elements at a time.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {

// places[i] = how many of the cols > 0 elements of the row come before x[i], or also equal it if
// `right`; NaN is the largest. The row never falls, and has fewer than 2^31 elements.
template <class Out>
using SearchLoop = void (*)(int64_t cols, const void* row, bool right, int64_t n, const void* x,
                            Out* places);
// Of elements of 4 and 8 bytes; null for others. Out: int32_t, int64_t.
template <class Out>
SearchLoop<Out> FindSearchLoop(DType dtype);

}  // namespace oneflow_lite
