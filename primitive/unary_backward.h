// SPDX-License-Identifier: Apache-2.0
//
// The gradient of an elementwise function of one operand, from what it saved: dx[i] = dy[i] times
// the slope at s[i], over n contiguous elements. s is the function's output where ops/unary.cpp
// says kOutput, else its input.
#pragma once

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
  // Where dy_is_number, dy is one element, which stands for all. dx may be dy or s.
  virtual Status Launch(Stream& stream, int64_t n, const void* dy, bool dy_is_number, const void* s,
                        void* dx, const UnaryParams& params = {}) const = 0;
};
using UnaryBackwardFactory = PrimitiveFactory<UnaryBackward>;

}  // namespace oneflow_lite
