// SPDX-License-Identifier: Apache-2.0
//
// Strided copy with conversion: serves contiguous(), copy_() and cast. Conversions are C++'s
// (floating to integer truncates), to bool it is x != 0, to the 16-bit floats round to nearest
// even.
#pragma once

#include "oneflow_lite/core/elementwise.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Copy {
 public:
  static constexpr char kName[] = "copy";
  struct Spec {
    DType from = DType::kFloat32;
    DType to = DType::kFloat32;
  };
  virtual ~Copy() = default;
  // Operands in the order src, dst. They must not overlap.
  virtual Status Launch(Stream& stream, const Elementwise<2>& g, const void* src,
                        void* dst) const = 0;
};
using CopyFactory = PrimitiveFactory<Copy>;

}  // namespace oneflow_lite
