// SPDX-License-Identifier: Apache-2.0
//
// Negative log likelihood per row, and its gradient. The class dim is 1, or 0 for 1-D input.
#include "functional/nll_loss.h"

#include "functional/binary.h"
#include "functional/index_rows.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

using functional::NllLossRows;
using functional::NllRows;

// The shape of logp without its class dim.
Shape RowShape(const Shape& logp) {
  Shape rows = logp;
  rows.dims().erase(rows.dims().begin() + (logp.ndim() == 1 ? 0 : 1));
  return rows;
}

Status Infer(InferContext& c) {
  const Shape& logp = c.shape(0);
  if (!IsFloating(c.dtype(0)))
    return UnsupportedDType(c.op(), "input", c.dtype(0), kFloatingDTypes);
  if (logp.ndim() == 0) return ShapeMismatch(c.op(), "input", logp, "at least 1 dim");
  if (c.dtype(1) != DType::kInt64) return DTypeMismatch(c.op(), "target", c.dtype(1), "int64");
  const Shape rows = RowShape(logp);
  if (c.shape(1) != rows) return ShapeMismatch(c.op(), "target", c.shape(1), rows.ToString());
  if (c.has_input(2)) {
    const Shape classes{logp[logp.ndim() == 1 ? 0 : 1]};
    if (c.shape(2) != classes)
      return ShapeMismatch(c.op(), "weight", c.shape(2), classes.ToString());
    if (c.dtype(2) != c.dtype(0))
      return DTypeMismatch(c.op(), "weight", c.dtype(2), Name(c.dtype(0)));
  }
  c.SetOutput(0, rows, c.dtype(0));
  c.SetOutput(1, rows, c.dtype(0));
  return OkStatus();
}

// Of each class: what its rows give, -logp[target] dloss and what arrives for row_weight.
Status DifferentiateWeight(GradContext& c) {
  const Tensor &dloss = c.grad(0), &drow_weight = c.grad(1);
  const int64_t ignore_index = c.attr<int64_t>(0);
  Tensor each = drow_weight;
  if (dloss.defined()) {
    OFL_ASSIGN_OR_RETURN(NllRows rows, NllLossRows(c.input(0), c.input(1), {}, ignore_index));
    OFL_ASSIGN_OR_RETURN(each, functional::Mul(rows.loss, dloss));
    if (drow_weight.defined()) {
      OFL_ASSIGN_OR_RETURN(each, functional::Add(each, drow_weight));
    }
  }
  if (!each.defined()) return OkStatus();
  OFL_ASSIGN_OR_RETURN(each, functional::Reshape(each, {-1}));
  OFL_ASSIGN_OR_RETURN(Tensor target, functional::Reshape(c.input(1), {-1}));
  return c.Set(2, functional::IndexSum(each, 0, target, c.spec(2).shape[0], ignore_index));
}

void DefineNllLoss(OpDef& op) {
  op.Input("logp").Input("target").Input("weight", InputDef::Kind::kOptional);
  op.Output("loss").Output("row_weight").Attr("ignore_index", AttrType::kInt, int64_t{-100});
  op.doc = "-w[target] logp[target] per row, and w[target]; 0 where the target is ignore_index.";
  op.infer = Infer;
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    if (c.inputs[0].ndim() < 2) return out;
    SbpSignature s{{Sbp::Split(0), Sbp::Split(0)}, {Sbp::Split(0), Sbp::Split(0)}};
    if (c.inputs.size() > 2) s.inputs.push_back(Sbp::Broadcast());
    out.push_back(s);
    return out;
  };
  op.sbp_text = "split by rows, weight whole";
  op.save = [](const Attrs&, Needs needs) {
    return SavePlan{.inputs = Bit(1) | (needs & Bit(2) ? Bit(0) | Bit(2) : 0), .outputs = Bit(1)};
  };
  op.backward = [](GradContext& c) -> Status {
    static const OpExpr& backward = OpBuilder("nll_loss_backward")
                                        .Input("dloss")
                                        .Input("target")
                                        .Input("row_weight")
                                        .Output("dlogp")
                                        .Attr("shape")
                                        .Attr("ignore_index")
                                        .Get();
    Tensor row_weight = c.output(1).Detach();
    if (c.needs(2)) {
      OFL_RETURN_IF_ERROR(DifferentiateWeight(c));
      if (GradEnabled()) {  // with its history
        OFL_ASSIGN_OR_RETURN(NllRows rows, NllLossRows(c.input(0).Detach(), c.input(1), c.input(2),
                                                       c.attr<int64_t>(0)));
        row_weight = rows.weight;
      }
    }
    if (!c.needs(0) || !c.grad(0).defined()) return OkStatus();
    return c.Set(0, Call(backward, {c.grad(0), c.input(1), row_weight},
                         {c.spec(0).shape.dims(), c.attr<int64_t>(0)}));
  };
}

