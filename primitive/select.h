// SPDX-License-Identifier: Apache-2.0
//
// One of two elements, by a condition. They are moved, so only their size matters.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/elementwise.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Select {
 public:
  static constexpr char kName[] = "select";
  struct Spec {
    DType dtype = DType::kFloat32;  // of a, b and out
  };
  // Elements on the device, or, where data is null, one that stands for all of them: its bits, in
  // the lowest bytes; its strides are 0.
  struct Operand {
    const void* data = nullptr;
    uint64_t bits = 0;
  };
  virtual ~Select() = default;
  // out = condition (bool) ? a : b; operands of g in the order condition, a, b, out.
  virtual Status Launch(Stream& stream, const Elementwise<4>& g, const Operand& condition,
                        const Operand& a, const Operand& b, void* out) const = 0;
};
using SelectFactory = PrimitiveFactory<Select>;

}  // namespace oneflow_lite
