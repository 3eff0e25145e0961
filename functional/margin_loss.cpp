// SPDX-License-Identifier: Apache-2.0
#include "functional/margin_loss.h"

#include "functional/binary.h"
#include "functional/compact.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/index.h"
#include "functional/index_rows.h"
#include "functional/loss.h"
#include "functional/nll_loss.h"
#include "functional/reduce.h"
#include "functional/scan.h"
#include "functional/select.h"
#include "functional/statistics.h"
#include "functional/ternary.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

StatusOr<Tensor> Reduced(const char* name, const Tensor& loss, absl::string_view reduction) {
  OFL_RETURN_IF_ERROR(CheckReduction(name, reduction));
  if (reduction == "none") return loss;
  return reduction == "mean" ? Mean(loss) : Sum(loss, {}, false, loss.dtype());
}

// max(x, 0)
StatusOr<Tensor> Hinge(const Tensor& x) { return Clamp(x, Operand(Scalar(0.0))); }

StatusOr<Tensor> Distance(const Tensor& a, const Tensor& b, double p, double eps) {
  OFL_ASSIGN_OR_RETURN(const Tensor off, Sub(a, b));
  OFL_ASSIGN_OR_RETURN(const Tensor moved, Add(off, Scalar(eps)));
  return VectorNorm(moved, p, Dims{-1});
}

// x and target as rows [n, classes] and [n], whether they were one.
struct Rows {
  Tensor x, target;
  bool one = false;
};
StatusOr<Rows> RowsOf(const char* name, const Tensor& x, const Tensor& target, int target_dims) {
  if (!x.defined()) return NotDefined(name, "input");
  if (!target.defined()) return NotDefined(name, "target");
  if (x.ndim() > 2 || (x.ndim() > 0 && x.shape()[x.ndim() - 1] == 0)) {
    return ShapeMismatch(name, "input", x.shape(), "[n, classes] or [classes], at least one class");
  }
  if (!IsIntegral(target.dtype())) {
    return DTypeMismatch(name, "target", target.dtype(), "an integer dtype");
  }
  Rows rows = {x, target, x.ndim() < 2};
  if (rows.one) {
    OFL_ASSIGN_OR_RETURN(rows.x, Reshape(x, {1, -1}));
  }
  Dims expected = {rows.x.shape()[0]};
  if (target_dims == 2) expected.push_back(rows.x.shape()[1]);
  if (target.numel() != Shape(expected).numel()) {
    return ShapeMismatch(name, "target", target.shape(), Shape(expected).ToString());
  }
  OFL_ASSIGN_OR_RETURN(rows.target, Cast(target, DType::kInt64));
  OFL_ASSIGN_OR_RETURN(rows.target, Reshape(rows.target, expected));
  return rows;
}

}  // namespace

StatusOr<Tensor> CosineEmbeddingLoss(const Tensor& given1, const Tensor& given2,
                                     const Tensor& target, double margin,
                                     absl::string_view reduction) {
  constexpr char kName[] = "cosine_embedding_loss";
  constexpr double kEps = 1e-12;
  if (!given1.defined()) return NotDefined(kName, "input1");
  if (!given2.defined()) return NotDefined(kName, "input2");
  DType dtype = PromoteTypes(given1.dtype(), given2.dtype());
  dtype = IsFloating(dtype) ? dtype : DType::kFloat32;
  OFL_ASSIGN_OR_RETURN(const Tensor x1, Cast(given1, dtype));
  OFL_ASSIGN_OR_RETURN(const Tensor x2, Cast(given2, dtype));
  if (!target.defined()) return NotDefined(kName, "target");
  if (x1.ndim() < 1 || x1.ndim() > 2 || x1.ndim() != x2.ndim() || target.ndim() != x1.ndim() - 1) {
    return Error(ErrorKind::kShape, kName, "(): the inputs have shapes ", x1.shape().ToString(),
                 " and ", x2.shape().ToString(), ", target ", target.shape().ToString(),
                 ", expected [n, m], [n, m] and [n], or [m], [m] and []");
  }
  const Dims last = {-1};
  OFL_ASSIGN_OR_RETURN(const Tensor products, Mul(x1, x2));
  OFL_ASSIGN_OR_RETURN(const Tensor dot, Sum(products, last, false, products.dtype()));
  Tensor squares[2];
  for (int i = 0; i < 2; ++i) {
    OFL_ASSIGN_OR_RETURN(const Tensor square, Square(i == 0 ? x1 : x2));
    OFL_ASSIGN_OR_RETURN(const Tensor sum, Sum(square, last, false, square.dtype()));
    OFL_ASSIGN_OR_RETURN(squares[i], Add(sum, Scalar(kEps)));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor both, Mul(squares[0], squares[1]));
  OFL_ASSIGN_OR_RETURN(const Tensor root, Sqrt(both));
  OFL_ASSIGN_OR_RETURN(const Tensor cosine, Div(dot, root));
  OFL_ASSIGN_OR_RETURN(const Tensor apart, Sub(Scalar(1.0), cosine));
  OFL_ASSIGN_OR_RETURN(const Tensor over, Sub(cosine, Scalar(margin)));
  OFL_ASSIGN_OR_RETURN(const Tensor hinge, Hinge(over));
  OFL_ASSIGN_OR_RETURN(const Tensor same, Eq(target, Scalar(1)));
  OFL_ASSIGN_OR_RETURN(const Tensor other, Eq(target, Scalar(-1)));
  OFL_ASSIGN_OR_RETURN(const Tensor far, Where(other, hinge, Scalar(0.0)));
  OFL_ASSIGN_OR_RETURN(const Tensor loss, Where(same, apart, far));
  return Reduced(kName, loss, reduction);
}

