// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions of one operand. x may have another dtype than the function is computed in:
// it is converted as it is loaded.
#pragma once

#include <optional>

#include "oneflow_lite/core/elementwise.h"
#include "primitive/op_kinds.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Unary {
 public:
  static constexpr char kName[] = "unary";
  struct Spec {
    UnaryOp op = UnaryOp::kNeg;
    DType dtype = DType::kFloat32;  // what x is converted to; of y where that is not bool (IsTruth)
    std::optional<DType> in = {};   // of x in memory; `dtype` unless given
  };
  virtual ~Unary() = default;
  // Operands in the order x, y; strides in elements. y may be x where geometry and size of their
  // elements are the same.
  virtual Status Launch(Stream& stream, const Elementwise<2>& g, const void* x, void* y,
                        const UnaryParams& params = {}) const = 0;
};
using UnaryFactory = PrimitiveFactory<Unary>;

}  // namespace oneflow_lite
