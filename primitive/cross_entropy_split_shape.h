// SPDX-License-Identifier: Apache-2.0
//
// Logits whose classes lie in parts (cross_entropy_split.h): plain values, for both devices.
#pragma once

#include <cstdint>

namespace oneflow_lite {

// What a part says of a row: its largest logit (-inf where it has none), the sum of exp(x - max),
// the target's logit (0 where that is another part's), and with smoothing the sum of x - max, else
// 0. What is subtracted from x is 0 where max is -inf.
inline constexpr int kPartNumbers = 4;

// The logits of classes [first, first + count), and the problem that they are a part of.
struct ClassPartShape {
  int64_t rows = 0, classes = 0;  // classes of all parts
  int64_t first = 0, count = 0;
  int64_t ignore_index = -100;
  double smoothing = 0;    // in [0, 1]
  int64_t row_stride = 0;  // from a row of x to the next, in elements
};

struct ClassMergeShape {
  int64_t rows = 0, classes = 0;
  int64_t parts = 1;  // as even as can be, the first ones larger
  int64_t ignore_index = -100;
  double smoothing = 0;
};

}  // namespace oneflow_lite
