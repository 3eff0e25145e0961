// SPDX-License-Identifier: Apache-2.0
//
// equal: whether two tensors have the same elements, where the answer is read at once.
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

void DefineEqual(OpDef& op) {
  op.Input("a").Input("b").Output("out");
  op.doc = "Whether two tensors of one shape and dtype have the same elements; no NaN is the same.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    if (c.shape(1) != c.shape(0)) {
      return ShapeMismatch(c.op(), "b", c.shape(1), c.shape(0).ToString());
    }
    if (c.dtype(1) != c.dtype(0)) {
      return DTypeMismatch(c.op(), "b", c.dtype(1), Name(c.dtype(0)));
    }
    c.SetOutput(0, Shape{}, DType::kBool);
    return OkStatus();
  };
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    const auto n = static_cast<double>(c.shape(0).numel());
    return Cost{.bytes = 2 * n * static_cast<double>(SizeOf(c.dtype(0))) + 1, .flops = n};
  };
  op.cost_text = "each tensor once; an operation per element";
}

OFL_REGISTER_OP("equal", DefineEqual);

}  // namespace
}  // namespace oneflow_lite
