// SPDX-License-Identifier: Apache-2.0
//
// Gradients of reductions. Where no gradient of the gradient is wanted, one op takes the last step;
// otherwise the formula is composed of functors.
#include <algorithm>
#include <cmath>

#include "functional/binary.h"
#include "functional/cat.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/reduce.h"
#include "functional/scan.h"
#include "functional/select.h"
#include "functional/statistics.h"
#include "functional/ternary.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/op_expr.h"
#include "ops/reduce.h"
#include "ops/term.h"

namespace oneflow_lite {
namespace {

using functional::Where;

const Dims& DimsOf(const GradContext& c) { return c.attr<Dims>(kDims); }

// ---- The ops of one step: dy, x and more, the reduced dims being there with size 1. ----

struct GradRow {
  const char* name;
  const char* doc;
  const char* wide;   // an input of the compute type, or null
  const char* given;  // one of the dtype, or null
  const char* count;  // one of int64, or null
};
constexpr GradRow kGradRows[] = {
    {"var_backward", "The gradient of var: dy factor (x - mean).", "mean", nullptr, nullptr},
    {"std_backward", "The gradient of std: dy factor (x - mean) / y, 0 where y is 0.", "mean", "y",
     nullptr},
    {"vector_norm_backward", "The gradient of vector_norm with a finite p, which is the factor.",
     nullptr, "y", nullptr},
    {"logsumexp_backward", "The gradient of logsumexp: dy exp(x - y).", "y", nullptr, nullptr},
    {"prod_backward", "The gradient of prod, from the results of prod_parts.", "product", nullptr,
     "zeros"},
};

Status InferGrad(const GradRow& row, InferContext& c) {
  const Shape& x = c.shape(1);
  const DType dtype = c.dtype(1);
  if (!IsFloating(dtype)) return UnsupportedDType(c.op(), "x", dtype, kFloatingDTypes);
  for (int64_t d : c.attr<Dims>(kDims)) {
    if (d < 0 || d >= x.ndim()) {
      return Error(ErrorKind::kIndex, c.op(), "(): dims ", ToString(c.attr<Dims>(kDims)),
                   " are not those of shape ", x.ToString());
    }
  }
  const Shape reduced = ReducedShape(x, c.attr<Dims>(kDims), true);
  const auto check = [&](int i, const char* name, DType expected) -> Status {
    if (c.dtype(i) != expected) return DTypeMismatch(c.op(), name, c.dtype(i), Name(expected));
    if (c.shape(i) == reduced) return OkStatus();
    return ShapeMismatch(c.op(), name, c.shape(i), reduced.ToString());
  };
  OFL_RETURN_IF_ERROR(check(0, "dy", dtype));
  int i = 2;
  if (row.wide) OFL_RETURN_IF_ERROR(check(i++, row.wide, ComputeType(dtype)));
  if (row.given) OFL_RETURN_IF_ERROR(check(i++, row.given, dtype));
  if (row.count) OFL_RETURN_IF_ERROR(check(i++, row.count, DType::kInt64));
  c.SetOutput(0, x, dtype);
  return OkStatus();
}

template <size_t kIndex>
void DefineGrad(OpDef& op) {
  const GradRow& row = kGradRows[kIndex];
  op.Input("dy").Input("x");
  if (row.wide) op.Input(row.wide);
  if (row.given) op.Input(row.given);
  if (row.count) op.Input(row.count);
  op.Output("dx").Attr("dims", AttrType::kInts).Attr("factor", AttrType::kFloat);
  op.doc = row.doc;
  op.differentiable = false;
  op.infer = [&row](InferContext& c) { return InferGrad(row, c); };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    const Dims& dims = c.attrs.get<Dims>(kDims);
    for (int d = 0; d < c.inputs[1].ndim(); ++d) {
      if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
      SbpSignature s{{}, {Sbp::Split(d)}};
      s.inputs.assign(c.inputs.size(), Sbp::Split(d));
      out.push_back(s);
    }
    return out;
  };
  op.sbp_text = kSplitKept;
}
template <size_t... kIndex>
bool RegisterGradRows(std::index_sequence<kIndex...>) {
  return (internal::AppendOp(kGradRows[kIndex].name, &DefineGrad<kIndex>, __FILE__, __LINE__) &&
          ...);
}
const bool grads_registered = RegisterGradRows(std::make_index_sequence<std::size(kGradRows)>());

const OpExpr& GradExpr(const GradRow& row) {
  OpBuilder b(row.name);
  b.Input("dy").Input("x");
  if (row.wide) b.Input(row.wide);
  if (row.given) b.Input(row.given);
  if (row.count) b.Input(row.count);
  return b.Output("dx").Attr("dims").Attr("factor").Get();
}

// These ops take dims that are neighbours: others are brought to the end, and back.
template <size_t kIndex>
StatusOr<Tensor> CallGrad(const GradContext& c, std::initializer_list<Tensor> inputs,
                          double factor) {
  static const OpExpr& op = GradExpr(kGradRows[kIndex]);
  const Dims& dims = DimsOf(c);
  const auto n = static_cast<int64_t>(dims.size());
  if (n == 0 || dims[n - 1] - dims[0] == n - 1) return Call(op, inputs, {dims, factor});
  Dims order;
  for (int d = 0; d < c.spec(0).shape.ndim(); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), d)) order.push_back(d);
  }
  Dims last, back(order.size() + dims.size());
  for (const int64_t d : dims) {
    last.push_back(static_cast<int64_t>(order.size()));
    order.push_back(d);
  }
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
  TensorList moved;
  for (const Tensor& t : inputs) {
    OFL_ASSIGN_OR_RETURN(Tensor m, functional::Permute(t, order));
    moved.push_back(std::move(m));
  }
  OFL_ASSIGN_OR_RETURN(const TensorList dx, CallAll(op, moved, {last, factor}));
  return functional::Permute(dx[0], back);
}
enum : size_t { kVar, kStd, kNorm, kLogSumExp, kProd };

