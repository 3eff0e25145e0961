// SPDX-License-Identifier: Apache-2.0
#include "functional/activation.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "functional/copy.h"
#include "functional/softmax.h"
#include "functional/unary.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// An activation's op, and the one that overwrites its input.
struct Ops {
  const OpExpr* fresh;
  const OpExpr* in_place = nullptr;
};

const OpExpr* OpNamed(const std::string& name, const char* input,
                      std::initializer_list<const char*> attrs) {
  OpBuilder builder(name);
  builder.Input(input).Output("y");
  for (const char* attr : attrs) builder.Attr(attr);
  return &builder.Get();
}
Ops BothOps(const std::string& name, std::initializer_list<const char*> attrs = {}) {
  return {OpNamed(name, "x", attrs), OpNamed(name + "_", "self", attrs)};
}
Ops FreshOp(const std::string& name, std::initializer_list<const char*> attrs = {}) {
  return {OpNamed(name, "x", attrs)};
}

StatusOr<Tensor> Run(const Ops& ops, const Tensor& x, const Attrs& attrs, bool inplace = false) {
  return Call(inplace ? *ops.in_place : *ops.fresh, {x}, attrs);
}

// An error under the name of the function that was called, where the op has another.
StatusOr<Tensor> Named(const char* name, bool inplace, StatusOr<Tensor> y) {
  if (y.ok()) return y;
  return Renamed(inplace ? absl::StrCat(name, "_") : name, y.status());
}

// The number rounded to x's dtype where that is floating: a result that was bounded by it is it.
Scalar Rounded(const Tensor& x, Scalar number) {
  if (!IsFloating(x.dtype())) return number;
  return VisitFloating(x.dtype(), [&]<class T>(Tag<T>) {
    return Scalar(static_cast<double>(static_cast<ComputeOf<T>>(number.to<T>())));
  });
}

}  // namespace

StatusOr<Tensor> Silu(const Tensor& x, bool inplace) {
  static const Ops ops = BothOps("silu");
  return Run(ops, x, {}, inplace);
}
StatusOr<Tensor> Mish(const Tensor& x, bool inplace) {
  static const Ops ops = BothOps("mish");
  return Run(ops, x, {}, inplace);
}
StatusOr<Tensor> Hardsigmoid(const Tensor& x, bool inplace) {
  static const Ops ops = BothOps("hardsigmoid");
  return Run(ops, x, {}, inplace);
}
StatusOr<Tensor> Hardswish(const Tensor& x, bool inplace) {
  static const Ops ops = BothOps("hardswish");
  return Run(ops, x, {}, inplace);
}

namespace {

StatusOr<Tensor> Bounded(const Tensor& x, Scalar min, Scalar max, bool inplace) {
  static const Ops ops = BothOps("hardtanh", {"min_val", "max_val"});
  const Attrs attrs{Rounded(x, min), Rounded(x, max)};
  return Call(inplace ? *ops.in_place : *ops.fresh, {x}, attrs);
}

}  // namespace

StatusOr<Tensor> Hardtanh(const Tensor& x, Scalar min, Scalar max, bool inplace) {
  if (min.to<double>() > max.to<double>()) {
    return Error(ErrorKind::kValue, "hardtanh(): min_val ", min.to<double>(), " is above max_val ",
                 max.to<double>());
  }
  return Bounded(x, min, max, inplace);
}
StatusOr<Tensor> Relu6(const Tensor& x, bool inplace) {
  return Named("relu6", inplace, Bounded(x, 0, 6, inplace));
}

StatusOr<Tensor> LeakyRelu(const Tensor& x, double negative_slope, bool inplace) {
  static const Ops ops = BothOps("leaky_relu", {"negative_slope"});
  return Run(ops, x, {negative_slope}, inplace);
}

namespace {

StatusOr<Tensor> ScaledElu(const char* name, const Tensor& x, double alpha, double scale,
                           double input_scale, bool inplace) {
  static const Ops ops = BothOps("elu", {"alpha", "scale", "input_scale"});
  return Named(name, inplace, Run(ops, x, {alpha, scale, input_scale}, inplace));
}

}  // namespace

StatusOr<Tensor> Elu(const Tensor& x, double alpha, bool inplace) {
  return ScaledElu("elu", x, alpha, 1, 1, inplace);
}
StatusOr<Tensor> Celu(const Tensor& x, double alpha, bool inplace) {
  if (alpha == 0) return BadValue("celu", "alpha", "0", "another number");
  return ScaledElu("celu", x, alpha, 1, 1 / alpha, inplace);
}
StatusOr<Tensor> Selu(const Tensor& x, bool inplace) {
  constexpr double kAlpha = 1.6732632423543772848, kScale = 1.0507009873554804934;
  return ScaledElu("selu", x, kAlpha * kScale, kScale, 1, inplace);
}

