// SPDX-License-Identifier: Apache-2.0
//
// Mantissas and exponents of floats, in one pass.
#pragma once

#include "oneflow_lite/core/elementwise.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Frexp {
 public:
  static constexpr char kName[] = "frexp";
  struct Spec {
    DType dtype = DType::kFloat32;  // one of the four floats
  };
  virtual ~Frexp() = default;
  // x is mantissa 2^exponent, |mantissa| from 1/2 up to 1, the exponent int32; of zeros, infinities
  // and NaN the mantissa is x, and the exponent 0. Operands of g in the order x, mantissa,
  // exponent; the mantissa may be x.
  virtual Status Launch(Stream& stream, const Elementwise<3>& g, const void* x, void* mantissa,
                        void* exponent) const = 0;
};
using FrexpFactory = PrimitiveFactory<Frexp>;

}  // namespace oneflow_lite
