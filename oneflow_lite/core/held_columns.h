// SPDX-License-Identifier: Apache-2.0
//
// Which columns scatter holds on chip on CUDA. What it adds to 16-bit floats there is summed in
// float32 and rounded once, so that its callers need no wider copy of the result.
#pragma once

#include <cstdint>

namespace oneflow_lite {

// Columns of `size` elements, to which `count` go: not short, and not much longer than what goes
// to them.
constexpr bool HoldsColumns(int64_t count, int64_t size) {
  constexpr int64_t kShort = 64, kSparse = 16;
  return count >= kShort && size <= kSparse * count;
}

}  // namespace oneflow_lite
