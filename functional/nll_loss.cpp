// SPDX-License-Identifier: Apache-2.0
#include "functional/nll_loss.h"

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/reduce.h"
#include "functional/softmax.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

Status CheckReduction(const char* op, absl::string_view reduction) {
  if (reduction == "none" || reduction == "sum" || reduction == "mean") return OkStatus();
  return BadValue(op, "reduction", absl::StrCat("\"", reduction, "\""),
                  "\"none\", \"sum\" or \"mean\"");
}

int64_t ClassDim(const Tensor& x) { return x.ndim() == 1 ? 0 : 1; }

struct Losses {
  Tensor loss, weight;  // per row
};
StatusOr<Losses> PerRow(const Tensor& logp, const Tensor& target, const Tensor& weight,
                        int64_t ignore_index) {
  static const OpExpr& op = OpBuilder("nll_loss")
                                .Input("logp")
                                .Input("target")
                                .Input("weight")
                                .Output("loss")
                                .Output("row_weight")
                                .Attr("ignore_index")
                                .Get();
  const Tensor inputs[] = {logp, target, weight};
  OFL_ASSIGN_OR_RETURN(TensorList out, CallAll(op, inputs, {ignore_index}));
  return Losses{out[0], out[1]};
}

StatusOr<Tensor> Reduced(const Tensor& loss, const Tensor& weight, absl::string_view reduction) {
  if (reduction == "none") return loss;
  OFL_ASSIGN_OR_RETURN(Tensor total, Sum(loss));
  if (reduction == "sum") return total;
  OFL_ASSIGN_OR_RETURN(Tensor count, Sum(weight));
  return Div(total, count);
}

// A class weight seen along the class dim of x.
StatusOr<Tensor> AlongClasses(const Tensor& weight, const Tensor& x) {
  Dims shape(x.ndim(), 1);
  shape[ClassDim(x)] = -1;
  return Reshape(weight, shape);
}

Status CheckWeight(const char* op, const Tensor& weight, const Tensor& x) {
  const int64_t classes = x.shape()[static_cast<int>(ClassDim(x))];
  if (!weight.defined() || (weight.ndim() == 1 && weight.shape()[0] == classes)) return OkStatus();
  return ShapeMismatch(op, "weight", weight.shape(), absl::StrCat("[", classes, "]"));
}

// -sum over classes of w x: what smoothing mixes in, per row.
StatusOr<Tensor> NegativeSum(const Tensor& x, const Tensor& weight) {
  Tensor weighted = x;
  if (weight.defined()) {
    OFL_ASSIGN_OR_RETURN(Tensor w, AlongClasses(weight, x));
    OFL_ASSIGN_OR_RETURN(weighted, Mul(x, w));
  }
  OFL_ASSIGN_OR_RETURN(Tensor sum, Sum(weighted, Dims{ClassDim(x)}));
  return Neg(sum);
}

// Targets given as probabilities; "mean" divides by the number of rows.
StatusOr<Tensor> WithProbabilities(const Tensor& logp, const Tensor& target, const Tensor& weight,
                                   absl::string_view reduction, double smoothing) {
  OFL_ASSIGN_OR_RETURN(Tensor t, Cast(target, logp.dtype()));
  if (smoothing > 0) {
    const int64_t classes = logp.shape()[static_cast<int>(ClassDim(logp))];
    OFL_ASSIGN_OR_RETURN(t, Mul(t, Scalar(1 - smoothing)));
    OFL_ASSIGN_OR_RETURN(t, Add(t, Scalar(smoothing / static_cast<double>(classes))));
  }
  OFL_ASSIGN_OR_RETURN(Tensor product, Mul(logp, t));
  OFL_ASSIGN_OR_RETURN(Tensor loss, NegativeSum(product, weight));
  if (reduction == "none") return loss;
  OFL_ASSIGN_OR_RETURN(Tensor total, Sum(loss));
  if (reduction == "sum") return total;
  return Div(total, Scalar(static_cast<double>(loss.numel())));
}

}  // namespace

StatusOr<Tensor> NllLoss(const Tensor& logp, const Tensor& target, const Tensor& weight,
                         int64_t ignore_index, absl::string_view reduction) {
  OFL_RETURN_IF_ERROR(CheckReduction("nll_loss", reduction));
  OFL_ASSIGN_OR_RETURN(Losses rows, PerRow(logp, target, weight, ignore_index));
  return Reduced(rows.loss, rows.weight, reduction);
}

StatusOr<Tensor> CrossEntropy(const Tensor& logits, const Tensor& target, const Tensor& weight,
                              int64_t ignore_index, absl::string_view reduction,
                              double label_smoothing) {
  OFL_RETURN_IF_ERROR(CheckReduction("cross_entropy", reduction));
  if (!(label_smoothing >= 0 && label_smoothing <= 1)) {
    return BadValue("cross_entropy", "label_smoothing", absl::StrCat(label_smoothing), "in [0, 1]");
  }
  if (logits.ndim() == 0) {
    return ShapeMismatch("cross_entropy", "input", logits.shape(), "at least 1 dim");
  }
  OFL_RETURN_IF_ERROR(CheckWeight("cross_entropy", weight, logits));
  OFL_ASSIGN_OR_RETURN(Tensor logp, LogSoftmax(logits, ClassDim(logits)));
  if (IsFloating(target.dtype())) {
    if (target.shape() != logits.shape()) {
      return ShapeMismatch("cross_entropy", "target (probabilities)", target.shape(),
                           logits.shape().ToString());
    }
    return WithProbabilities(logp, target, weight, reduction, label_smoothing);
  }
  OFL_ASSIGN_OR_RETURN(Losses rows, PerRow(logp, target, weight, ignore_index));
  if (label_smoothing == 0) return Reduced(rows.loss, rows.weight, reduction);

  const int64_t classes = logits.shape()[static_cast<int>(ClassDim(logits))];
  OFL_ASSIGN_OR_RETURN(Tensor uniform, NegativeSum(logp, weight));
  OFL_ASSIGN_OR_RETURN(Tensor counted, Ne(target, Scalar(ignore_index)));
  OFL_ASSIGN_OR_RETURN(uniform, Mul(uniform, counted));
  OFL_ASSIGN_OR_RETURN(uniform,
                       Mul(uniform, Scalar(label_smoothing / static_cast<double>(classes))));
  OFL_ASSIGN_OR_RETURN(Tensor sharp, Mul(rows.loss, Scalar(1 - label_smoothing)));
  OFL_ASSIGN_OR_RETURN(Tensor loss, Add(sharp, uniform));
  return Reduced(loss, rows.weight, reduction);
}

OFL_REGISTER_FUNCTION(
    "nll_loss(Tensor input, Tensor target, Tensor? weight=None, int ignore_index=-100, "
    "str reduction='mean') -> Tensor",
    NllLoss, kFunction,
    "Negative log likelihood of log-probabilities [N, C, ...] at integer targets [N, ...].");
OFL_REGISTER_FUNCTION(
    "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, int ignore_index=-100, "
    "str reduction='mean', float label_smoothing=0.0) -> Tensor",
    CrossEntropy, kFunction,
    "Cross entropy of logits [N, C, ...] with integer targets [N, ...] or probabilities.");

}  // namespace oneflow_lite::functional
