// SPDX-License-Identifier: Apache-2.0
//
// Scans along one dim, from either end.
#include "functional/scan.h"

#include "functional/binary.h"
#include "functional/cat.h"
#include "functional/creation.h"
#include "functional/index.h"
#include "functional/select.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"
#include "ops/term.h"

namespace oneflow_lite {
namespace {

constexpr int kAlong = 0, kReverse = 1, kShifted = 2;  // the attributes

// Which dtypes there are.
enum class Takes { kAll, kNumbers, kFloats };

Status CheckScan(const InferContext& c, Takes takes) {
  const int64_t dim = c.attr<int64_t>(kAlong), ndim = std::max(1, c.shape(0).ndim());
  if (dim < 0 || dim >= ndim) {
    return Error(ErrorKind::kIndex, c.op(), "(): dim ", dim, " is out of range [0, ", ndim - 1,
                 "] for shape ", c.shape(0).ToString());
  }
  if (takes == Takes::kNumbers && c.dtype(0) == DType::kBool) {
    return UnsupportedDType(c.op(), "input", DType::kBool, "an integer or a floating dtype");
  }
  if (takes == Takes::kFloats && !IsFloating(c.dtype(0))) {
    return UnsupportedDType(c.op(), "the input", c.dtype(0), kFloatingDTypes);
  }
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.dtype(i) != c.dtype(0)) {
      return DTypeMismatch(c.op(), "the second tensor", c.dtype(i), Name(c.dtype(0)));
    }
    if (c.shape(i) != c.shape(0)) {
      return ShapeMismatch(c.op(), "the second tensor", c.shape(i), c.shape(0).ToString());
    }
  }
  return OkStatus();
}

// The first two attributes, sharding and inference; outputs are like the input, places int64.
void DefineScan(OpDef& op, Takes takes) {
  const size_t outputs = op.outputs.size();
  op.Attr("dim", AttrType::kInt).Attr("reverse", AttrType::kBool, false);
  op.infer = [takes](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckScan(c, takes));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    if (c.num_outputs() > 1) c.SetOutput(1, c.shape(0), DType::kInt64);
    return OkStatus();
  };
  op.sbp = [outputs](const SbpContext& c) {
    SbpSignatures out;
    for (int d = 0; d < c.inputs[0].ndim(); ++d) {
      if (d == c.attrs.get<int64_t>(kAlong)) continue;
      SbpSignature s;
      s.inputs.assign(c.inputs.size(), Sbp::Split(d));
      s.outputs.assign(outputs, Sbp::Split(d));
      out.push_back(s);
    }
    return out;
  };
  op.sbp_text = "split on any dim but the scanned one";
}

void DefineCumSum(OpDef& op) {
  op.Input("in").Output("out");
  DefineScan(op, Takes::kNumbers);
  op.doc = "Running sums along a dim, from its end where reverse.";
  // An element has its part in all sums from it on.
  op.backward = [](GradContext& c) -> Status {
    static const OpExpr& cumsum =
        OpBuilder("cumsum").Input("in").Output("out").Attr("dim").Attr("reverse").Get();
    return c.Set(0, Call(cumsum, {c.grad(0)}, {c.attr<int64_t>(kAlong), !c.attr<bool>(kReverse)}));
  };
}

// x moved by one place; at the edge that this leaves is `fill`, or what was there.
StatusOr<Tensor> Moved(const Tensor& x, int64_t dim, bool towards_end, std::optional<double> fill) {
  if (x.numel() == 0) return x;
  if (x.ndim() == 0) {
    return fill ? functional::Full({}, Scalar(*fill), x.dtype(), x.device()) : StatusOr<Tensor>(x);
  }
  const int64_t n = x.shape()[static_cast<int>(dim)];
  OFL_ASSIGN_OR_RETURN(Tensor rest, functional::Narrow(x, dim, towards_end ? 0 : 1, n - 1));
  OFL_ASSIGN_OR_RETURN(Tensor edge, functional::Narrow(x, dim, towards_end ? 0 : n - 1, 1));
  if (fill) {
    OFL_ASSIGN_OR_RETURN(edge,
                         functional::Full(edge.shape(), Scalar(*fill), x.dtype(), x.device()));
  }
  const TensorList parts = towards_end ? TensorList{edge, rest} : TensorList{rest, edge};
  return functional::Cat(parts, dim);
}

// dx[k] = (product before k) sum over i >= k of dy[i] times the product of x[k + 1] ... x[i], and
// that sum is a linear scan from the end: no division, so that zeros are like other numbers.
Status CumProdGrad(GradContext& c) {
  static const OpExpr& before = OpBuilder("products_before")
                                    .Input("in")
                                    .Input("factor")
                                    .Output("out")
                                    .Attr("dim")
                                    .Attr("reverse")
                                    .Get();
  const int64_t dim = c.attr<int64_t>(kAlong);
  const bool reverse = c.attr<bool>(kReverse);
  const Tensor& x = c.input(0);
  OFL_ASSIGN_OR_RETURN(Tensor sums,
                       functional::LinearScan(c.grad(0), x, dim, !reverse, /*shifted=*/true));
  if (!GradEnabled()) return c.Set(0, Call(before, {x, sums}, {dim, reverse}));
  OFL_ASSIGN_OR_RETURN(Tensor moved, Moved(x, dim, !reverse, 1));
  OFL_ASSIGN_OR_RETURN(Tensor products, functional::CumProdFrom(moved, dim, reverse));
  return c.Set(0, functional::Mul(products, sums));
}

