// SPDX-License-Identifier: Apache-2.0
//
// Division by a number that is the same for a whole launch.
//
//   const Divisor cols(shape.cols);                       // on the host
//   const uint32_t row = cols.Quotient(i);                // on the device, i < 2^31
#pragma once

#include <stdint.h>

namespace oneflow_lite {
namespace cuda {

// Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (1994), for
// numerators and divisors below 2^31; others are divided by the processor.
struct Divisor {
  int64_t value = 1;
  uint32_t multiplier = 1, shift = 0;

  Divisor() = default;
  explicit Divisor(int64_t v) : value(v) {
    if (v < 1 || v >= (int64_t{1} << 31)) return;
    const auto d = static_cast<uint64_t>(v);
    while ((uint64_t{1} << shift) < d) ++shift;
    multiplier = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d) / d + 1);
  }
  template <class Index>
  __device__ __forceinline__ Index Quotient(Index n) const {
    if constexpr (sizeof(Index) == 4) {
      return (__umulhi(n, multiplier) + n) >> shift;
    } else {
      return n / value;
    }
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
