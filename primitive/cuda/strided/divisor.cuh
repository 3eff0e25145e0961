// SPDX-License-Identifier: Apache-2.0
//
// Division by a number that is the same for a whole launch.
//
//   const Divisor cols(shape.cols);                       // on the host
//   const uint32_t row = cols.Quotient(i);                // i < 2^31
//   const int64_t far = cols.QuotientOfAny(n);            // any n >= 0
#pragma once

#include <stdint.h>

#include "primitive/cuda/functions/tags.h"

namespace oneflow_lite {
namespace cuda {

// Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (1994), for
// numerators and divisors below 2^31; others are divided by the processor.
struct Divisor {
  int64_t value = 1;
  uint32_t multiplier = 1, shift = 0;

  Divisor() = default;
  explicit Divisor(int64_t v) : value(v) {
    if (v < 1) return;
    if (v >= (int64_t{1} << 31)) {  // numerators below it give 0
      multiplier = 0, shift = 31;
      return;
    }
    const auto d = static_cast<uint64_t>(v);
    while ((uint64_t{1} << shift) < d) ++shift;
    multiplier = static_cast<uint32_t>((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d) / d + 1);
  }
  template <class Index>
  OFL_HOST_DEVICE Index Quotient(Index n) const {
    if constexpr (sizeof(Index) == 4) {
#ifdef __CUDA_ARCH__
      return (__umulhi(n, multiplier) + n) >> shift;
#else
      return static_cast<Index>((uint64_t{n} * multiplier >> 32) + n) >> shift;
#endif
    } else {
      return n / value;
    }
  }
  OFL_HOST_DEVICE int64_t QuotientOfAny(int64_t n) const {
    if (n < (int64_t{1} << 31)) return Quotient(static_cast<uint32_t>(n));
    return n / value;
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
