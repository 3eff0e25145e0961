// SPDX-License-Identifier: Apache-2.0
//
// multi_margin, and its gradient: one pass each. Where the gradient is recorded it is composed of
// functors, which are differentiable in turn.
#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/index.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

constexpr int kPower = 0, kMargin = 1;  // the attributes

// x [rows, classes] and target [rows], inputs `first` and the next.
Status CheckRows(const InferContext& c, int first) {
  const Shape& x = c.shape(first);
  if (!IsFloating(c.dtype(first))) {
    return UnsupportedDType(c.op(), "x", c.dtype(first), kFloatingDTypes);
  }
  if (x.ndim() != 2) return ShapeMismatch(c.op(), "x", x, "2 dims");
  if (c.dtype(first + 1) != DType::kInt64) {
    return DTypeMismatch(c.op(), "target", c.dtype(first + 1), "int64");
  }
  if (c.shape(first + 1) != Shape{x[0]}) {
    return ShapeMismatch(c.op(), "target", c.shape(first + 1), Shape{x[0]}.ToString());
  }
  const int64_t p = c.attr<int64_t>(kPower);
  return p == 1 || p == 2 ? OkStatus() : BadValue(c.op(), "p", absl::StrCat(p), "1 or 2");
}

Cost CostOf(const InferContext& c, absl::Span<const TensorSpec> outputs) {
  Cost cost{.flops = static_cast<double>(c.shape(c.num_inputs() - 2).numel())};
  for (int i = 0; i < c.num_inputs(); ++i) {
    cost.bytes += static_cast<double>(c.shape(i).numel()) * SizeOf(c.dtype(i));
  }
  cost.bytes += static_cast<double>(outputs[0].shape.numel()) * SizeOf(outputs[0].dtype);
  return cost;
}
constexpr char kMarginCostText[] =
    "each input is read once, each output written once; one operation for each element of x";

// The gradient in functors that record what they do.
StatusOr<Tensor> RecordedGradient(const GradContext& c) {
  const Tensor& x = c.input(0);
  OFL_ASSIGN_OR_RETURN(const Tensor places, functional::Unsqueeze(c.input(1), 1));
  OFL_ASSIGN_OR_RETURN(const Tensor own, functional::Gather(x, 1, places));
  OFL_ASSIGN_OR_RETURN(const Tensor off, functional::Sub(x, own));
  OFL_ASSIGN_OR_RETURN(const Tensor over, functional::Add(off, Scalar(c.attr<double>(kMargin))));
  OFL_ASSIGN_OR_RETURN(const Tensor counts, functional::Gt(over, Scalar(0.0)));
  Tensor slope;
  if (c.attr<int64_t>(kPower) == 2) {
    OFL_ASSIGN_OR_RETURN(const Tensor twice, functional::Mul(over, Scalar(2.0)));
    OFL_ASSIGN_OR_RETURN(slope, functional::Where(counts, twice, Scalar(0.0)));
  } else {
    OFL_ASSIGN_OR_RETURN(slope, functional::Cast(counts, x.dtype()));
  }
  OFL_ASSIGN_OR_RETURN(slope, functional::Scatter(slope, 1, places, Scalar(0.0)));
  OFL_ASSIGN_OR_RETURN(const Tensor sum, functional::Sum(slope, Dims{1}, true, x.dtype()));
  OFL_ASSIGN_OR_RETURN(const Tensor back, functional::Neg(sum));
  OFL_ASSIGN_OR_RETURN(slope, functional::Scatter(slope, 1, places, back));
  const auto classes = static_cast<double>(x.shape()[1]);
  OFL_ASSIGN_OR_RETURN(const Tensor flow, functional::Div(c.grad(0), Scalar(classes)));
  OFL_ASSIGN_OR_RETURN(const Tensor column, functional::Unsqueeze(flow, 1));
  return functional::Mul(slope, column);
}

void DefineMultiMargin(OpDef& op) {
  op.Input("x").Input("target").Output("loss");
  op.Attr("p", AttrType::kInt, int64_t{1}).Attr("margin", AttrType::kFloat, 1.0);
  op.doc =
      "The sum of max(0, margin - x[target] + x[j])^p over the other classes j of a row, over "
      "their "
      "number.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckRows(c, 0));
    c.SetOutput(0, c.shape(1), c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext&) {
    SbpSignatures out;
    out.push_back({{Sbp::Split(0), Sbp::Split(0)}, {Sbp::Split(0)}});
    return out;
  };
  op.sbp_text = "split by rows";
  op.cost = CostOf;
  op.cost_text = kMarginCostText;
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(0) | Bit(1)}; };
  op.backward = [](GradContext& c) -> Status {
    static const OpExpr& backward = OpBuilder("multi_margin_backward")
                                        .Input("dloss")
                                        .Input("x")
                                        .Input("target")
                                        .Output("dx")
                                        .Attr("p")
                                        .Attr("margin")
                                        .Get();
    if (GradEnabled()) return c.Set(0, RecordedGradient(c));
    return c.Set(0, Call(backward, {c.grad(0), c.input(0), c.input(1)},
                         {c.attr<int64_t>(kPower), c.attr<double>(kMargin)}));
  };
}

void DefineMultiMarginBackward(OpDef& op) {
  op.Input("dloss").Input("x").Input("target").Output("dx");
  op.Attr("p", AttrType::kInt, int64_t{1}).Attr("margin", AttrType::kFloat, 1.0);
  op.doc = "dloss times the slopes of multi_margin.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckRows(c, 1));
    if (c.shape(0) != c.shape(2)) {
      return ShapeMismatch(c.op(), "dloss", c.shape(0), c.shape(2).ToString());
    }
    if (c.dtype(0) != c.dtype(1))
      return DTypeMismatch(c.op(), "dloss", c.dtype(0), Name(c.dtype(1)));
    c.SetOutput(0, c.shape(1), c.dtype(1));
    return OkStatus();
  };
  op.sbp = [](const SbpContext&) {
    SbpSignatures out;
    out.push_back({{Sbp::Split(0), Sbp::Split(0), Sbp::Split(0)}, {Sbp::Split(0)}});
    return out;
  };
  op.sbp_text = "split by rows";
  op.cost = CostOf;
  op.cost_text = kMarginCostText;
}

OFL_REGISTER_OP("multi_margin", DefineMultiMargin);
OFL_REGISTER_OP("multi_margin_backward", DefineMultiMarginBackward);

}  // namespace
}  // namespace oneflow_lite
