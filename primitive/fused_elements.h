// SPDX-License-Identifier: Apache-2.0
//
// An expression of one element (core/expression.h) over operands of any layout, in one pass.
#pragma once

#include <memory>

#include "absl/types/span.h"
#include "oneflow_lite/core/expression_types.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class FusedElements {
 public:
  static constexpr char kName[] = "fused_elements";
  struct Spec {
    std::shared_ptr<const TypedExpression> expression;
  };
  // Elements on the device, of the dtype that the expression's input has; where data is null, the
  // number stands for all of them. Strides are in elements, one for each dim of the shape, 0 where
  // the operand is repeated.
  struct Input {
    const void* data = nullptr;
    Scalar number;
    absl::Span<const int64_t> strides;
  };
  struct Output {
    void* data = nullptr;
    absl::Span<const int64_t> strides;
  };
  virtual ~FusedElements() = default;
  // Outputs overlap nothing else.
  virtual Status Launch(Stream& stream, absl::Span<const int64_t> shape,
                        absl::Span<const Input> inputs, absl::Span<const Output> outputs) const = 0;
};
using FusedElementsFactory = PrimitiveFactory<FusedElements>;

// The dims of a call, merged where all operands lie densely in each other.
struct FusedGeometry {
  std::vector<int64_t> dims;                  // outermost first; none of size 1
  std::vector<std::vector<int64_t>> strides;  // of each input, then of each output
  int64_t numel = 1;
};
OFL_API FusedGeometry MergeFusedDims(absl::Span<const int64_t> shape,
                                     absl::Span<const FusedElements::Input> inputs,
                                     absl::Span<const FusedElements::Output> outputs);

}  // namespace oneflow_lite
