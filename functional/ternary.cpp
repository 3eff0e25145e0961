// SPDX-License-Identifier: Apache-2.0
#include "functional/ternary.h"

#include <limits>

#include "functional/copy.h"
#include "functional/operands.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite {

namespace internal {
template <>
struct ArgTraits<std::optional<Operand>> {
  static constexpr ArgType kType = ArgType::kOperand;
  static constexpr bool kOptional = true;
  static std::optional<Operand> From(Value& v) {
    if (std::holds_alternative<std::monostate>(v)) return std::nullopt;
    return ArgTraits<Operand>::From(v);
  }
};
}  // namespace internal

namespace functional {
namespace {

template <OpName kName>
const OpExpr& OpOfThree() {
  static const OpExpr& op =
      OpBuilder(kName.text).Input("a").Input("b").Input("c").Output("out").Get();
  return op;
}
template <OpName kName>
const OpExpr& ScaledOpOfThree() {
  static const OpExpr& op =
      OpBuilder(kName.text).Input("a").Input("b").Input("c").Output("out").Attr("value").Get();
  return op;
}
template <OpName kName>
const OpExpr& OpIntoFirstOfThree() {
  static const OpExpr& op =
      OpBuilder(kName.text).Input("self").Input("b").Input("c").Output("out").Get();
  return op;
}
template <OpName kName>
const OpExpr& ScaledOpIntoFirst() {
  static const OpExpr& op =
      OpBuilder(kName.text).Input("self").Input("b").Input("c").Output("out").Attr("value").Get();
  return op;
}

template <OpName kName>
StatusOr<Tensor> SlopeOf(const Tensor& g, const Tensor& a, const Tensor& b) {
  return Call(OpOfThree<kName>(), {g, a, b});
}
template <OpName kName>
StatusOr<Tensor> ScaledSlopeOf(const Tensor& g, const Tensor& a, const Tensor& b, Scalar value) {
  return Call(ScaledOpOfThree<kName>(), {g, a, b}, {value});
}

Status CheckTensor(const OpExpr& op, const Operand& a, const Operand& b, const Operand& c) {
  for (const Operand* o : {&a, &b, &c}) {
    if (std::holds_alternative<Tensor>(*o)) return OkStatus();
  }
  return Error(ErrorKind::kType, op.def().name, "(): one of the operands must be a tensor");
}

DType FloatingOf(DType t) { return IsFloating(t) ? t : DType::kFloat32; }

// `attrs` go with ops that take them.
StatusOr<Tensor> CallThree(const OpExpr& op, const Operand& a, const Operand& b, const Operand& c,
                           DType dtype, const Attrs& attrs) {
  OFL_RETURN_IF_ERROR(CheckTensor(op, a, b, c));
  OFL_ASSIGN_OR_RETURN(Tensor x, ToTerm(op, a, dtype));
  OFL_ASSIGN_OR_RETURN(Tensor y, ToTerm(op, b, dtype));
  OFL_ASSIGN_OR_RETURN(Tensor z, ToTerm(op, c, dtype));
  return Call(op, {x, y, z}, attrs);
}
// `plain`: the op that is not in place, as in CallInPlace.
StatusOr<Tensor> CallThreeInto(const OpExpr& op, const OpExpr& plain, const Tensor& self,
                               const Operand& b, const Operand& c, DType dtype,
                               const Attrs& attrs) {
  OFL_RETURN_IF_ERROR(CheckHolds(op, self, dtype));
  if (PromoteTypes(self.dtype(), dtype) != self.dtype()) {
    return Written(op, self, CallThree(plain, self, b, c, dtype, attrs));
  }
  OFL_ASSIGN_OR_RETURN(Tensor y, ToTerm(op, b, self.dtype()));
  OFL_ASSIGN_OR_RETURN(Tensor z, ToTerm(op, c, self.dtype()));
  return Call(op, {self, y, z}, attrs);
}

// What x + value a b has, with a number that must fit.
StatusOr<DType> DTypeOfSum(const OpExpr& op, const Operand& x, const Operand& a, const Operand& b,
                           const Scalar& value) {
  OFL_RETURN_IF_ERROR(CheckTensor(op, x, a, b));
  DType dtype = ResultDType(x, a, b);
  if (!IsFloating(dtype) && value.kind() == Scalar::Kind::kFloat) dtype = DType::kFloat32;
  OFL_RETURN_IF_ERROR(CheckFits(op.def().name, value, dtype));
  return dtype;
}

}  // namespace

StatusOr<Tensor> Lerp(const Operand& x, const Operand& end, const Operand& weight) {
  const OpExpr& op = OpOfThree<"lerp">();
  OFL_RETURN_IF_ERROR(CheckTensor(op, x, end, weight));
  return CallThree(op, x, end, weight, FloatingOf(ResultDType(x, end, weight)), {});
}
StatusOr<Tensor> AddCMul(const Operand& x, const Operand& a, const Operand& b, Scalar value) {
  const OpExpr& op = ScaledOpOfThree<"addcmul">();
  OFL_ASSIGN_OR_RETURN(const DType dtype, DTypeOfSum(op, x, a, b, value));
  return CallThree(op, x, a, b, dtype, {value});
}
StatusOr<Tensor> AddCDiv(const Operand& x, const Operand& a, const Operand& b, Scalar value) {
  const OpExpr& op = ScaledOpOfThree<"addcdiv">();
  OFL_RETURN_IF_ERROR(CheckTensor(op, x, a, b));
  return CallThree(op, x, a, b, FloatingOf(ResultDType(x, a, b)), {value});
}

StatusOr<Tensor> AddTimes(absl::string_view name, const Operand& a, const Tensor& b, Scalar alpha,
                          int sign) {
  const OpExpr& op = ScaledOpOfThree<"addcmul">();
  StatusOr<Tensor> y =
      CallThree(op, a, b, alpha, ResultDType(a, b, alpha), {Scalar(int64_t{sign})});
  return y.ok() ? std::move(y) : StatusOr<Tensor>(Renamed(name, y.status()));
}
StatusOr<Tensor> AddTimesInto(absl::string_view name, const Tensor& self, const Tensor& b,
                              Scalar alpha, int sign) {
  StatusOr<Tensor> y =
      CallThreeInto(ScaledOpIntoFirst<"addcmul_">(), ScaledOpOfThree<"addcmul">(), self, b, alpha,
                    ResultDType(self, b, alpha), {Scalar(int64_t{sign})});
  return y.ok() ? std::move(y) : StatusOr<Tensor>(Renamed(name, y.status()));
}

namespace {

// A bound as a tensor of the dtype; a number that it does not hold is its nearest end, and none is
// its end.
StatusOr<Tensor> Bound(const std::optional<Operand>& bound, DType dtype, bool upper) {
  Operand given = Scalar();
  if (bound && std::holds_alternative<Tensor>(*bound)) {
    given = *bound;
  } else {
    given = VisitAll(dtype, [&]<class T>(Tag<T>) -> Scalar {
      const double none = upper ? 1 : -1;
      if (bound && std::get<Scalar>(*bound).fits<T>()) return std::get<Scalar>(*bound);
      const double d = bound ? std::get<Scalar>(*bound).to<double>() : none;
      if constexpr (std::is_integral_v<T>) {
        using Limits = std::numeric_limits<T>;
        return Scalar(int64_t{d < 0 ? Limits::min() : Limits::max()});
      }
      return Scalar(bound ? d : std::copysign(std::numeric_limits<double>::infinity(), none));
    });
  }
  return ToTensor("clamp", given, dtype);
}

struct Bounds {
  DType dtype;
  Tensor min, max;
};
StatusOr<Bounds> BoundsOf(const char* name, const Tensor& x, const std::optional<Operand>& min,
                          const std::optional<Operand>& max, bool in_place) {
  if (!min && !max) return BadValue(name, "min", "None, like max", "a number, or max");
  Bounds b;
  b.dtype = ResultDType(x, min.value_or(x), max.value_or(x));
  const DType own = in_place ? x.dtype() : b.dtype;
  OFL_ASSIGN_OR_RETURN(b.min, Bound(min, own, false));
  OFL_ASSIGN_OR_RETURN(b.max, Bound(max, own, true));
  return b;
}

}  // namespace

StatusOr<Tensor> Clamp(const Tensor& x, const std::optional<Operand>& min,
                       const std::optional<Operand>& max) {
  OFL_ASSIGN_OR_RETURN(const Bounds b, BoundsOf("clamp", x, min, max, false));
  OFL_ASSIGN_OR_RETURN(Tensor own, Cast(x, b.dtype));
  return Call(OpOfThree<"clamp">(), {own, b.min, b.max});
}

StatusOr<Tensor> ClampInto(const Tensor& self, const std::optional<Operand>& min,
                           const std::optional<Operand>& max) {
  const OpExpr& op = OpIntoFirstOfThree<"clamp_">();
  OFL_ASSIGN_OR_RETURN(const Bounds b, BoundsOf("clamp_", self, min, max, true));
  OFL_RETURN_IF_ERROR(CheckHolds(op, self, b.dtype));
  if (PromoteTypes(self.dtype(), b.dtype) != self.dtype()) {
    return Written(op, self, Clamp(self, min, max));
  }
  return Call(op, {self, b.min, b.max});
}
StatusOr<Tensor> ClampMin(const Tensor& x, const Operand& min) { return Clamp(x, min, {}); }
StatusOr<Tensor> ClampMax(const Tensor& x, const Operand& max) { return Clamp(x, {}, max); }
StatusOr<Tensor> ClampMinInto(const Tensor& self, const Operand& min) {
  return ClampInto(self, min, {});
}
StatusOr<Tensor> ClampMaxInto(const Tensor& self, const Operand& max) {
  return ClampInto(self, {}, max);
}

StatusOr<Tensor> LerpInto(const Tensor& self, const Operand& end, const Operand& weight) {
  const DType dtype = FloatingOf(ResultDType(self, end, weight));
  return CallThreeInto(OpIntoFirstOfThree<"lerp_">(), OpOfThree<"lerp">(), self, end, weight, dtype,
                       {});
}
StatusOr<Tensor> AddCMulInto(const Tensor& self, const Operand& a, const Operand& b, Scalar value) {
  const OpExpr& op = ScaledOpIntoFirst<"addcmul_">();
  OFL_ASSIGN_OR_RETURN(const DType dtype, DTypeOfSum(op, self, a, b, value));
  return CallThreeInto(op, ScaledOpOfThree<"addcmul">(), self, a, b, dtype, {value});
}
StatusOr<Tensor> AddCDivInto(const Tensor& self, const Operand& a, const Operand& b, Scalar value) {
  const DType dtype = FloatingOf(ResultDType(self, a, b));
  return CallThreeInto(ScaledOpIntoFirst<"addcdiv_">(), ScaledOpOfThree<"addcdiv">(), self, a, b,
                       dtype, {value});
}

StatusOr<Tensor> IsClose(const Tensor& a, const Tensor& b, double rtol, double atol,
                         bool equal_nan) {
  static const OpExpr& op = OpBuilder("isclose")
                                .Input("a")
                                .Input("b")
                                .Output("out")
                                .Attr("rtol")
                                .Attr("atol")
                                .Attr("equal_nan")
                                .Get();
  const std::pair<const char*, double> tolerances[] = {{"rtol", rtol}, {"atol", atol}};
  for (const auto& [which, value] : tolerances) {
    if (value < 0) {
      return Error(ErrorKind::kValue, "isclose(): ", which, " is ", value,
                   ", but it must not be negative");
    }
  }
  const DType dtype = ResultDType(a, b);
  OFL_ASSIGN_OR_RETURN(Tensor x, Cast(a, dtype));
  OFL_ASSIGN_OR_RETURN(Tensor y, Cast(b, dtype));
  return Call(op, {x, y}, {rtol, atol, equal_nan});
}

StatusOr<Tensor> MulDiv(const Tensor& a, const Tensor& b, const Tensor& c, Scalar value) {
  return Call(ScaledOpOfThree<"mul_div">(), {a, b, c}, {value});
}
StatusOr<Tensor> PowSlopeA(const Tensor& g, const Tensor& a, const Tensor& b) {
  return SlopeOf<"pow_slope_a">(g, a, b);
}
StatusOr<Tensor> PowSlopeB(const Tensor& g, const Tensor& a, const Tensor& b) {
  return SlopeOf<"pow_slope_b">(g, a, b);
}
StatusOr<Tensor> MaximumSlope(const Tensor& g, const Tensor& a, const Tensor& b) {
  return SlopeOf<"maximum_slope">(g, a, b);
}
StatusOr<Tensor> MinimumSlope(const Tensor& g, const Tensor& a, const Tensor& b) {
  return SlopeOf<"minimum_slope">(g, a, b);
}
StatusOr<Tensor> FmaxSlope(const Tensor& g, const Tensor& a, const Tensor& b) {
  return SlopeOf<"fmax_slope">(g, a, b);
}
StatusOr<Tensor> FminSlope(const Tensor& g, const Tensor& a, const Tensor& b) {
  return SlopeOf<"fmin_slope">(g, a, b);
}
StatusOr<Tensor> FmodSlopeB(const Tensor& g, const Tensor& a, const Tensor& b) {
  return SlopeOf<"fmod_slope_b">(g, a, b);
}
StatusOr<Tensor> Atan2SlopeA(const Tensor& g, const Tensor& a, const Tensor& b) {
  return SlopeOf<"atan2_slope_a">(g, a, b);
}
StatusOr<Tensor> CopySignSlope(const Tensor& g, const Tensor& a, const Tensor& b) {
  return SlopeOf<"copysign_slope">(g, a, b);
}
StatusOr<Tensor> PreluSlopeA(const Tensor& g, const Tensor& x, const Tensor& weight) {
  return SlopeOf<"prelu_slope_a">(g, x, weight);
}
StatusOr<Tensor> PreluSlopeB(const Tensor& g, const Tensor& x, const Tensor& factor) {
  return SlopeOf<"prelu_slope_b">(g, x, factor);
}
StatusOr<Tensor> LogAddExpSlope(const Tensor& g, const Tensor& a, const Tensor& b, Scalar value) {
  return ScaledSlopeOf<"logaddexp_slope">(g, a, b, value);
}
StatusOr<Tensor> XLogYSlopeA(const Tensor& g, const Tensor& a, const Tensor& b, Scalar value) {
  return ScaledSlopeOf<"xlogy_slope_a">(g, a, b, value);
}
StatusOr<Tensor> XLogYSlopeB(const Tensor& g, const Tensor& a, const Tensor& b, Scalar value) {
  return ScaledSlopeOf<"xlogy_slope_b">(g, a, b, value);
}
StatusOr<Tensor> ClampInside(const Tensor& x, const Tensor& min, const Tensor& max) {
  return Call(OpOfThree<"clamp_inside">(), {x, min, max});
}
StatusOr<Tensor> ClampShare(const Tensor& x, const Tensor& min, const Tensor& max, int64_t which) {
  return Call(ScaledOpOfThree<"clamp_share">(), {x, min, max}, {Scalar(which)});
}

OFL_REGISTER_FUNCTION("lerp(Operand input, Operand end, Operand weight) -> Tensor", Lerp, kMethod,
                      "input + weight * (end - input).");
OFL_REGISTER_FUNCTION(
    "addcmul(Operand input, Operand tensor1, Operand tensor2, *, Scalar value=1) -> Tensor",
    AddCMul, kMethod, "input + value * tensor1 * tensor2.");
OFL_REGISTER_FUNCTION(
    "addcdiv(Operand input, Operand tensor1, Operand tensor2, *, Scalar value=1) -> Tensor",
    AddCDiv, kMethod, "input + value * tensor1 / tensor2.");
OFL_REGISTER_FUNCTION("clamp(Tensor input, Operand? min=None, Operand? max=None) -> Tensor", Clamp,
                      kMethod,
                      "Each element, not below min and not above max: numbers, or tensors that\n"
                      "broadcast; NaN stays.");
OFL_REGISTER_FUNCTION("clamp_min(Tensor input, Operand min) -> Tensor", ClampMin, kMethod,
                      "Each element, not below min.");
OFL_REGISTER_FUNCTION("clamp_max(Tensor input, Operand max) -> Tensor", ClampMax, kMethod,
                      "Each element, not above max.");
OFL_REGISTER_FUNCTION(
    "isclose(Tensor input, Tensor other, float rtol=1e-5, float atol=1e-8, bool equal_nan=False)"
    " -> Tensor",
    IsClose, kMethod, "Where |input - other| <= atol + rtol * |other|; see allclose.");
OFL_REGISTER_FUNCTION("lerp_(Tensor(a!) self, Operand end, Operand weight) -> Tensor", LerpInto,
                      kMethodOnly, "self += weight * (end - self), in place.");
OFL_REGISTER_FUNCTION(
    "addcmul_(Tensor(a!) self, Operand tensor1, Operand tensor2, *, Scalar value=1) -> Tensor",
    AddCMulInto, kMethodOnly, "self += value * tensor1 * tensor2, in place.");
OFL_REGISTER_FUNCTION(
    "addcdiv_(Tensor(a!) self, Operand tensor1, Operand tensor2, *, Scalar value=1) -> Tensor",
    AddCDivInto, kMethodOnly, "self += value * tensor1 / tensor2, in place.");
OFL_REGISTER_FUNCTION("clamp_(Tensor(a!) self, Operand? min=None, Operand? max=None) -> Tensor",
                      ClampInto, kMethodOnly, "As clamp, in place.");
OFL_REGISTER_FUNCTION("clamp_min_(Tensor(a!) self, Operand min) -> Tensor", ClampMinInto,
                      kMethodOnly, "As clamp_min, in place.");
OFL_REGISTER_FUNCTION("clamp_max_(Tensor(a!) self, Operand max) -> Tensor", ClampMaxInto,
                      kMethodOnly, "As clamp_max, in place.");
OFL_REGISTER_OLDER_ORDER("addcmul", "input, value, tensor1, tensor2");
OFL_REGISTER_OLDER_ORDER("addcdiv", "input, value, tensor1, tensor2");
OFL_REGISTER_OLDER_ORDER("addcmul_", "self, value, tensor1, tensor2");
OFL_REGISTER_OLDER_ORDER("addcdiv_", "self, value, tensor1, tensor2");
OFL_REGISTER_ALIAS("clip", "clamp");
OFL_REGISTER_ALIAS("clip_", "clamp_");

}  // namespace functional
}  // namespace oneflow_lite
