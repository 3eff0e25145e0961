// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions of one operand: y[i] = f(x[i]) over n contiguous elements.
#pragma once

#include "primitive/op_kinds.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Unary {
 public:
  static constexpr char kName[] = "unary";
  struct Spec {
    UnaryOp op = UnaryOp::kNeg;
    DType dtype = DType::kFloat32;  // of x, and of y where that is not bool (IsTruth)
  };
  virtual ~Unary() = default;
  // x and y may be the same pointer where their elements have one size.
  virtual Status Launch(Stream& stream, int64_t n, const void* x, void* y,
                        const UnaryParams& params = {}) const = 0;
};
using UnaryFactory = PrimitiveFactory<Unary>;

}  // namespace oneflow_lite