// ---- Composed. ----

// The gradient that came, in x's dtype, with the reduced dims.
StatusOr<Tensor> Arrived(const GradContext& c, int i = 0) {
  OFL_ASSIGN_OR_RETURN(Tensor g, KeepDims(c, c.grad(i)));
  return functional::Cast(g, c.spec(0).dtype);
}

// g, cut into equal parts among the elements that equal the extreme y: where that is NaN, which
// comes before all numbers, those that are NaN.
StatusOr<Tensor> SharedAmong(const GradContext& c, const Tensor& x, const Tensor& y,
                             const Tensor& g) {
  OFL_ASSIGN_OR_RETURN(Tensor top, KeepDims(c, y.Detach()));
  OFL_ASSIGN_OR_RETURN(Tensor hit, functional::IsClose(x.Detach(), top, 0, 0, true));
  OFL_ASSIGN_OR_RETURN(Tensor count, functional::CountNonzero(hit, DimsOf(c), true));
  OFL_ASSIGN_OR_RETURN(Tensor share, functional::Div(g, count));
  return functional::Where(hit, share, Scalar(0));
}

// The product of all elements before each one along dim, or after it.
StatusOr<Tensor> ProductsBeside(const Tensor& x, int64_t dim, bool after) {
  const int64_t n = x.shape()[static_cast<int>(dim)];
  OFL_ASSIGN_OR_RETURN(Tensor rest, functional::Narrow(x, dim, after ? 1 : 0, n - 1));
  OFL_ASSIGN_OR_RETURN(Tensor edge, functional::Narrow(x, dim, 0, 1));
  OFL_ASSIGN_OR_RETURN(Tensor one, functional::Ones(edge.shape(), x.dtype(), x.device()));
  const TensorList parts = after ? TensorList{rest, one} : TensorList{one, rest};
  OFL_ASSIGN_OR_RETURN(Tensor shifted, functional::Cat(parts, dim));
  return functional::CumProdFrom(shifted, dim, after);
}

