// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions of two operands of one dtype, with broadcasting through strides.
#pragma once

#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/scalar.h"
#include "primitive/op_kinds.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Binary {
 public:
  static constexpr char kName[] = "binary";
  struct Spec {
    BinaryOp op = BinaryOp::kAdd;
    DType dtype = DType::kFloat32;  // of a and b
  };
  virtual ~Binary() = default;
  // Operands in the order a, b, out; strides in elements. out may be a or b where their geometry
  // is the same.
  virtual Status Launch(Stream& stream, const Elementwise<3>& g, const void* a, const void* b,
                        void* out) const = 0;
  // One operand (a, where scalar_first) is a number, rounded to the compute type of the dtype and
  // no further; operands x, out.
  virtual Status LaunchScalar(Stream& stream, const Elementwise<2>& g, const void* x, Scalar scalar,
                              bool scalar_first, void* out) const = 0;
};
using BinaryFactory = PrimitiveFactory<Binary>;

}  // namespace oneflow_lite
