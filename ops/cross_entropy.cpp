// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of logits [N, C] with class targets [N]: the losses, their gradient as an op of its
// own, so that it can be differentiated again, and the form that turns the logits into the
// gradient.
#include "ops/cross_entropy.h"

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/cross_entropy.h"
#include "functional/nll_loss.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/softmax.h"
#include "functional/view.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

using functional::Mul;
using functional::Sum;

Status CheckFirstOrder() {
  if (!GradEnabled()) return OkStatus();
  return Error(ErrorKind::kRuntime,
               "cross_entropy(): with inplace_backward the logits are gone, so there is no second "
               "derivative (create_graph)");
}

void DefineCrossEntropy(OpDef& op) {
  op.Input("in").Input("target").Output("loss").Output("stats");
  AddLossAttrs(op);
  op.Attr("inplace_backward", AttrType::kBool, false);
  op.doc =
      "Cross entropy of each row of logits at its target, 0 where that is ignore_index; and, for "
      "backward, the row's maximum and log sum exp(x - max). With inplace_backward that writes the "
      "gradient into the memory of the logits.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckLogits(c));
    const int64_t rows = c.shape(0)[0];
    c.SetOutput(0, Shape{rows}, ComputeType(c.dtype(0)));
    c.SetOutput(1, Shape{rows, 2}, ComputeType(c.dtype(0)));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) { return SplitRows(c, 2, -1); };
  op.sbp_text = "split by rows";
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) { return CostOfLogits(c, 1); };
  op.cost_text = "the logits are read once; 5 operations per element";
  op.save = [](const Attrs&, Needs) {
    return SavePlan{.inputs = Bit(0) | Bit(1), .outputs = Bit(1)};
  };
  op.backward = [](GradContext& c) -> Status {
    if (c.grad(1).defined()) {
      return Error(ErrorKind::kNotImplemented, "cross_entropy(): stats has no gradient");
    }
    if (!c.grad(0).defined()) return OkStatus();
    const int64_t ignore_index = c.attr<int64_t>(kIgnoreIndex);
    const double smoothing = c.attr<double>(kSmoothing);
    if (!c.attr<bool>(kSmoothing + 1)) {
      return c.Set(0, functional::CrossEntropyBackward(c.input(0), c.input(1), c.output(1).Detach(),
                                                       c.grad(0), ignore_index, smoothing));
    }
    OFL_RETURN_IF_ERROR(CheckFirstOrder());
    return c.Set(0, functional::CrossEntropyBackwardInto(c.input(0).Detach(), c.input(1),
                                                         c.output(1).Detach(), c.grad(0),
                                                         ignore_index, smoothing));
  };
}

