// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions of three operands of one dtype, with broadcasting through strides.
#pragma once

#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/scalar.h"
#include "primitive/op_kinds.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Ternary {
 public:
  static constexpr char kName[] = "ternary";
  struct Spec {
    TernaryOp op = TernaryOp::kLerp;
    DType dtype = DType::kFloat32;  // of the operands
  };
  // Elements on the device, or, where data is null, a number for all of them, rounded to the
  // compute type of the dtype and no further; its strides are 0.
  struct Operand {
    const void* data = nullptr;
    Scalar number;
  };
  virtual ~Ternary() = default;
  // Operands of g in the order a, b, c, out. out may be an operand whose geometry is the same.
  virtual Status Launch(Stream& stream, const Elementwise<4>& g, const Operand (&operands)[3],
                        const TernaryNumbers& numbers, void* out) const = 0;
};
using TernaryFactory = PrimitiveFactory<Ternary>;

}  // namespace oneflow_lite
