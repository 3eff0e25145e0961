// SPDX-License-Identifier: Apache-2.0
#include "ops/binary_backward.h"

#include "functional/device_traits.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/split_around.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

void DefineBackward(OpDef& op) {
  op.Input("dy").Input("a").Input("b").Output("da").Output("db");
  op.doc =
      "Both gradients of the op, dy times its slopes by a and by b; b has neighbouring dims of a, "
      "and db is summed over the others.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    if (!IsFloating(c.dtype(0))) {
      return UnsupportedDType(c.op(), "dy", c.dtype(0), kFloatingDTypes);
    }
    for (int i = 1; i < 3; ++i) {
      if (c.dtype(i) == c.dtype(0)) continue;
      return DTypeMismatch(c.op(), i == 1 ? "a" : "b", c.dtype(i), Name(c.dtype(0)));
    }
    if (c.shape(1) != c.shape(0)) {
      return ShapeMismatch(c.op(), "a", c.shape(1), c.shape(0).ToString());
    }
    if (!SplitAround(c.shape(1), c.shape(2))) {
      return ShapeMismatch(c.op(), "b", c.shape(2),
                           absl::StrCat("neighbouring dims of ", c.shape(1).ToString()));
    }
    c.SetOutput(0, c.shape(1), c.dtype(1));
    c.SetOutput(1, c.shape(2), c.dtype(2));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    const Shape &a = c.inputs[1], &b = c.inputs[2];
    for (int d = 0; d < a.ndim(); ++d) {
      const int at = d - (a.ndim() - b.ndim());
      const bool own = at >= 0 && (b[at] != 1 || a[d] == 1);
      const Sbp of_b = own ? Sbp::Split(at) : Sbp::Broadcast();
      out.push_back(
          {{Sbp::Split(d), Sbp::Split(d), of_b}, {Sbp::Split(d), own ? of_b : Sbp::PartialSum()}});
    }
    return out;
  };
  op.sbp_text = "split on any dim; db is partial where b is repeated";
}
OFL_REGISTER_OP("mul_backward", DefineBackward);
OFL_REGISTER_OP("prelu_backward", DefineBackward);

const OpExpr* FindBackward(absl::string_view op) {
  static const OpExpr& mul =
      OpBuilder("mul_backward").Input("dy").Input("a").Input("b").Output("da").Output("db").Get();
  static const OpExpr& prelu =
      OpBuilder("prelu_backward").Input("dy").Input("a").Input("b").Output("da").Output("db").Get();
  return op == "mul" ? &mul : op == "prelu" ? &prelu : nullptr;
}

}  // namespace

StatusOr<bool> SetBothGradients(absl::string_view op, GradContext& c) {
  const OpExpr* backward = FindBackward(op);
  if (!backward || GradEnabled() || !c.needs(0) || !c.needs(1)) return false;
  const Tensor &dy = c.grad(0), &a = c.input(0), &b = c.input(1);
  for (const Tensor* t : {&dy, &a, &b}) {
    const bool fits = t->dtype() == dy.dtype() && t->device() == dy.device() &&
                      t->is_contiguous() && t->shape().numel() > 0 && !GlobalOf(*t);
    if (!fits) return false;
  }
  const int whole = a.shape() == dy.shape() ? 0 : 1;  // a product's operands may be exchanged
  const Tensor &large = c.input(whole), &small = c.input(1 - whole);
  if (large.shape() != dy.shape() || (whole == 1 && op != "mul")) return false;
  const std::optional<AxisSplit> split = SplitAround(large.shape(), small.shape());
  if (!split || !functional::SumsGradientsAtOnce(large, *split)) return false;
  OFL_ASSIGN_OR_RETURN(TensorList both, CallAll(*backward, {dy, large, small}));
  OFL_RETURN_IF_ERROR(c.Set(whole, both[0]));
  OFL_RETURN_IF_ERROR(c.Set(1 - whole, both[1]));
  return true;
}

}  // namespace oneflow_lite
