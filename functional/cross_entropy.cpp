// SPDX-License-Identifier: Apache-2.0
#include "functional/cross_entropy.h"

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/cross_entropy_rows.h"
#include "functional/cross_entropy_split.h"
#include "functional/index.h"
#include "functional/nll_loss.h"
#include "functional/reduce.h"
#include "functional/select.h"
#include "functional/softmax.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autocast.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/global.h"

namespace oneflow_lite::functional {
namespace {

int64_t ClassDim(const Tensor& x) { return x.ndim() == 1 ? 0 : 1; }

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

// Targets given as probabilities; "mean" divides by the number of rows. logp is of a compute type.
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

// Class targets by way of the log-probabilities: weights, and classes that are not the last dim.
// logp is of a compute type: weighted and summed over the classes, 16 bits would soon overflow.
StatusOr<Tensor> WithLogProbabilities(const Tensor& logp, const Tensor& target,
                                      const Tensor& weight, int64_t ignore_index,
                                      absl::string_view reduction, double smoothing) {
  OFL_ASSIGN_OR_RETURN(NllRows rows, NllLossRows(logp, target, weight, ignore_index));
  if (smoothing == 0) return ReducedLoss(rows.loss, rows.weight, reduction);

  const int64_t classes = logp.shape()[static_cast<int>(ClassDim(logp))];
  OFL_ASSIGN_OR_RETURN(Tensor uniform, NegativeSum(logp, weight));
  // Not times 0: what is ignored may be NaN, and where all are, so is the mean's gradient.
  OFL_ASSIGN_OR_RETURN(Tensor ignored, Eq(target, Scalar(ignore_index)));
  OFL_ASSIGN_OR_RETURN(uniform, MaskedFill(uniform, ignored, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(uniform, Mul(uniform, Scalar(smoothing / static_cast<double>(classes))));
  OFL_ASSIGN_OR_RETURN(Tensor sharp, Mul(rows.loss, Scalar(1 - smoothing)));
  OFL_ASSIGN_OR_RETURN(Tensor loss, Add(sharp, uniform));
  return ReducedLoss(loss, rows.weight, reduction);
}

}  // namespace

StatusOr<CrossEntropyRows> FusedRows(const Tensor& logits, const Tensor& target,
                                     int64_t ignore_index, double smoothing,
                                     bool inplace_backward) {
  static const OpExpr& op = OpBuilder("cross_entropy")
                                .Input("in")
                                .Input("target")
                                .Output("loss")
                                .Output("stats")
                                .Attr("ignore_index")
                                .Attr("label_smoothing")
                                .Attr("inplace_backward")
                                .Get();
  if (HasSplitClasses(logits) && GlobalOf(target)) {
    return SplitClassRows(logits, target, ignore_index, smoothing);
  }
  OFL_ASSIGN_OR_RETURN(TensorList out,
                       CallAll(op, {logits, target}, {ignore_index, smoothing, inplace_backward}));
  return CrossEntropyRows{std::move(out[0]), std::move(out[1])};
}

StatusOr<CrossEntropyGradients> FusedRowsInPlace(const Tensor& logits, const Tensor& target,
                                                 const Tensor& scale, int64_t ignore_index,
                                                 double smoothing) {
  static const OpExpr& op = OpBuilder("cross_entropy_in_place")
                                .Input("in")
                                .Input("target")
                                .Input("scale")
                                .Output("loss")
                                .Output("gradient")
                                .Attr("ignore_index")
                                .Attr("label_smoothing")
                                .Get();
  if (HasSplitClasses(logits) && GlobalOf(target)) {
    return SplitClassRowsInPlace(logits, target, scale, ignore_index, smoothing);
  }
  OFL_ASSIGN_OR_RETURN(TensorList out,
                       CallAll(op, {logits, target, scale}, {ignore_index, smoothing}));
  return CrossEntropyGradients{std::move(out[0]), std::move(out[1])};
}

StatusOr<Tensor> MeanWeight(const Tensor& target, int64_t ignore_index, DType dtype) {
  static const OpExpr& op = OpBuilder("mean_weight")
                                .Input("target")
                                .Output("weight")
                                .Attr("ignore_index")
                                .Attr("dtype")
                                .Get();
  if (target.numel() <= kRowsOfOneBlock && !GlobalOf(target)) {
    return Call(op, {target}, {ignore_index, dtype});
  }
  OFL_ASSIGN_OR_RETURN(Tensor counted, Ne(target, Scalar(ignore_index)));
  OFL_ASSIGN_OR_RETURN(Tensor count, Sum(counted, {}, /*keepdim=*/false, dtype));
  return Div(Scalar(1.0), count);
}

// As MeanWeight, and for the same reason.
StatusOr<Tensor> ReducedRows(const Tensor& loss, const Tensor& target, int64_t ignore_index,
                             DType dtype) {
  static const OpExpr& op = OpBuilder("reduce_loss")
                                .Input("loss")
                                .Input("target")
                                .Output("value")
                                .Output("weight")
                                .Attr("ignore_index")
                                .Attr("dtype")
                                .Get();
  if (loss.numel() <= kRowsOfOneBlock && !GlobalOf(loss)) {  // a rank counts its rows alone
    OFL_ASSIGN_OR_RETURN(TensorList out, CallAll(op, {loss, target}, {ignore_index, dtype}));
    return std::move(out[0]);
  }
  OFL_ASSIGN_OR_RETURN(Tensor value, Sum(loss));
  if (target.defined()) {
    OFL_ASSIGN_OR_RETURN(Tensor weight, MeanWeight(target, ignore_index, loss.dtype()));
    OFL_ASSIGN_OR_RETURN(value, Mul(value, weight));
  }
  return Cast(value, dtype);
}

namespace {

// Class targets [N] of logits [N, C]; gives [N] or, reduced, one number.
StatusOr<Tensor> Fused(const Tensor& logits, const Tensor& target, int64_t ignore_index,
                       absl::string_view reduction, double smoothing, bool inplace_backward) {
  if (target.dtype() != DType::kInt64) {
    return DTypeMismatch("cross_entropy", "target", target.dtype(), "int64");
  }
  const bool mean = reduction == "mean";
  // Of float16 backward writes it: what arrives there, as a GradScaler's factor, keeps the gradient
  // from underflow only where it is multiplied in before the rounding.
  const bool in_place = inplace_backward && logits.dtype() != DType::kFloat16 &&
                        !HasSplitClasses(logits) && GradEnabled() && autograd::RequiresGrad(logits);
  Tensor weight, loss;
  if (in_place) {  // the logits become the gradient of the mean, not of its terms
    if (mean) {
      OFL_ASSIGN_OR_RETURN(weight, MeanWeight(target, ignore_index, ComputeType(logits.dtype())));
    }
    OFL_ASSIGN_OR_RETURN(CrossEntropyGradients rows,
                         FusedRowsInPlace(logits, target, weight, ignore_index, smoothing));
    loss = std::move(rows.loss);
  } else {
    OFL_ASSIGN_OR_RETURN(CrossEntropyRows rows,
                         FusedRows(logits, target, ignore_index, smoothing, inplace_backward));
    loss = std::move(rows.loss);
  }
  const DType dtype = AutocastLossDType(logits);
  if (reduction == "none") return Cast(loss, dtype);
  return ReducedRows(loss, mean && !in_place ? target : Tensor(), ignore_index, dtype);
}

// The same with a weight per class, of the compute type: it multiplies whole rows, so that the
// logits need not become log-probabilities.
StatusOr<Tensor> FusedWeighted(const Tensor& logits, const Tensor& target, const Tensor& weight,
                               int64_t ignore_index, absl::string_view reduction) {
  OFL_ASSIGN_OR_RETURN(CrossEntropyRows fused,
                       FusedRows(logits, target, ignore_index, /*smoothing=*/0));
  Tensor loss = std::move(fused.loss);
  OFL_ASSIGN_OR_RETURN(Tensor ignored, Eq(target, Scalar(ignore_index)));
  OFL_ASSIGN_OR_RETURN(Tensor at, MaskedFill(target, ignored, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(Tensor rows, IndexSelect(weight, 0, at));
  OFL_ASSIGN_OR_RETURN(rows, MaskedFill(rows, ignored, Scalar(0)));
  OFL_ASSIGN_OR_RETURN(loss, Mul(loss, rows));
  return ReducedLoss(loss, rows, reduction);
}

// One row as a batch of one, so that the op knows a single form.
StatusOr<Tensor> FusedVector(const Tensor& logits, const Tensor& target, int64_t ignore_index,
                             absl::string_view reduction, double smoothing, bool inplace_backward) {
  OFL_ASSIGN_OR_RETURN(Tensor row, Unsqueeze(logits, 0));
  OFL_ASSIGN_OR_RETURN(Tensor one, Unsqueeze(target, 0));
  OFL_ASSIGN_OR_RETURN(Tensor loss,
                       Fused(row, one, ignore_index, reduction, smoothing, inplace_backward));
  return Reshape(loss, {});
}

StatusOr<Tensor> Loss(const Tensor& logits, const Tensor& given, const Tensor& weight,
                      int64_t ignore_index, absl::string_view reduction, double label_smoothing,
                      bool inplace_backward) {
  OFL_RETURN_IF_ERROR(CheckReduction("cross_entropy", reduction));
  if (!(label_smoothing >= 0 && label_smoothing <= 1)) {
    return BadValue("cross_entropy", "label_smoothing", absl::StrCat(label_smoothing), "in [0, 1]");
  }
  if (logits.ndim() == 0) {
    return ShapeMismatch("cross_entropy", "input", logits.shape(), "at least 1 dim");
  }
  OFL_RETURN_IF_ERROR(CheckWeight("cross_entropy", weight, logits));
  const bool narrow = IsIntegral(given.dtype()) && given.dtype() != DType::kInt64;
  OFL_ASSIGN_OR_RETURN(Tensor target, narrow ? Cast(given, DType::kInt64) : given);
  const bool classes = !IsFloating(target.dtype());
  if (classes && !weight.defined() && logits.ndim() == 2) {
    return Fused(logits, target, ignore_index, reduction, label_smoothing, inplace_backward);
  }
  if (classes && !weight.defined() && logits.ndim() == 1 && target.ndim() == 0) {
    return FusedVector(logits, target, ignore_index, reduction, label_smoothing, inplace_backward);
  }
  if (!classes && ignore_index >= 0) {
    return BadValue("cross_entropy", "ignore_index", absl::StrCat(ignore_index),
                    "absent where the target holds probabilities");
  }
  if (!classes && target.shape() != logits.shape()) {
    return ShapeMismatch("cross_entropy", "target (probabilities)", target.shape(),
                         logits.shape().ToString());
  }
  const DType wide = ComputeType(logits.dtype());
  Tensor wide_weight = weight;
  if (weight.defined() && weight.dtype() == logits.dtype()) {
    OFL_ASSIGN_OR_RETURN(wide_weight, Cast(weight, wide));
  }
  // What does not fit here is refused below.
  const bool fits = logits.ndim() == 2 && logits.shape()[1] > 0 && weight.defined() &&
                    wide_weight.dtype() == wide && target.dtype() == DType::kInt64;
  if (fits && label_smoothing == 0) {
    OFL_ASSIGN_OR_RETURN(Tensor loss,
                         FusedWeighted(logits, target, wide_weight, ignore_index, reduction));
    return Cast(loss, AutocastLossDType(logits));
  }
  OFL_ASSIGN_OR_RETURN(Tensor logp, LogSoftmax(logits, ClassDim(logits), wide));
  OFL_ASSIGN_OR_RETURN(
      Tensor loss, classes
                       ? WithLogProbabilities(logp, target, wide_weight, ignore_index, reduction,
                                              label_smoothing)
                       : WithProbabilities(logp, target, wide_weight, reduction, label_smoothing));
  return Cast(loss, AutocastLossDType(logits));
}

// The gradient of the logits: a tensor of its own, or written over them.
const OpExpr& GradientOp(const char* name, const char* logits, const char* gradient) {
  return OpBuilder(name)
      .Input(logits)
      .Input("target")
      .Input("stats")
      .Input("dloss")
      .Output(gradient)
      .Attr("ignore_index")
      .Attr("label_smoothing")
      .Attr("first")
      .Attr("classes")
      .Get();
}

}  // namespace

StatusOr<Tensor> CrossEntropy(const Tensor& logits, const Tensor& target, const Tensor& weight,
                              int64_t ignore_index, absl::string_view reduction,
                              double label_smoothing, bool inplace_backward) {
  StatusOr<Tensor> loss =
      Loss(logits, target, weight, ignore_index, reduction, label_smoothing, inplace_backward);
  if (!loss.ok()) return Renamed("cross_entropy", loss.status());  // of log_softmax, nll_loss
  return loss;
}

StatusOr<Tensor> CrossEntropyBackward(const Tensor& logits, const Tensor& target,
                                      const Tensor& stats, const Tensor& dloss,
                                      int64_t ignore_index, double label_smoothing) {
  static const OpExpr& op = GradientOp("cross_entropy_backward", "in", "din");
  Tensor each = dloss;
  if (HasSplitClasses(logits) && GlobalOf(dloss)) {  // a number a row moves, not the logits
    OFL_ASSIGN_OR_RETURN(each, BesideClasses(dloss, logits));
  }
  return Call(op, {logits, target, stats, each},
              {ignore_index, label_smoothing, int64_t{0}, int64_t{0}});
}

StatusOr<Tensor> CrossEntropyBackwardInto(const Tensor& logits, const Tensor& target,
                                          const Tensor& stats, const Tensor& dloss,
                                          int64_t ignore_index, double label_smoothing) {
  static const OpExpr& op = GradientOp("cross_entropy_gradient_", "self", "out");
  return Call(op, {logits, target, stats, dloss},
              {ignore_index, label_smoothing, int64_t{0}, int64_t{0}});
}

StatusOr<Tensor> ScaleRowsInto(const Tensor& x, const Tensor& factor) {
  static const OpExpr& op =
      OpBuilder("scale_rows_").Input("self").Input("factor").Output("out").Get();
  return Call(op, {x, factor});
}

OFL_REGISTER_FUNCTION(
    "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, int ignore_index=-100, "
    "str reduction='mean', float label_smoothing=0.0, bool inplace_backward=False) -> Tensor",
    CrossEntropy, kFunction,
    "Cross entropy of logits [N, C, ...] with integer targets [N, ...] or probabilities.\n\n"
    "The loss has input's dtype. ignore_index is for integer targets alone.\n\n"
    "inplace_backward lets the call write the gradient into input's memory while it computes the\n"
    "loss, or of float16 in backward: input's values are lost, backward runs once, and there is "
    "no\n"
    "second derivative.");

}  // namespace oneflow_lite::functional