// With p the softmax and t the smoothed target, din = (p - t) dloss on the rows that count. An
// incoming g gives, row by row:
//   for dloss: sum (p - t) g;   for in: dloss times the softmax gradient of g.
Status DifferentiateCrossEntropy(GradContext& c) {
  if (c.needs(2) || c.attr<int64_t>(kClasses) != 0) {
    return Error(ErrorKind::kNotImplemented,
                 "cross_entropy_backward(): neither stats nor a part of the classes has a "
                 "gradient");
  }
  const DType wide = ComputeType(c.spec(0).dtype);
  const int64_t ignore_index = c.attr<int64_t>(kIgnoreIndex);
  const double smoothing = c.attr<double>(kSmoothing);
  OFL_ASSIGN_OR_RETURN(Tensor x, functional::Cast(c.input(0), wide));
  OFL_ASSIGN_OR_RETURN(Tensor g, functional::Cast(c.grad(0), wide));
  OFL_ASSIGN_OR_RETURN(Tensor p, functional::Softmax(x, 1));
  OFL_ASSIGN_OR_RETURN(Tensor counted, functional::Ne(c.input(1), Scalar(ignore_index)));
  if (c.needs(3)) {
    OFL_ASSIGN_OR_RETURN(Tensor p_g, Mul(p, g));
    OFL_ASSIGN_OR_RETURN(Tensor sum, Sum(p_g, Dims{1}));
    OFL_ASSIGN_OR_RETURN(functional::NllRows at_target,  // -g[t]
                         functional::NllLossRows(g, c.input(1), {}, ignore_index));
    OFL_ASSIGN_OR_RETURN(Tensor sharp, Mul(at_target.loss, Scalar(1 - smoothing)));
    OFL_ASSIGN_OR_RETURN(sum, functional::Add(sum, sharp));
    if (smoothing > 0) {
      OFL_ASSIGN_OR_RETURN(Tensor mean, functional::Mean(g, Dims{1}));
      OFL_ASSIGN_OR_RETURN(mean, Mul(mean, Scalar(smoothing)));
      OFL_ASSIGN_OR_RETURN(sum, functional::Sub(sum, mean));
    }
    OFL_RETURN_IF_ERROR(c.Set(3, functional::Where(counted, sum, Scalar(0))));
  }
  if (!c.needs(0)) return OkStatus();
  OFL_ASSIGN_OR_RETURN(Tensor dx, functional::SoftmaxBackward(p, g, 1));
  // Where no row counts, dloss is not finite: the gradient of a mean of none.
  OFL_ASSIGN_OR_RETURN(Tensor factor, functional::Where(counted, c.input(3), Scalar(0)));
  OFL_ASSIGN_OR_RETURN(factor, functional::Unsqueeze(factor, 1));
  OFL_ASSIGN_OR_RETURN(dx, Mul(dx, factor));
  return c.Set(0, functional::Cast(dx, c.spec(0).dtype));
}

void DefineCrossEntropyBackward(OpDef& op) {
  op.Input("in").Input("target").Input("stats").Input("dloss").Output("din");
  AddLossAttrs(op);
  AddPartAttrs(op);
  op.doc =
      "Gradient of cross_entropy: (softmax(in) - the smoothed target) dloss. Where classes is not "
      "0, in has those from first on of so many.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckGradient(c));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  DeclareGradient(op);
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(0) | Bit(1) | Bit(3)}; };
  op.backward = DifferentiateCrossEntropy;
}

// Not an op that mutates `in` in autograd's sense: its value is gone, no later op may speak of it.
// Whoever saved it for backward finds out by the storage's version.
void DefineCrossEntropyInPlace(OpDef& op) {
  op.Input("in").Input("target").Input("scale", InputDef::Kind::kOptional);
  op.Output("loss").Output("gradient");
  AddLossAttrs(op);
  op.makes_outputs = true;
  op.doc =
      "scale times the cross entropy of each row. The memory of `in`, where its rows are dense, is "
      "overwritten by the gradient of their sum, which is the second output.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckLogits(c));
    if (c.has_input(2)) OFL_RETURN_IF_ERROR(CheckNumbers(c, 2, "scale", Shape{}));
    c.SetOutput(0, Shape{c.shape(0)[0]}, ComputeType(c.dtype(0)));
    c.SetOutput(1, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) { return SplitRows(c, 2, 2); };
  op.sbp_text = "split by rows, scale whole";
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) { return CostOfLogits(c, 2); };
  op.cost_text =
      "the logits are read once, their gradient is written once; 5 operations per element";
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(1)}; };
  op.backward = [](GradContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckFirstOrder());
    if (c.needs(2) || c.grad(1).defined()) {
      return Error(ErrorKind::kNotImplemented,
                   "cross_entropy_in_place(): only the losses have a gradient, and only for in");
    }
    if (!c.needs(0) || !c.grad(0).defined()) return OkStatus();
    return c.Set(0, functional::ScaleRowsInto(c.output(1).Detach(), c.grad(0)));
  };
}

