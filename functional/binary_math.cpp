// SPDX-License-Identifier: Apache-2.0
#include "functional/binary_math.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "functional/copy.h"
#include "functional/operands.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"

namespace oneflow_lite::functional {
namespace {

// What the op gave; of a dtype without bits to move its refusal says so.
StatusOr<Tensor> OfBits(const OpExpr& op, DType dtype, StatusOr<Tensor> given) {
  if (given.ok() || KindOf(given.status()) != ErrorKind::kDType) return given;
  if (!IsFloating(dtype) && dtype != DType::kBool) return given;
  return Error(ErrorKind::kDType, op.def().name, "(): the operands have dtype ", Name(dtype),
               ", but bits are moved in integers");
}
StatusOr<Tensor> Moved(const OpExpr& op, const Operand& a, const Operand& b) {
  OFL_RETURN_IF_ERROR(CheckOperands(op, a, b));
  const DType dtype = ResultDType(a, b);
  return OfBits(op, dtype, CallWithDType(op, a, b, dtype));
}
// A number is true or false as it is, not as what a tensor's dtype makes of it.
Operand AsTruth(const Operand& o) {
  const Scalar* number = std::get_if<Scalar>(&o);
  return number ? Operand(Scalar(number->to<double>() != 0)) : o;
}

}  // namespace

StatusOr<Tensor> Fmod(const Operand& a, const Operand& b) {
  return CallPromoted(OpOfTwo<"fmod">(), a, b);
}
StatusOr<Tensor> Remainder(const Operand& a, const Operand& b) {
  return CallPromoted(OpOfTwo<"remainder">(), a, b);
}
StatusOr<Tensor> FloorDivide(const Operand& a, const Operand& b) {
  return CallPromoted(OpOfTwo<"floor_divide">(), a, b);
}
StatusOr<Tensor> Gcd(const Operand& a, const Operand& b) {
  return CallPromoted(OpOfTwo<"gcd">(), a, b);
}
StatusOr<Tensor> Lcm(const Operand& a, const Operand& b) {
  return CallPromoted(OpOfTwo<"lcm">(), a, b);
}
StatusOr<Tensor> BitwiseLeftShift(const Operand& a, const Operand& b) {
  return Moved(OpOfTwo<"bitwise_left_shift">(), a, b);
}
StatusOr<Tensor> BitwiseRightShift(const Operand& a, const Operand& b) {
  return Moved(OpOfTwo<"bitwise_right_shift">(), a, b);
}
StatusOr<Tensor> LogicalAnd(const Operand& a, const Operand& b) {
  return CallPromoted(OpOfTwo<"logical_and">(), AsTruth(a), AsTruth(b));
}
StatusOr<Tensor> LogicalOr(const Operand& a, const Operand& b) {
  return CallPromoted(OpOfTwo<"logical_or">(), AsTruth(a), AsTruth(b));
}
StatusOr<Tensor> LogicalXor(const Operand& a, const Operand& b) {
  return CallPromoted(OpOfTwo<"logical_xor">(), AsTruth(a), AsTruth(b));
}
StatusOr<Tensor> Hypot(const Operand& a, const Operand& b) {
  return CallFloating(OpOfTwo<"hypot">(), a, b);
}
StatusOr<Tensor> Atan2(const Operand& a, const Operand& b) {
  return CallFloating(OpOfTwo<"atan2">(), a, b);
}
StatusOr<Tensor> LogAddExp(const Operand& a, const Operand& b) {
  return CallFloating(OpOfTwo<"logaddexp">(), a, b);
}
StatusOr<Tensor> LogAddExp2(const Operand& a, const Operand& b) {
  return CallFloating(OpOfTwo<"logaddexp2">(), a, b);
}
StatusOr<Tensor> XLogY(const Operand& a, const Operand& b) {
  return CallFloating(OpOfTwo<"xlogy">(), a, b);
}
StatusOr<Tensor> XLog1PY(const Operand& a, const Operand& b) {
  return CallFloating(OpOfTwo<"xlog1py">(), a, b);
}
StatusOr<Tensor> CopySign(const Operand& a, const Operand& b) {
  return CallFloating(OpOfTwo<"copysign">(), a, b);
}
StatusOr<Tensor> NextAfter(const Operand& a, const Operand& b) {
  return CallPromoted(OpOfTwo<"nextafter">(), a, b);
}
StatusOr<Tensor> Ldexp(const Operand& a, const Operand& b) {
  return CallFloating(OpOfTwo<"ldexp">(), a, b);
}
StatusOr<Tensor> Heaviside(const Operand& a, const Operand& b) {
  return CallPromoted(OpOfTwo<"heaviside">(), a, b);
}
StatusOr<Tensor> TruncDivide(const Operand& a, const Operand& b) {
  return CallPromoted(OpOfTwo<"trunc_divide">(), a, b);
}

namespace {

// Of integers, among which there is no NaN, kOfIntegers.
template <StatusOr<Tensor> (*kOfIntegers)(const Operand&, const Operand&)>
StatusOr<Tensor> OfNumbers(const OpExpr& op, const Operand& a, const Operand& b) {
  OFL_RETURN_IF_ERROR(CheckOperands(op, a, b));
  const DType dtype = ResultDType(a, b);
  if (IsFloating(dtype)) return CallWithDType(op, a, b, dtype);
  StatusOr<Tensor> y = kOfIntegers(a, b);
  return y.ok() ? std::move(y) : StatusOr<Tensor>(Renamed(op.def().name, y.status()));
}

}  // namespace

StatusOr<Tensor> Fmax(const Operand& a, const Operand& b) {
  return OfNumbers<Maximum>(OpOfTwo<"fmax">(), a, b);
}
StatusOr<Tensor> Fmin(const Operand& a, const Operand& b) {
  return OfNumbers<Minimum>(OpOfTwo<"fmin">(), a, b);
}

StatusOr<Tensor> FloatPower(const Operand& a, const Operand& b) {
  const auto wide = [](const Operand& o) -> StatusOr<Operand> {
    const Tensor* t = std::get_if<Tensor>(&o);
    if (!t) return o;
    OFL_ASSIGN_OR_RETURN(Tensor cast, Cast(*t, DType::kFloat64));
    return Operand(std::move(cast));
  };
  OFL_ASSIGN_OR_RETURN(const Operand x, wide(a));
  OFL_ASSIGN_OR_RETURN(const Operand y, wide(b));
  StatusOr<Tensor> power = Pow(x, y);
  return power.ok() ? std::move(power) : StatusOr<Tensor>(Renamed("float_power", power.status()));
}

namespace {

template <OpName kName, bool kFloating = false>
StatusOr<Tensor> Into(const Tensor& self, const Operand& other) {
  return CallInPlace(OpIntoFirst<kName>(), OpOfTwo<PlainName(kName)>(), self, other, kFloating);
}
// What kFunction gives, stored in self.
template <OpName kName, StatusOr<Tensor> (*kFunction)(const Operand&, const Operand&)>
StatusOr<Tensor> Stored(const Tensor& self, const Operand& other) {
  StatusOr<Tensor> y = kFunction(self, other);
  if (y.ok()) y = CopyInto(self, *y);
  return y.ok() ? std::move(y) : StatusOr<Tensor>(Renamed(kName.text, y.status()));
}

Status BadRounding(const char* name, const std::string& given) {
  return BadValue(name, "rounding_mode", absl::StrCat("\"", given, "\""),
                  "None, \"floor\" or \"trunc\"");
}

}  // namespace

StatusOr<Tensor> Div(const Operand& a, const Operand& b,
                     const std::optional<std::string>& rounding_mode) {
  if (!rounding_mode) return Div(a, b);
  const bool down = *rounding_mode == "floor";
  if (!down && *rounding_mode != "trunc") return BadRounding("div", *rounding_mode);
  StatusOr<Tensor> y = down ? FloorDivide(a, b) : TruncDivide(a, b);
  return y.ok() ? std::move(y) : StatusOr<Tensor>(Renamed("div", y.status()));
}
StatusOr<Tensor> DivInto(const Tensor& self, const Operand& other,
                         const std::optional<std::string>& rounding_mode) {
  if (!rounding_mode) return DivInto(self, other);
  const bool down = *rounding_mode == "floor";
  if (!down && *rounding_mode != "trunc") return BadRounding("div_", *rounding_mode);
  StatusOr<Tensor> y = down ? FloorDivideInto(self, other) : TruncDivideInto(self, other);
  return y.ok() ? std::move(y) : StatusOr<Tensor>(Renamed("div_", y.status()));
}
StatusOr<Tensor> FmodInto(const Tensor& self, const Operand& other) {
  return Into<"fmod_">(self, other);
}
StatusOr<Tensor> TruncDivideInto(const Tensor& self, const Operand& other) {
  return Into<"trunc_divide_">(self, other);
}
StatusOr<Tensor> GcdInto(const Tensor& self, const Operand& other) {
  return Into<"gcd_">(self, other);
}
StatusOr<Tensor> LcmInto(const Tensor& self, const Operand& other) {
  return Into<"lcm_">(self, other);
}
StatusOr<Tensor> HypotInto(const Tensor& self, const Operand& other) {
  return Into<"hypot_", true>(self, other);
}
StatusOr<Tensor> Atan2Into(const Tensor& self, const Operand& other) {
  return Into<"atan2_", true>(self, other);
}
StatusOr<Tensor> XLogYInto(const Tensor& self, const Operand& other) {
  return Into<"xlogy_", true>(self, other);
}
StatusOr<Tensor> CopySignInto(const Tensor& self, const Operand& other) {
  return Into<"copysign_", true>(self, other);
}
StatusOr<Tensor> NextAfterInto(const Tensor& self, const Operand& other) {
  return Into<"nextafter_">(self, other);
}
StatusOr<Tensor> LdexpInto(const Tensor& self, const Operand& other) {
  return Into<"ldexp_", true>(self, other);
}
StatusOr<Tensor> HeavisideInto(const Tensor& self, const Operand& at_0) {
  return Into<"heaviside_">(self, at_0);
}
StatusOr<Tensor> LogicalAndInto(const Tensor& self, const Operand& other) {
  return Stored<"logical_and_", LogicalAnd>(self, other);
}
StatusOr<Tensor> LogicalOrInto(const Tensor& self, const Operand& other) {
  return Stored<"logical_or_", LogicalOr>(self, other);
}
StatusOr<Tensor> LogicalXorInto(const Tensor& self, const Operand& other) {
  return Stored<"logical_xor_", LogicalXor>(self, other);
}
StatusOr<Tensor> RemainderInto(const Tensor& self, const Operand& other) {
  return Into<"remainder_">(self, other);
}
StatusOr<Tensor> FloorDivideInto(const Tensor& self, const Operand& other) {
  return Into<"floor_divide_">(self, other);
}
StatusOr<Tensor> BitwiseAndInto(const Tensor& self, const Operand& other) {
  return Into<"bitwise_and_">(self, other);
}
StatusOr<Tensor> BitwiseOrInto(const Tensor& self, const Operand& other) {
  return Into<"bitwise_or_">(self, other);
}
StatusOr<Tensor> BitwiseXorInto(const Tensor& self, const Operand& other) {
  return Into<"bitwise_xor_">(self, other);
}
StatusOr<Tensor> BitwiseLeftShiftInto(const Tensor& self, const Operand& other) {
  return OfBits(OpIntoFirst<"bitwise_left_shift_">(), ResultDType(self, other),
                Into<"bitwise_left_shift_">(self, other));
}
StatusOr<Tensor> BitwiseRightShiftInto(const Tensor& self, const Operand& other) {
  return OfBits(OpIntoFirst<"bitwise_right_shift_">(), ResultDType(self, other),
                Into<"bitwise_right_shift_">(self, other));
}
// Pow has shorter ways for some exponents, of which self may be the operand where nothing is kept
// of it.
StatusOr<Tensor> PowInto(const Tensor& self, const Operand& exponent) {
  const Scalar* e = std::get_if<Scalar>(&exponent);
  const bool recorded = GradEnabled() && autograd::RequiresGrad(self);
  if (e && !recorded && IsFloating(self.dtype())) return Stored<"pow_", Pow>(self, exponent);
  if (e && !IsFloating(self.dtype()) && !e->is_float() && e->to<int64_t>() < 0) {
    return Stored<"pow_", Pow>(self, exponent);  // which says why not
  }
  return Into<"pow_">(self, exponent);
}

OFL_REGISTER_FUNCTION(
    "div(Operand input, Operand other, *, str? rounding_mode=None) -> Tensor",
    (Overload<const Operand&, const Operand&, const std::optional<std::string>&>(Div)), kMethod,
    "input / other, integers as float32; rounding_mode 'floor' rounds it down, 'trunc' towards 0.");
OFL_REGISTER_FUNCTION(
    "div_(Tensor(a!) self, Operand other, *, str? rounding_mode=None) -> Tensor",
    (Overload<const Tensor&, const Operand&, const std::optional<std::string>&>(DivInto)),
    kMethodOnly, "self /= other, in place; rounded as by div.");
OFL_REGISTER_FUNCTION(
    "fmod(Operand input, Operand other) -> Tensor", Fmod, kMethod,
    "What a division rounded towards 0 leaves of input: it has the sign of input.");
OFL_REGISTER_FUNCTION("remainder(Operand input, Operand other) -> Tensor", Remainder, kMethod,
                      "What a division rounded down leaves of input: it has the sign of other.");
OFL_REGISTER_FUNCTION("floor_divide(Operand input, Operand other) -> Tensor", FloorDivide, kMethod,
                      "The ratio rounded down; integers stay integers, and over 0 give 0.");
OFL_REGISTER_FUNCTION("gcd(Operand input, Operand other) -> Tensor", Gcd, kMethod,
                      "The greatest common divisor of integers.");
OFL_REGISTER_FUNCTION("lcm(Operand input, Operand other) -> Tensor", Lcm, kMethod,
                      "The least common multiple of integers; 0 beside 0.");
OFL_REGISTER_FUNCTION(
    "bitwise_left_shift(Operand input, Operand other) -> Tensor", BitwiseLeftShift, kMethod,
    "The bits moved to the left so many places; 0 where there are not that many.");
OFL_REGISTER_FUNCTION("bitwise_right_shift(Operand input, Operand other) -> Tensor",
                      BitwiseRightShift, kMethod,
                      "The bits moved to the right; from the left comes the sign.");
OFL_REGISTER_FUNCTION("logical_and(Operand input, Operand other) -> Tensor", LogicalAnd, kMethod,
                      "Whether neither is 0.");
OFL_REGISTER_FUNCTION("logical_or(Operand input, Operand other) -> Tensor", LogicalOr, kMethod,
                      "Whether one is not 0.");
OFL_REGISTER_FUNCTION("logical_xor(Operand input, Operand other) -> Tensor", LogicalXor, kMethod,
                      "Whether exactly one is not 0.");
OFL_REGISTER_FUNCTION("hypot(Operand input, Operand other) -> Tensor", Hypot, kMethod,
                      "sqrt(input^2 + other^2), without overflow; infinite where one of them is.");
OFL_REGISTER_FUNCTION("atan2(Operand input, Operand other) -> Tensor", Atan2, kMethod,
                      "The angle of the point (other, input), from -pi to pi.");
OFL_REGISTER_FUNCTION("logaddexp(Operand input, Operand other) -> Tensor", LogAddExp, kMethod,
                      "log(exp(input) + exp(other)), without overflow.");
OFL_REGISTER_FUNCTION("logaddexp2(Operand input, Operand other) -> Tensor", LogAddExp2, kMethod,
                      "log2(2^input + 2^other), without overflow.");
OFL_REGISTER_FUNCTION("xlogy(Operand input, Operand other) -> Tensor", XLogY, kMethod,
                      "input * log(other); 0 where input is 0, unless other is NaN.");
OFL_REGISTER_FUNCTION("xlog1py(Operand input, Operand other) -> Tensor", XLog1PY, kMethod,
                      "input * log(1 + other); 0 where input is 0, unless other is NaN.");
OFL_REGISTER_FUNCTION("copysign(Operand input, Operand other) -> Tensor", CopySign, kMethod,
                      "The size of input with the sign of other.");
OFL_REGISTER_FUNCTION("nextafter(Operand input, Operand other) -> Tensor", NextAfter, kMethod,
                      "The number next to input on the way to other.");
OFL_REGISTER_FUNCTION("ldexp(Operand input, Operand other) -> Tensor", Ldexp, kMethod,
                      "input * 2^other.");
OFL_REGISTER_FUNCTION("heaviside(Operand input, Operand values) -> Tensor", Heaviside, kMethod,
                      "0 where input is below 0, values where it is 0, 1 above; NaN stays.");
OFL_REGISTER_FUNCTION("fmax(Operand input, Operand other) -> Tensor", Fmax, kMethod,
                      "The larger of two, of a number and NaN the number.");
OFL_REGISTER_FUNCTION("fmin(Operand input, Operand other) -> Tensor", Fmin, kMethod,
                      "The smaller of two, of a number and NaN the number.");
OFL_REGISTER_FUNCTION("float_power(Operand input, Operand exponent) -> Tensor", FloatPower, kMethod,
                      "input to the power of exponent, in float64.");
OFL_REGISTER_FUNCTION("fmod_(Tensor(a!) self, Operand other) -> Tensor", FmodInto, kMethodOnly,
                      "As fmod, in place.");
OFL_REGISTER_FUNCTION("remainder_(Tensor(a!) self, Operand other) -> Tensor", RemainderInto,
                      kMethodOnly, "As remainder, in place.");
OFL_REGISTER_FUNCTION("floor_divide_(Tensor(a!) self, Operand other) -> Tensor", FloorDivideInto,
                      kMethodOnly, "As floor_divide, in place.");
OFL_REGISTER_FUNCTION("gcd_(Tensor(a!) self, Operand other) -> Tensor", GcdInto, kMethodOnly,
                      "As gcd, in place.");
OFL_REGISTER_FUNCTION("lcm_(Tensor(a!) self, Operand other) -> Tensor", LcmInto, kMethodOnly,
                      "As lcm, in place.");
OFL_REGISTER_FUNCTION("bitwise_left_shift_(Tensor(a!) self, Operand other) -> Tensor",
                      BitwiseLeftShiftInto, kMethodOnly, "As bitwise_left_shift, in place.");
OFL_REGISTER_FUNCTION("bitwise_right_shift_(Tensor(a!) self, Operand other) -> Tensor",
                      BitwiseRightShiftInto, kMethodOnly, "As bitwise_right_shift, in place.");
OFL_REGISTER_FUNCTION("hypot_(Tensor(a!) self, Operand other) -> Tensor", HypotInto, kMethodOnly,
                      "As hypot, in place.");
OFL_REGISTER_FUNCTION("atan2_(Tensor(a!) self, Operand other) -> Tensor", Atan2Into, kMethodOnly,
                      "As atan2, in place.");
OFL_REGISTER_FUNCTION("xlogy_(Tensor(a!) self, Operand other) -> Tensor", XLogYInto, kMethodOnly,
                      "As xlogy, in place.");
OFL_REGISTER_FUNCTION("copysign_(Tensor(a!) self, Operand other) -> Tensor", CopySignInto,
                      kMethodOnly, "As copysign, in place.");
OFL_REGISTER_FUNCTION("nextafter_(Tensor(a!) self, Operand other) -> Tensor", NextAfterInto,
                      kMethodOnly, "As nextafter, in place.");
OFL_REGISTER_FUNCTION("ldexp_(Tensor(a!) self, Operand other) -> Tensor", LdexpInto, kMethodOnly,
                      "As ldexp, in place.");
OFL_REGISTER_FUNCTION("heaviside_(Tensor(a!) self, Operand values) -> Tensor", HeavisideInto,
                      kMethodOnly, "As heaviside, in place.");
OFL_REGISTER_FUNCTION("bitwise_and_(Tensor(a!) self, Operand other) -> Tensor", BitwiseAndInto,
                      kMethodOnly, "As bitwise_and, in place.");
OFL_REGISTER_FUNCTION("bitwise_or_(Tensor(a!) self, Operand other) -> Tensor", BitwiseOrInto,
                      kMethodOnly, "As bitwise_or, in place.");
OFL_REGISTER_FUNCTION("bitwise_xor_(Tensor(a!) self, Operand other) -> Tensor", BitwiseXorInto,
                      kMethodOnly, "As bitwise_xor, in place.");
OFL_REGISTER_FUNCTION("pow_(Tensor(a!) self, Operand exponent) -> Tensor", PowInto, kMethodOnly,
                      "As pow, in place.");
OFL_REGISTER_FUNCTION("logical_and_(Tensor(a!) self, Operand other) -> Tensor", LogicalAndInto,
                      kMethodOnly, "As logical_and, in place.");
OFL_REGISTER_FUNCTION("logical_or_(Tensor(a!) self, Operand other) -> Tensor", LogicalOrInto,
                      kMethodOnly, "As logical_or, in place.");
OFL_REGISTER_FUNCTION("logical_xor_(Tensor(a!) self, Operand other) -> Tensor", LogicalXorInto,
                      kMethodOnly, "As logical_xor, in place.");
OFL_REGISTER_ALIAS("arctan2", "atan2");
OFL_REGISTER_ALIAS("arctan2_", "atan2_");
OFL_REGISTER_ALIAS("divide", "div");
OFL_REGISTER_ALIAS("divide_", "div_");
OFL_REGISTER_ALIAS("true_divide", "div");
OFL_REGISTER_ALIAS("true_divide_", "div_");

}  // namespace oneflow_lite::functional
