// SPDX-License-Identifier: Apache-2.0
//
// The gradient of an elementwise function of one operand, from what it saved: dx = dy times the
// slope at s. s is the function's output where ops/unary.cpp
// says kOutput, else its input.
#pragma once

#include "oneflow_lite/core/elementwise.h"
#include "primitive/op_kinds.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class UnaryBackward {
 public:
  static constexpr char kName[] = "unary_backward";
  struct Spec {
    UnaryOp op = UnaryOp::kTanh;
    DType dtype = DType::kFloat32;  // of all three; a float
  };
  virtual ~UnaryBackward() = default;
  // Operands in the order dy, s, dx; strides in elements. dx may be dy or s where their geometry is
  // the same.
  virtual Status Launch(Stream& stream, const Elementwise<3>& g, const void* dy, const void* s,
                        void* dx, const UnaryParams& params = {}) const = 0;
};
using UnaryBackwardFactory = PrimitiveFactory<UnaryBackward>;

}  // namespace oneflow_lite