// The product of the others, for each element: what can be differentiated again where it is 0 too.
StatusOr<Tensor> ProductsOfOthers(const Tensor& x, const Dims& dims) {
  if (x.numel() == 0 || dims.empty()) {
    return functional::Ones(x.shape(), x.dtype(), x.device());
  }
  Shape flat;
  for (int d = 0; d < x.ndim(); ++d) {
    const bool joined = d > dims.front() && d <= dims.back();
    if (joined) {
      flat.dims().back() *= x.shape()[d];
    } else {
      flat.dims().push_back(x.shape()[d]);
    }
  }
  OFL_ASSIGN_OR_RETURN(Tensor line, functional::Reshape(x, flat));
  OFL_ASSIGN_OR_RETURN(Tensor before, ProductsBeside(line, dims.front(), false));
  OFL_ASSIGN_OR_RETURN(Tensor after, ProductsBeside(line, dims.front(), true));
  OFL_ASSIGN_OR_RETURN(Tensor others, functional::Mul(before, after));
  return functional::Reshape(others, x.shape());
}

}  // namespace

Status ProdGrad(GradContext& c) {
  static const OpExpr& parts = OpBuilder("prod_parts")
                                   .Input("in")
                                   .Output("product")
                                   .Output("zeros")
                                   .Attr("dims")
                                   .Attr("keepdim")
                                   .Get();
  const Tensor& x = c.input(0);
  OFL_ASSIGN_OR_RETURN(Tensor g, Arrived(c));
  if (g.numel() == x.numel()) return c.Set(0, functional::Reshape(g, x.shape()));  // of one element
  if (!GradEnabled()) {
    const Tensor inputs[] = {x};
    OFL_ASSIGN_OR_RETURN(TensorList p, CallAll(parts, inputs, {DimsOf(c), true}));
    return c.Set(0, CallGrad<kProd>(c, {g, x, p[0], p[1]}, 0));
  }
  OFL_ASSIGN_OR_RETURN(Tensor others, ProductsOfOthers(x, DimsOf(c)));
  return c.Set(0, functional::Mul(g, others));
}

Status NanSumGrad(GradContext& c) {
  OFL_ASSIGN_OR_RETURN(Tensor g, Arrived(c));
  OFL_ASSIGN_OR_RETURN(Tensor nan, functional::IsNan(c.input(0).Detach()));
  return c.Set(0, Where(nan, Scalar(0), g));
}

Status NanMeanGrad(GradContext& c) {
  OFL_ASSIGN_OR_RETURN(Tensor g, Arrived(c));
  const Tensor x = c.input(0).Detach();
  OFL_ASSIGN_OR_RETURN(Tensor number, functional::Eq(x, x));
  OFL_ASSIGN_OR_RETURN(Tensor count, functional::CountNonzero(number, DimsOf(c), true));
  OFL_ASSIGN_OR_RETURN(Tensor share, functional::Div(g, count));
  return c.Set(0, Where(number, share, Scalar(0)));
}

Status ExtremeGrad(GradContext& c) {
  OFL_ASSIGN_OR_RETURN(Tensor g, KeepDims(c, c.grad(0)));
  return c.Set(0, SharedAmong(c, c.input(0), c.output(0), g));
}

Status MinMaxGrad(GradContext& c) {
  Term sum;
  for (int i = 0; i < 2; ++i) {
    if (!c.grad(i).defined()) continue;
    OFL_ASSIGN_OR_RETURN(Tensor g, KeepDims(c, c.grad(i)));
    sum = sum + Term{SharedAmong(c, c.input(0), c.output(i), g)};
  }
  return sum.nothing() ? OkStatus() : c.Set(0, sum.value);
}

