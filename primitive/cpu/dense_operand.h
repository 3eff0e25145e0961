// SPDX-License-Identifier: Apache-2.0
//
// An operand of a loop over floats as they lie in memory.
#pragma once

#include <cstdint>
#include <limits>

#include "primitive/cpu/convert.h"

namespace oneflow_lite {

// Elements in a row, or, without data, a number for all of them. Of rows that lie `row` elements
// apart, `each` has one element alone.
struct DenseOperand {
  const void* data = nullptr;
  double number = 0;
  int64_t row = 0;
  bool each = false;
};

// A caller's number, rounded to the compute type of the dtype. A NaN is the quiet one, as
// StorePack wants it.
inline DenseOperand DenseNumber(DType dtype, const Scalar& number) {
  const double v = ComputeType(dtype) == DType::kFloat64 ? CastScalar<double>(number)
                                                         : CastScalar<float>(number);
  return {nullptr, v == v ? v : std::numeric_limits<double>::quiet_NaN()};
}

// Exponents that dense loops take: a product of few factors is as exact as the power.
inline bool IsShortPower(const Scalar& exponent) {
  const double e = exponent.to<double>();
  return e == 3 || e == 4;
}

}  // namespace oneflow_lite
