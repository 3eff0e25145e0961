// SPDX-License-Identifier: Apache-2.0
//
// What a rotary embedding is given, for hosts and devices.
#pragma once

#include <cstdint>

namespace oneflow_lite {

// Rows of `features` elements, which are heads of 2 * half. Row r goes with row r % length of the
// tables.
struct RotaryShape {
  int64_t rows = 0, features = 0;
  int64_t half = 1;
  int64_t rotated = 0;  // the features from the first on that turn, whole heads; others are copied
  int64_t length = 1;
  int64_t cos_stride = 1, sin_stride = 1;  // elements from a row of a table to the next
  bool inverse = false;                    // by the negative angles
};

}  // namespace oneflow_lite