void DefineCumProd(OpDef& op) {
  op.Input("in").Output("out");
  DefineScan(op, Takes::kNumbers);
  op.doc = "Running products along a dim, from its end where reverse.";
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(0)}; };
  op.backward = CumProdGrad;
}

void DefineExtremes(OpDef& op) {
  op.Input("in").Output("values").Output("indices");
  DefineScan(op, Takes::kAll);
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(1)}; };
  op.backward = [](GradContext& c) -> Status {
    if (!c.grad(0).defined()) return OkStatus();
    if (c.spec(0).shape.ndim() == 0) return c.Set(0, c.grad(0));
    OFL_ASSIGN_OR_RETURN(Tensor zeros,
                         functional::Zeros(c.spec(0).shape, c.grad(0).dtype(), c.spec(0).device));
    return c.Set(0, functional::ScatterAddInto(zeros, c.attr<int64_t>(kAlong), c.output(1).Detach(),
                                               c.grad(0)));
  };
}
void DefineCumMax(OpDef& op) {
  DefineExtremes(op);
  op.doc = "Running maxima along a dim and the last place of each; NaN stays.";
}
void DefineCumMin(OpDef& op) {
  DefineExtremes(op);
  op.doc = "Running minima along a dim and the last place of each; NaN stays.";
}

// dx[k] = exp(x[k] - y[k]) t[k] with t[k] = dy[k] + exp(y[k] - y[k + 1]) t[k + 1], whose factors
// are at most 1. Where y is still -inf, the difference counts as 0.
Status LogCumSumExpGrad(GradContext& c) {
  const int64_t dim = c.attr<int64_t>(kAlong);
  const bool reverse = c.attr<bool>(kReverse);
  const Tensor &x = c.input(0), &y = c.output(0);
  OFL_ASSIGN_OR_RETURN(Tensor next, Moved(y, dim, reverse, std::nullopt));
  const auto ratio = [](const Tensor& from, const Tensor& to) -> StatusOr<Tensor> {
    OFL_ASSIGN_OR_RETURN(Tensor far, functional::Sub(from, to));
    OFL_ASSIGN_OR_RETURN(Tensor same, functional::Eq(from.Detach(), to.Detach()));
    OFL_ASSIGN_OR_RETURN(far, functional::Where(same, Scalar(0), far));
    return functional::Exp(far);
  };
  OFL_ASSIGN_OR_RETURN(Tensor decay, ratio(y, next));
  OFL_ASSIGN_OR_RETURN(Tensor sums,
                       functional::LinearScan(c.grad(0), decay, dim, !reverse, /*shifted=*/false));
  OFL_ASSIGN_OR_RETURN(Tensor share, ratio(x, y));
  return c.Set(0, functional::Mul(share, sums));
}

void DefineLogCumSumExp(OpDef& op) {
  op.Input("in").Output("out");
  DefineScan(op, Takes::kFloats);
  op.doc = "log of the running sum of exp(x) along a dim, without overflow.";
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(0), .outputs = Bit(0)}; };
  op.backward = LogCumSumExpGrad;
}

// The gradient of x is the scan back with the factors that lie between the same neighbours; that of
// a factor is this times the sum that it was multiplied with.
Status LinearScanGrad(GradContext& c) {
  const int64_t dim = c.attr<int64_t>(kAlong);
  const bool reverse = c.attr<bool>(kReverse), shifted = c.attr<bool>(kShifted);
  OFL_ASSIGN_OR_RETURN(Tensor back,
                       functional::LinearScan(c.grad(0), c.input(1), dim, !reverse, !shifted));
  if (c.needs(0)) OFL_RETURN_IF_ERROR(c.Set(0, back));
  if (!c.needs(1)) return OkStatus();
  // factor[i] s[i - 1] is a part of s[i], or shifted factor[i] s[i] one of s[i + 1].
  Tensor of = back, with = c.output(0);
  if (shifted) {
    OFL_ASSIGN_OR_RETURN(of, Moved(back, dim, reverse, 0));
  } else {
    OFL_ASSIGN_OR_RETURN(with, Moved(with, dim, !reverse, 0));
  }
  return c.Set(1, functional::Mul(of, with));
}

void DefineLinearScan(OpDef& op) {
  op.Input("in").Input("factor").Output("out");
  DefineScan(op, Takes::kFloats);
  op.Attr("shifted", AttrType::kBool, false);
  op.doc = "s[i] = in[i] + factor[i] s[i - 1] along a dim; with factor[i - 1] where shifted.";
  op.save = [](const Attrs&, Needs needs) {
    return SavePlan{.inputs = Bit(1), .outputs = needs & Bit(1) ? Bit(0) : 0};
  };
  op.backward = LinearScanGrad;
}

void DefineProductsBefore(OpDef& op) {
  op.Input("in").Input("factor").Output("out");
  DefineScan(op, Takes::kFloats);
  op.doc = "factor times the product of the elements of in before each one along a dim.";
  op.differentiable = false;
}

OFL_REGISTER_OP("cumsum", DefineCumSum);
OFL_REGISTER_OP("cumprod", DefineCumProd);
OFL_REGISTER_OP("cummax", DefineCumMax);
OFL_REGISTER_OP("cummin", DefineCumMin);
OFL_REGISTER_OP("logcumsumexp", DefineLogCumSumExp);
OFL_REGISTER_OP("linear_scan", DefineLinearScan);
OFL_REGISTER_OP("products_before", DefineProductsBefore);

}  // namespace
}  // namespace oneflow_lite