StatusOr<Tensor> TripletMarginLoss(const Tensor& anchor, const Tensor& positive,
                                   const Tensor& negative, double margin, double p, double eps,
                                   bool swap, absl::string_view reduction) {
  constexpr char kName[] = "triplet_margin_loss";
  if (!anchor.defined()) return NotDefined(kName, "anchor");
  if (!positive.defined()) return NotDefined(kName, "positive");
  if (!negative.defined()) return NotDefined(kName, "negative");
  if (!(margin > 0)) return BadValue(kName, "margin", absl::StrCat(margin), "positive");
  OFL_ASSIGN_OR_RETURN(const Tensor near, Distance(anchor, positive, p, eps));
  OFL_ASSIGN_OR_RETURN(Tensor far, Distance(anchor, negative, p, eps));
  if (swap) {
    OFL_ASSIGN_OR_RETURN(const Tensor other, Distance(positive, negative, p, eps));
    OFL_ASSIGN_OR_RETURN(far, Minimum(far, other));
  }
  OFL_ASSIGN_OR_RETURN(const Tensor off, Sub(near, far));
  OFL_ASSIGN_OR_RETURN(const Tensor over, Add(off, Scalar(margin)));
  OFL_ASSIGN_OR_RETURN(const Tensor loss, Hinge(over));
  return Reduced(kName, loss, reduction);
}

StatusOr<Tensor> MultiMarginLoss(const Tensor& x, const Tensor& target, int64_t p, double margin,
                                 const Tensor& weight, absl::string_view reduction) {
  constexpr char kName[] = "multi_margin_loss";
  if (p != 1 && p != 2) return BadValue(kName, "p", absl::StrCat(p), "1 or 2");
  static const OpExpr& op = OpBuilder("multi_margin")
                                .Input("x")
                                .Input("target")
                                .Output("loss")
                                .Attr("p")
                                .Attr("margin")
                                .Get();
  OFL_ASSIGN_OR_RETURN(Rows rows, RowsOf(kName, x, target, 1));
  if (!IsFloating(rows.x.dtype())) {
    OFL_ASSIGN_OR_RETURN(rows.x, Cast(rows.x, DType::kFloat32));
  }
  OFL_ASSIGN_OR_RETURN(Tensor loss, Call(op, {rows.x, rows.target}, {p, margin}));
  if (weight.defined()) {
    const int64_t classes = rows.x.shape()[1];
    if (weight.ndim() != 1 || weight.numel() != classes) {
      return ShapeMismatch(kName, "weight", weight.shape(), absl::StrCat("[", classes, "]"));
    }
    OFL_ASSIGN_OR_RETURN(const Tensor factors, IndexSelect(weight, 0, rows.target));
    OFL_ASSIGN_OR_RETURN(loss, Mul(loss, factors));
  }
  if (rows.one && target.ndim() == 0) {
    OFL_ASSIGN_OR_RETURN(loss, Reshape(loss, {}));
  }
  return Reduced(kName, loss, reduction);
}