Status NormGrad(GradContext& c) {
  const double p = c.attr<double>(kNumber);
  const Tensor& x = c.input(0);
  OFL_ASSIGN_OR_RETURN(Tensor g, Arrived(c));
  if (p == 0) return c.Set(0, functional::Zeros(x.shape(), x.dtype(), x.device()));
  OFL_ASSIGN_OR_RETURN(Tensor y, KeepDims(c, c.output(0)));
  OFL_ASSIGN_OR_RETURN(y, functional::Cast(y, x.dtype()));
  if (std::isfinite(p) && !GradEnabled()) return c.Set(0, CallGrad<kNorm>(c, {g, x, y}, p));
  OFL_ASSIGN_OR_RETURN(Tensor below, functional::Lt(x.Detach(), Scalar(0)));
  OFL_ASSIGN_OR_RETURN(Tensor zero, functional::Eq(x.Detach(), Scalar(0)));
  OFL_ASSIGN_OR_RETURN(Tensor size, functional::Abs(x));
  if (!std::isfinite(p)) {
    OFL_ASSIGN_OR_RETURN(Tensor share, SharedAmong(c, size, y, g));
    OFL_ASSIGN_OR_RETURN(share, Where(zero, Scalar(0), share));
    OFL_ASSIGN_OR_RETURN(Tensor minus, functional::Neg(share));
    OFL_ASSIGN_OR_RETURN(share, Where(below, minus, share));
    if (GradEnabled() && autograd::RequiresGrad(x)) {  // a history that leads to x: its slope is 0
      OFL_ASSIGN_OR_RETURN(const Tensor everywhere, functional::Eq(share, share));
      OFL_ASSIGN_OR_RETURN(share, Where(everywhere, share, x));
    }
    return c.Set(0, share);
  }
  // dy sign(x) (|x| / y)^(p - 1), with numbers instead of the zeros of x and y
  OFL_ASSIGN_OR_RETURN(Tensor nothing, functional::Eq(y.Detach(), Scalar(0)));
  OFL_ASSIGN_OR_RETURN(y, Where(nothing, Scalar(1), y));
  OFL_ASSIGN_OR_RETURN(size, Where(zero, Scalar(1), size));
  OFL_ASSIGN_OR_RETURN(Tensor ratio, functional::Div(size, y));
  if (p != 2) {
    OFL_ASSIGN_OR_RETURN(ratio, functional::Pow(ratio, Scalar(p - 1)));
    // A norm of p < 0 is 0 where any element is, and stays so when the others change.
    if (p < 0) {
      OFL_ASSIGN_OR_RETURN(ratio, Where(nothing, Scalar(0), ratio));
    }
  } else {  // whose slope at 0 is that of x / y
    OFL_ASSIGN_OR_RETURN(Tensor slope, functional::Div(x, y));
    return c.Set(0, functional::Mul(g, slope));
  }
  OFL_ASSIGN_OR_RETURN(Tensor minus, functional::Neg(ratio));
  OFL_ASSIGN_OR_RETURN(Tensor slope, Where(below, minus, ratio));
  OFL_ASSIGN_OR_RETURN(slope, Where(zero, Scalar(0), slope));
  return c.Set(0, functional::Mul(g, slope));
}

Status LogSumExpGrad(GradContext& c) {
  const Tensor& x = c.input(0);
  const DType wide = ComputeType(x.dtype());
  OFL_ASSIGN_OR_RETURN(Tensor g, Arrived(c));
  Tensor y = c.output(0);
  if (!GradEnabled()) {
    if (y.dtype() == wide) {
      OFL_ASSIGN_OR_RETURN(y, KeepDims(c, y));
    } else {  // its rounding would be the gradient's
      OFL_ASSIGN_OR_RETURN(y, functional::LogSumExpAs(x, DimsOf(c), true, wide));
    }
    return c.Set(0, CallGrad<kLogSumExp>(c, {g, x, y}, 1));
  }
  OFL_ASSIGN_OR_RETURN(y, KeepDims(c, y));
  OFL_ASSIGN_OR_RETURN(y, functional::Cast(y, x.dtype()));
  OFL_ASSIGN_OR_RETURN(Tensor far, functional::Sub(x, y));
  OFL_ASSIGN_OR_RETURN(Tensor share, functional::Exp(far));
  return c.Set(0, functional::Mul(g, share));
}

