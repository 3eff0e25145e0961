// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions of two operands, with broadcasting through strides. Operands may have other
// dtypes than they are computed in: they are converted as they are loaded.
#pragma once

#include <optional>

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
    DType dtype = DType::kFloat32;        // what a and b are promoted to, and theirs unless given
    std::optional<DType> a = {}, b = {};  // of the operands in memory
  };
  // Elements on the device, or, where data is null, a number for all of them, rounded to the
  // compute type of the dtype and no further; its strides are 0, and its dtype in the spec counts
  // for nothing.
  struct Operand {
    Operand(const void* elements) : data(elements) {}  // NOLINT: implicit
    Operand(Scalar n) : number(n) {}                   // NOLINT: implicit
    const void* data = nullptr;
    Scalar number;
  };
  virtual ~Binary() = default;
  // Operands in the order a, b, out; strides in elements. out may be a or b where their geometry
  // is the same.
  virtual Status Launch(Stream& stream, const Elementwise<3>& g, const Operand& a, const Operand& b,
                        void* out) const = 0;
};
using BinaryFactory = PrimitiveFactory<Binary>;

}  // namespace oneflow_lite
