// SPDX-License-Identifier: Apache-2.0
#include "functional/dropout.h"

#include <algorithm>
#include <cmath>

#include "functional/copy.h"
#include "functional/random.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// What a kept element is multiplied by and has added, and what a dropped one becomes.
struct DropoutTerms {
  double scale, kept, dropped;
};
DropoutTerms PlainTerms(double p) { return {p < 1 ? 1 / (1 - p) : 0, 0, 0}; }
DropoutTerms AlphaTerms(double p) {
  if (p == 1) return {0, 0, 0};
  constexpr double kAlpha = 1.0507009873554805 * 1.6732632423543772;  // where selu ends
  const double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  return {a, kAlpha * a * p, -kAlpha * a * (1 - p)};
}

struct DropoutOptions {
  double p;
  bool training, inplace;
  Ref<Generator> generator;
};

// `channels`: the dims in front that draw each for itself; negative: all.
StatusOr<Tensor> Drop(const char* name, const Tensor& x, DropoutOptions o,
                      DropoutTerms (*terms)(double), int channels) {
  static const OpExpr& op = OpBuilder("dropout")
                                .Input("in")
                                .Output("out")
                                .Output("drawn")
                                .Attr("p")
                                .Attr("scale")
                                .Attr("kept")
                                .Attr("dropped")
                                .Attr("inner")
                                .Attr("seed")
                                .Attr("offset")
                                .Attr("places")
                                .Get();
  if (!x.defined()) return NotDefined(name, "input");
  if (!(o.p >= 0 && o.p <= 1)) {
    return Error(ErrorKind::kValue, name, "(): p is ", o.p, ", but it must be in [0, 1]");
  }
  if (!o.training || o.p == 0) return x;
  if (!IsFloating(x.dtype())) return UnsupportedDType(name, "input", x.dtype(), kFloatingDTypes);
  int64_t inner = 1;
  for (int d = channels < 0 ? x.ndim() : channels; d < x.ndim(); ++d) inner *= x.shape()[d];
  inner = std::max<int64_t>(1, inner);
  const DropoutTerms t = terms(o.p);
  OFL_ASSIGN_OR_RETURN(const DrawnPlace at, TakeNumbers(std::move(o.generator), x.device(),
                                                        (x.numel() + inner - 1) / inner));
  OFL_ASSIGN_OR_RETURN(
      const TensorList made,
      CallAll(op, {x}, {o.p, t.scale, t.kept, t.dropped, inner, at.seed, at.offset, Dims()}));
  return o.inplace ? CopyInto(x, made[0]) : StatusOr<Tensor>(made[0]);
}

}  // namespace