void DefineMeanWeight(OpDef& op) {
  op.Input("target").Output("weight");
  op.Attr("ignore_index", AttrType::kInt, int64_t{-100});
  op.Attr("dtype", AttrType::kDType, DType::kFloat32);
  op.doc = "1 over the number of targets that are not ignore_index: each one's share of a mean.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    const DType dtype = c.attr<DType>(1);
    if (c.dtype(0) != DType::kInt64) return DTypeMismatch(c.op(), "target", c.dtype(0), "int64");
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
      return UnsupportedDType(c.op(), "weight", dtype, "float32 or float64");
    }
    c.SetOutput(0, Shape{}, dtype);
    return OkStatus();
  };
}

// The weight does not depend on the losses: what arrives for it is of no account.
void DefineReduceLoss(OpDef& op) {
  op.Input("loss").Input("target", InputDef::Kind::kOptional);
  op.Output("value").Output("weight");
  op.Attr("ignore_index", AttrType::kInt, int64_t{-100});
  op.Attr("dtype", AttrType::kDType, DType::kFloat32);
  op.doc =
      "The sum of the losses of rows, in `dtype`; with targets their mean over those that are not "
      "ignore_index. And what each one counts.";
  op.infer = [](InferContext& c) -> Status {
    const DType dtype = c.attr<DType>(1);
    if (!IsFloating(dtype)) return UnsupportedDType(c.op(), "value", dtype, kFloatingDTypes);
    const DType wide = ComputeType(dtype);
    if (c.dtype(0) != wide) return DTypeMismatch(c.op(), "loss", c.dtype(0), Name(wide));
    const Shape& rows = c.shape(0);
    if (rows.ndim() != 1) return ShapeMismatch(c.op(), "loss", rows, "1 dim");
    if (c.has_input(1)) {
      if (c.dtype(1) != DType::kInt64) return DTypeMismatch(c.op(), "target", c.dtype(1), "int64");
      if (c.shape(1) != rows) return ShapeMismatch(c.op(), "target", c.shape(1), rows.ToString());
    }
    c.SetOutput(0, Shape{}, dtype);
    c.SetOutput(1, Shape{}, wide);
    return OkStatus();
  };
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(1)}; };
  op.backward = [](GradContext& c) -> Status {
    if (!c.needs(0) || !c.grad(0).defined()) return OkStatus();
    OFL_ASSIGN_OR_RETURN(Tensor each, functional::Cast(c.grad(0), c.spec(0).dtype));
    if (c.num_inputs() > 1 && c.spec(1).defined) {  // a sum's weight is 1
      OFL_ASSIGN_OR_RETURN(each, Mul(each, c.output(1).Detach()));
    }
    return c.Set(0, functional::Expand(each, c.spec(0).shape.dims()));
  };
}

void DefineScaleRows(OpDef& op) {
  op.Input("self", InputDef::Kind::kMutated).Input("factor").Output("out");
  op.doc = "self[r, :] *= factor[r]; rows whose factor is 1 are not touched.";
  op.infer = [](InferContext& c) -> Status {
    if (!IsFloating(c.dtype(0))) {
      return UnsupportedDType(c.op(), "self", c.dtype(0), kFloatingDTypes);
    }
    if (c.shape(0).ndim() != 2) return ShapeMismatch(c.op(), "self", c.shape(0), "2 dims");
    OFL_RETURN_IF_ERROR(CheckNumbers(c, 1, "factor", Shape{c.shape(0)[0]}));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out = SplitRows(c, 1, -1);
    out.push_back({{Sbp::Split(1), Sbp::Broadcast()}, {Sbp::Split(1)}});
    return out;
  };
  op.sbp_text = "split by rows, or by columns with the factors whole";
}

OFL_REGISTER_OP("cross_entropy", DefineCrossEntropy);
OFL_REGISTER_OP("cross_entropy_backward", DefineCrossEntropyBackward);
OFL_REGISTER_OP("cross_entropy_in_place", DefineCrossEntropyInPlace);
OFL_REGISTER_OP("mean_weight", DefineMeanWeight);
OFL_REGISTER_OP("reduce_loss", DefineReduceLoss);
OFL_REGISTER_OP("scale_rows_", DefineScaleRows);

}  // namespace
}  // namespace oneflow_lite