namespace {

// dvar over all elements, of which no degrees of freedom are left: that of a variance of the
// squares over 0, though a constant's is not. dvar 0 gives NaN.
StatusOr<Tensor> GradOfNoFreedom(const Tensor& x, const Dims& dims, const Tensor& g) {
  OFL_ASSIGN_OR_RETURN(Tensor mean, functional::Mean(x.Detach(), dims, true));
  OFL_ASSIGN_OR_RETURN(Tensor there, functional::Eq(x.Detach(), mean));
  OFL_ASSIGN_OR_RETURN(Tensor infinity,
                       functional::Full(x.shape(), Scalar(HUGE_VAL), x.dtype(), x.device()));
  OFL_ASSIGN_OR_RETURN(Tensor slope, Where(there, Scalar(std::nan("")), infinity));
  return functional::Mul(g, slope);
}

// dvar factor (x - mean), over the root y where there is one.
StatusOr<Tensor> DeviationGrad(const GradContext& c, bool root, double n) {
  const Tensor& x = c.input(0);
  const double correction = c.attr<double>(kNumber);
  // Negative where the correction exceeds n, though the variance is then over 0: as in PyTorch.
  const double factor = (root ? 1.0 : 2.0) / (n - correction);
  OFL_ASSIGN_OR_RETURN(Tensor g, Arrived(c));
  Tensor y;
  if (root) {
    OFL_ASSIGN_OR_RETURN(y, KeepDims(c, c.output(0)));
  }
  const bool freedom = !std::isinf(correction);
  if (!GradEnabled() && freedom) {
    OFL_ASSIGN_OR_RETURN(Tensor mean, functional::Mean(x, DimsOf(c), true, ComputeType(x.dtype())));
    return root ? CallGrad<kStd>(c, {g, x, mean, y}, factor)
                : CallGrad<kVar>(c, {g, x, mean}, factor);
  }
  if (freedom) {
    OFL_ASSIGN_OR_RETURN(g, functional::Mul(g, Scalar(factor)));
  }
  if (root) {
    OFL_ASSIGN_OR_RETURN(Tensor nothing, functional::Eq(y.Detach(), Scalar(0)));
    OFL_ASSIGN_OR_RETURN(y, Where(nothing, Scalar(1), y));
    OFL_ASSIGN_OR_RETURN(g, functional::Div(g, y));
    OFL_ASSIGN_OR_RETURN(g, Where(nothing, Scalar(0), g));
  }
  if (!freedom) return GradOfNoFreedom(x, DimsOf(c), g);
  OFL_ASSIGN_OR_RETURN(Tensor mean, functional::Mean(x, DimsOf(c), true));
  OFL_ASSIGN_OR_RETURN(Tensor d, functional::Sub(x, mean));
  return functional::Mul(g, d);
}

// Of the variance or its root, and of the mean: dmean / n.
Status SpreadGrad(GradContext& c, bool root) {
  const Tensor& x = c.input(0);
  const double n = TermsOf(x.shape(), DimsOf(c));
  Term sum;
  if (c.grad(0).defined()) sum.value = DeviationGrad(c, root, n);
  if (c.grad(1).defined()) {
    OFL_ASSIGN_OR_RETURN(Tensor g, Arrived(c, 1));
    OFL_ASSIGN_OR_RETURN(g, functional::Div(g, Scalar(n)));
    sum = sum + Term{functional::Expand(g, x.shape())};
  }
  return sum.nothing() ? OkStatus() : c.Set(0, sum.value);
}

}  // namespace

Status VarGrad(GradContext& c) { return SpreadGrad(c, false); }
Status StdGrad(GradContext& c) { return SpreadGrad(c, true); }

}  // namespace oneflow_lite