StatusOr<Tensor> Dropout(const Tensor& x, double p, bool training, bool inplace,
                         Ref<Generator> generator) {
  return Drop("dropout", x, {p, training, inplace, std::move(generator)}, PlainTerms, -1);
}
StatusOr<Tensor> Dropout1d(const Tensor& x, double p, bool training, bool inplace,
                           Ref<Generator> generator) {
  if (x.defined() && x.ndim() != 2 && x.ndim() != 3) {
    return ShapeMismatch("dropout1d", "input", x.shape(), "2 or 3 dims");
  }
  const int channels = x.defined() ? x.ndim() - 1 : 2;
  return Drop("dropout1d", x, {p, training, inplace, std::move(generator)}, PlainTerms, channels);
}
StatusOr<Tensor> Dropout2d(const Tensor& x, double p, bool training, bool inplace,
                           Ref<Generator> generator) {
  if (x.defined() && x.ndim() < 2) {
    return ShapeMismatch("dropout2d", "input", x.shape(), "at least 2 dims");
  }
  return Drop("dropout2d", x, {p, training, inplace, std::move(generator)}, PlainTerms, 2);
}
StatusOr<Tensor> Dropout3d(const Tensor& x, double p, bool training, bool inplace,
                           Ref<Generator> generator) {
  if (x.defined() && x.ndim() < 2) {
    return ShapeMismatch("dropout3d", "input", x.shape(), "at least 2 dims");
  }
  const int channels = x.defined() && x.ndim() == 4 ? 1 : 2;
  return Drop("dropout3d", x, {p, training, inplace, std::move(generator)}, PlainTerms, channels);
}
StatusOr<Tensor> FeatureDropout(const Tensor& x, double p, bool training,
                                Ref<Generator> generator) {
  if (x.defined() && x.ndim() < 2) {
    return ShapeMismatch("feature_dropout", "input", x.shape(), "at least 2 dims");
  }
  return Drop("feature_dropout", x, {p, training, false, std::move(generator)}, PlainTerms, 2);
}
StatusOr<Tensor> AlphaDropout(const Tensor& x, double p, bool training, bool inplace,
                              Ref<Generator> generator) {
  return Drop("alpha_dropout", x, {p, training, inplace, std::move(generator)}, AlphaTerms, -1);
}
StatusOr<Tensor> FeatureAlphaDropout(const Tensor& x, double p, bool training, bool inplace,
                                     Ref<Generator> generator) {
  if (x.defined() && x.ndim() < 2 && training && p > 0) {
    return ShapeMismatch("feature_alpha_dropout", "input", x.shape(), "at least 2 dims");
  }
  return Drop("feature_alpha_dropout", x, {p, training, inplace, std::move(generator)}, AlphaTerms,
              2);
}

StatusOr<Tensor> DropoutBackward(const Tensor& dy, const Tensor& drawn, double p, double scale,
                                 int64_t inner) {
  static const OpExpr& op = OpBuilder("dropout_backward")
                                .Input("dy")
                                .Input("drawn")
                                .Output("dx")
                                .Attr("p")
                                .Attr("scale")
                                .Attr("inner")
                                .Attr("places")
                                .Get();
  return Call(op, {dy, drawn}, {p, scale, inner, Dims()});
}

#define OFL_OPTIONS(training)            \
  "float p=0.5, bool training=" training \
  ", bool inplace=False, *, Generator? generator=None) -> Tensor"
OFL_REGISTER_FUNCTION(
    "dropout(Tensor input, " OFL_OPTIONS("True"), Dropout, kFunction,
    "Elements set to 0 with probability p, the others times 1 / (1 - p); with training=False the\n"
    "input itself. The same seed drops the same elements on every device. inplace writes the\n"
    "result into input.");
OFL_REGISTER_FUNCTION("dropout1d(Tensor input, " OFL_OPTIONS("True"), Dropout1d, kFunction,
                      "dropout of whole channels of [n, c, length] or [c, length].");
OFL_REGISTER_FUNCTION("dropout2d(Tensor input, " OFL_OPTIONS("True"), Dropout2d, kFunction,
                      "dropout of whole channels of [n, c, h, w].");
OFL_REGISTER_FUNCTION("dropout3d(Tensor input, " OFL_OPTIONS("True"), Dropout3d, kFunction,
                      "dropout of whole channels of [n, c, d, h, w] or [c, d, h, w].");
OFL_REGISTER_FUNCTION(
    "feature_dropout(Tensor input, float p=0.5, bool training=True, *, "
    "Generator? generator=None) -> Tensor",
    FeatureDropout, kFunction, "dropout of whole channels of [n, c, ...].");
OFL_REGISTER_FUNCTION(
    "alpha_dropout(Tensor input, " OFL_OPTIONS("False"), AlphaDropout, kFunction,
    "Elements set to where selu ends with probability p, and all then brought back to mean 0 and\n"
    "variance 1, which they are expected to have had.");
OFL_REGISTER_FUNCTION("feature_alpha_dropout(Tensor input, " OFL_OPTIONS("False"),
                      FeatureAlphaDropout, kFunction,
                      "alpha_dropout of whole channels of [n, c, ...].");
#undef OFL_OPTIONS

}  // namespace oneflow_lite::functional