void DefineNllLossBackward(OpDef& op) {
  op.Input("dloss").Input("target").Input("row_weight").Output("dlogp");
  op.Attr("shape", AttrType::kInts).Attr("ignore_index", AttrType::kInt, int64_t{-100});
  op.doc = "-row_weight dloss at the target, 0 elsewhere.";
  op.infer = [](InferContext& c) -> Status {
    const Shape shape(c.attr<Dims>(0));
    if (shape.ndim() == 0 || CheckedNumel(shape) < 0) {
      return ShapeMismatch(c.op(), "the result", shape, "at least 1 dim");
    }
    const Shape rows = RowShape(shape);
    for (int i = 0; i < 3; ++i) {
      if (c.shape(i) != rows) {
        return ShapeMismatch(c.op(), "an input", c.shape(i), rows.ToString());
      }
    }
    if (c.dtype(1) != DType::kInt64) return DTypeMismatch(c.op(), "target", c.dtype(1), "int64");
    if (!IsFloating(c.dtype(0)))
      return UnsupportedDType(c.op(), "dloss", c.dtype(0), kFloatingDTypes);
    if (c.dtype(2) != c.dtype(0)) {
      return DTypeMismatch(c.op(), "row_weight", c.dtype(2), Name(c.dtype(0)));
    }
    c.SetOutput(0, shape, c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    if (c.inputs[0].ndim() == 0) return out;
    const Sbp rows = Sbp::Split(0);
    out.push_back({{rows, rows, rows}, {rows}});
    return out;
  };
  op.sbp_text = "split by rows";
  op.infer_physical = [](PhysicalContext& c) -> Status {
    c.attrs[0] = c.OutputShape(0).dims();
    return OkStatus();
  };
  op.save = [](const Attrs&, Needs needs) {
    return SavePlan{.inputs =
                        Bit(1) | (needs & Bit(0) ? Bit(2) : 0) | (needs & Bit(2) ? Bit(0) : 0)};
  };
  // Linear in dloss and in row_weight: -row_weight g[target], -dloss g[target].
  op.backward = [](GradContext& c) -> Status {
    static const OpExpr& forward = OpBuilder("nll_loss")
                                       .Input("logp")
                                       .Input("target")
                                       .Input("weight")
                                       .Output("loss")
                                       .Output("row_weight")
                                       .Attr("ignore_index")
                                       .Get();
    const Tensor inputs[] = {c.grad(0), c.input(1), Tensor()};
    OFL_ASSIGN_OR_RETURN(TensorList picked, CallAll(forward, inputs, {c.attr<int64_t>(1)}));
    if (c.needs(0)) OFL_RETURN_IF_ERROR(c.Set(0, functional::Mul(picked[0], c.input(2))));
    return c.needs(2) ? c.Set(2, functional::Mul(picked[0], c.input(0))) : OkStatus();
  };
}

OFL_REGISTER_OP("nll_loss", DefineNllLoss);
OFL_REGISTER_OP("nll_loss_backward", DefineNllLossBackward);

}  // namespace
}  // namespace oneflow_lite