StatusOr<Tensor> MultilabelMarginLoss(const Tensor& x, const Tensor& target,
                                      absl::string_view reduction) {
  constexpr char kName[] = "multilabel_margin_loss";
  OFL_ASSIGN_OR_RETURN(const Rows rows, RowsOf(kName, x, target, 2));
  const int64_t n = rows.x.shape()[0], classes = rows.x.shape()[1];
  // The targets up to the first -1, the others as class 0; which classes they are.
  OFL_ASSIGN_OR_RETURN(const Tensor ends, Lt(rows.target, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(const Tensor passed, CumSum(ends, 1));
  OFL_ASSIGN_OR_RETURN(const Tensor valid, Eq(passed, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(const Tensor places, Where(valid, rows.target, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(const Tensor none, Zeros({n, classes}, DType::kInt64, x.device()));
  OFL_ASSIGN_OR_RETURN(const Tensor ones, Cast(valid, DType::kInt64));
  OFL_ASSIGN_OR_RETURN(const Tensor times, ScatterAdd(none, 1, places, ones));
  OFL_ASSIGN_OR_RETURN(const Tensor other, Eq(times, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(const Tensor own, Gather(rows.x, 1, places));
  // [n, target, class]
  OFL_ASSIGN_OR_RETURN(const Tensor scores, Unsqueeze(rows.x, 1));
  OFL_ASSIGN_OR_RETURN(const Tensor column, Unsqueeze(own, 2));
  OFL_ASSIGN_OR_RETURN(const Tensor off, Sub(scores, column));
  OFL_ASSIGN_OR_RETURN(const Tensor over, Add(off, Scalar(1.0)));
  OFL_ASSIGN_OR_RETURN(const Tensor hinge, Hinge(over));
  OFL_ASSIGN_OR_RETURN(const Tensor row_valid, Unsqueeze(valid, 2));
  OFL_ASSIGN_OR_RETURN(const Tensor row_other, Unsqueeze(other, 1));
  OFL_ASSIGN_OR_RETURN(const Tensor counts, BitwiseAnd(row_valid, row_other));
  OFL_ASSIGN_OR_RETURN(const Tensor terms, Where(counts, hinge, Scalar(0.0)));
  OFL_ASSIGN_OR_RETURN(const Tensor sum, Sum(terms, Dims{1, 2}, false, terms.dtype()));
  OFL_ASSIGN_OR_RETURN(Tensor loss, Div(sum, Scalar(static_cast<double>(classes))));
  if (rows.one) {
    OFL_ASSIGN_OR_RETURN(loss, Reshape(loss, {}));
  }
  return Reduced(kName, loss, reduction);
}

StatusOr<Tensor> MultilabelSoftMarginLoss(const Tensor& x, const Tensor& target,
                                          const Tensor& weight, absl::string_view reduction) {
  constexpr char kName[] = "multilabel_soft_margin_loss";
  StatusOr<Tensor> each = BinaryCrossEntropyWithLogits(x, target, {}, "none");
  if (!each.ok()) return Renamed(kName, each.status());
  if (weight.defined()) {
    OFL_ASSIGN_OR_RETURN(*each, Mul(*each, weight));
  }
  if (x.ndim() == 0) return Reduced(kName, *each, reduction);
  OFL_ASSIGN_OR_RETURN(const Tensor loss, Mean(*each, Dims{-1}));
  return Reduced(kName, loss, reduction);
}

OFL_REGISTER_FUNCTION(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
    "str reduction='mean') -> Tensor",
    CosineEmbeddingLoss, kFunction,
    "1 - cosine along the last dim where target is 1, max(0, cosine - margin) where it is -1.");
OFL_REGISTER_FUNCTION(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
    "float p=2.0, float eps=1e-6, bool swap=False, str reduction='mean') -> Tensor",
    TripletMarginLoss, kFunction,
    "max(0, |anchor - positive| - |anchor - negative| + margin), p-norms along the last dim; with\n"
    "swap the nearer of anchor and positive to negative counts.");
OFL_REGISTER_FUNCTION(
    "multi_margin_loss(Tensor input, Tensor target, int p=1, float margin=1.0, "
    "Tensor? weight=None, str reduction='mean') -> Tensor",
    MultiMarginLoss, kFunction,
    "The mean over the classes of max(0, margin - x[target] + x[j])^p, 0 at the target; times\n"
    "weight[target].");
OFL_REGISTER_FUNCTION(
    "multilabel_margin_loss(Tensor input, Tensor target, str reduction='mean') -> Tensor",
    MultilabelMarginLoss, kFunction,
    "The sum over a row's targets t, up to the first -1, and the other classes j of\n"
    "max(0, 1 - x[t] + x[j]), over the number of classes.");
OFL_REGISTER_FUNCTION(
    "multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, "
    "str reduction='mean') -> Tensor",
    MultilabelSoftMarginLoss, kFunction,
    "binary_cross_entropy_with_logits of each class, weighted, averaged over the last dim.");

}  // namespace oneflow_lite::functional
