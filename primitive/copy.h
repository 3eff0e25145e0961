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
  struct Part {
    Elementwise<2> g;
    const void* src;
    void* dst;
  };
  virtual ~Copy() = default;
  // Operands in the order src, dst. They must not overlap.
  virtual Status Launch(Stream& stream, const Elementwise<2>& g, const void* src,
                        void* dst) const = 0;
  // Copies of which none reads what another writes. A device may do several in one launch.
  virtual Status LaunchAll(Stream& stream, absl::Span<const Part> parts) const {
    for (const Part& p : parts) OFL_RETURN_IF_ERROR(Launch(stream, p.g, p.src, p.dst));
    return OkStatus();
  }
};
using CopyFactory = PrimitiveFactory<Copy>;

}  // namespace oneflow_lite