StatusOr<Tensor> Softplus(const Tensor& x, double beta, double threshold) {
  static const Ops ops = FreshOp("softplus", {"beta", "threshold"});
  return Run(ops, x, {beta, threshold});
}
StatusOr<Tensor> LogSigmoid(const Tensor& x) {
  static const Ops ops = FreshOp("logsigmoid");
  return Run(ops, x, {});
}
StatusOr<Tensor> Softsign(const Tensor& x) {
  static const Ops ops = FreshOp("softsign");
  return Run(ops, x, {});
}
StatusOr<Tensor> Tanhshrink(const Tensor& x) {
  static const Ops ops = FreshOp("tanhshrink");
  return Run(ops, x, {});
}
StatusOr<Tensor> Softshrink(const Tensor& x, double lambd) {
  static const Ops ops = FreshOp("softshrink", {"lambd"});
  if (!(lambd >= 0)) {
    return Error(ErrorKind::kValue, "softshrink(): lambd is ", lambd,
                 ", but it must not be negative");
  }
  return Run(ops, x, {lambd});
}
StatusOr<Tensor> Hardshrink(const Tensor& x, double lambd) {
  static const Ops ops = FreshOp("hardshrink", {"lambd"});
  return Run(ops, x, {lambd});
}

StatusOr<Tensor> Threshold(const Tensor& x, Scalar threshold, Scalar value, bool inplace) {
  static const Ops ops = BothOps("threshold", {"threshold", "value"});
  if (!IsFloating(x.dtype())) {
    OFL_RETURN_IF_ERROR(CheckFits("threshold", value, x.dtype()));
    // An integer is above a number where it is above the largest integer that the number reaches.
    if (threshold.kind() == Scalar::Kind::kFloat) {
      threshold = Scalar(std::floor(threshold.to<double>()));
    }
    // Every integer is above one that its dtype does not reach down to.
    if (!threshold.Fits(x.dtype()) && threshold.to<double>() < 0) {
      return inplace ? StatusOr<Tensor>(x) : Clone(x);
    }
  }
  return Call(inplace ? *ops.in_place : *ops.fresh, {x}, {threshold, value});
}
StatusOr<Tensor> ReluInto(const Tensor& x) {
  return Named("relu", /*inplace=*/true, Threshold(x, 0, 0, /*inplace=*/true));
}

StatusOr<Tensor> Softmin(const Tensor& x, std::optional<int64_t> dim, std::optional<DType> dtype) {
  StatusOr<Tensor> negative = Neg(x);
  StatusOr<Tensor> y = negative.ok() ? Softmax(*negative, dim, dtype) : negative;
  return Named("softmin", false, std::move(y));
}

StatusOr<Tensor> HardtanhInto(const Tensor& x, Scalar min, Scalar max) {
  return Hardtanh(x, min, max, true);
}
StatusOr<Tensor> LeakyReluInto(const Tensor& x, double slope) { return LeakyRelu(x, slope, true); }
StatusOr<Tensor> EluInto(const Tensor& x, double alpha) { return Elu(x, alpha, true); }
StatusOr<Tensor> CeluInto(const Tensor& x, double alpha) { return Celu(x, alpha, true); }
StatusOr<Tensor> SeluInto(const Tensor& x) { return Selu(x, true); }
StatusOr<Tensor> ThresholdInto(const Tensor& x, Scalar threshold, Scalar value) {
  return Threshold(x, threshold, value, true);
}

OFL_REGISTER_FUNCTION("relu_(Tensor(a!) input) -> Tensor", ReluInto, kMethod,
                      "max(x, 0) of each element, in place.");
OFL_REGISTER_FUNCTION("relu6(Tensor input, bool inplace=False) -> Tensor", Relu6, kFunction,
                      "Each element, not below 0 and not above 6.");
OFL_REGISTER_FUNCTION("silu(Tensor input, bool inplace=False) -> Tensor", Silu, kFunction,
                      "x / (1 + exp(-x)) of each element, also known as swish.");
OFL_REGISTER_FUNCTION("mish(Tensor input, bool inplace=False) -> Tensor", Mish, kFunction,
                      "x * tanh(log(1 + exp(x))) of each element.");
OFL_REGISTER_FUNCTION("hardsigmoid(Tensor input, bool inplace=False) -> Tensor", Hardsigmoid,
                      kFunction, "(x + 3) / 6 of each element, not below 0 and not above 1.");
OFL_REGISTER_FUNCTION("hardswish(Tensor input, bool inplace=False) -> Tensor", Hardswish, kFunction,
                      "Each element times its hardsigmoid.");
OFL_REGISTER_FUNCTION(
    "hardtanh(Tensor input, Scalar min_val=-1.0, Scalar max_val=1.0, bool inplace=False) -> "
    "Tensor",
    Hardtanh, kFunction, "Each element, not below min_val and not above max_val.");
OFL_REGISTER_FUNCTION(
    "hardtanh_(Tensor(a!) input, Scalar min_val=-1.0, Scalar max_val=1.0) -> Tensor", HardtanhInto,
    kFunction, "Each element, not below min_val and not above max_val, in place.");
OFL_REGISTER_FUNCTION(
    "leaky_relu(Tensor input, float negative_slope=0.01, bool inplace=False) -> Tensor", LeakyRelu,
    kFunction, "Each element where it is positive, else negative_slope times it.");
OFL_REGISTER_FUNCTION("leaky_relu_(Tensor(a!) input, float negative_slope=0.01) -> Tensor",
                      LeakyReluInto, kFunction,
                      "Each element where it is positive, else negative_slope times it, in place.");
OFL_REGISTER_FUNCTION("elu(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor", Elu,
                      kFunction, "Each element where it is positive, else alpha * (exp(x) - 1).");
OFL_REGISTER_FUNCTION("elu_(Tensor(a!) input, float alpha=1.0) -> Tensor", EluInto, kFunction,
                      "Each element where it is positive, else alpha * (exp(x) - 1), in place.");
OFL_REGISTER_FUNCTION("celu(Tensor input, float alpha=1.0, bool inplace=False) -> Tensor", Celu,
                      kFunction,
                      "Each element where it is positive, else alpha * (exp(x / alpha) - 1).");
OFL_REGISTER_FUNCTION(
    "celu_(Tensor(a!) input, float alpha=1.0) -> Tensor", CeluInto, kFunction,
    "Each element where it is positive, else alpha * (exp(x / alpha) - 1), in place.");
OFL_REGISTER_FUNCTION("selu(Tensor input, bool inplace=False) -> Tensor", Selu, kFunction,
                      "elu scaled so that mean 0 and variance 1 stay.");
OFL_REGISTER_FUNCTION("selu_(Tensor(a!) input) -> Tensor", SeluInto, kFunction,
                      "elu scaled so that mean 0 and variance 1 stay, in place.");
OFL_REGISTER_FUNCTION(
    "softplus(Tensor input, float beta=1.0, float threshold=20.0) -> Tensor", Softplus, kFunction,
    "log(1 + exp(beta * x)) / beta of each element, and x where beta * x > threshold.");
OFL_REGISTER_FUNCTION("logsigmoid(Tensor input) -> Tensor", LogSigmoid, kFunction,
                      "log(sigmoid(x)) of each element, without overflow.");
OFL_REGISTER_FUNCTION("softsign(Tensor input) -> Tensor", Softsign, kFunction,
                      "x / (1 + |x|) of each element.");
OFL_REGISTER_FUNCTION("tanhshrink(Tensor input) -> Tensor", Tanhshrink, kFunction,
                      "x - tanh(x) of each element.");
OFL_REGISTER_FUNCTION("softshrink(Tensor input, float lambd=0.5) -> Tensor", Softshrink, kFunction,
                      "Each element moved by lambd towards 0, and 0 where that passes it.");
OFL_REGISTER_FUNCTION("hardshrink(Tensor input, float lambd=0.5) -> Tensor", Hardshrink, kMethod,
                      "Each element where it is beyond lambd on either side, else 0.");
OFL_REGISTER_FUNCTION(
    "threshold(Tensor input, Scalar threshold, Scalar value, bool inplace=False) -> Tensor",
    Threshold, kFunction,
    "Each element where it is above threshold, else value; compared in float32 at least.");
OFL_REGISTER_FUNCTION("threshold_(Tensor(a!) input, Scalar threshold, Scalar value) -> Tensor",
                      ThresholdInto, kFunction,
                      "Each element where it is above threshold, else value, in place.");
OFL_REGISTER_FUNCTION("softmin(Tensor input, int? dim=None, dtype? dtype=None) -> Tensor", Softmin,
                      kFunction, "Softmax of -input over a dim.");

}  // namespace oneflow_lite::functional
