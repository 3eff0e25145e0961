// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/expression_functions.h"

#include <algorithm>
#include <memory>
#include <mutex>

namespace oneflow_lite {
namespace internal {
namespace {

using F = ElementFn;
using R = ElementRule;

// Slopes of extremes: g where a, or b, is the one, half of it where both are.
constexpr char kNotBelowB[] = "where(b > a, 0, where(a == b, g * 0.5, g))";
constexpr char kNotBelowA[] = "where(a > b, 0, where(a == b, g * 0.5, g))";
constexpr char kNotAboveB[] = "where(b < a, 0, where(a == b, g * 0.5, g))";
constexpr char kNotAboveA[] = "where(a < b, 0, where(a == b, g * 0.5, g))";
// The same of clamp, where the bounds may be equal, or in the wrong order.
constexpr char kNotRaised[] = "where(b > a, 0, where(logical_and(a == b, b < c), g * 0.5, g))";
constexpr char kRaised[] = "where(a < b, g, where(logical_and(a == b, b < c), g * 0.5, 0))";
constexpr char kNotLowered[] = "where(b < a, 0, where(logical_and(a == b, c < b), g * 0.5, g))";
constexpr char kLowered[] = "where(a > b, g, where(logical_and(a == b, c < b), g * 0.5, 0))";
constexpr char kAbove[] = "where(a > b, g, 0)";
constexpr char kBelow[] = "where(a < b, g, 0)";

// clang-format off
constexpr ElementFunction kSteps[] = {
    {F::kWhere, "where", 3, R::kPromoted, {nullptr, "where(a, g, 0)", "where(a, 0, g)"}},
    {F::kClampLow, "_clamp_low", 3, R::kPromoted, {kNotRaised, kRaised}, kAbove},
    {F::kClampHigh, "_clamp_high", 3, R::kPromoted, {kNotLowered, kLowered}, kBelow},
    {F::kAdd, "add", 2, R::kPromoted, {"g", "g"}},
    {F::kSub, "sub", 2, R::kNumber, {"g", "-g"}},
    {F::kMul, "mul", 2, R::kPromoted, {"g * b", "g * a"}},
    {F::kMaximum, "maximum", 2, R::kPromoted, {kNotBelowB, kNotBelowA}},
    {F::kMinimum, "minimum", 2, R::kPromoted, {kNotAboveB, kNotAboveA}},
    {F::kClampMin, "clamp_min", 2, R::kPromoted, {kNotBelowB, kNotBelowA}, kAbove},
    {F::kClampMax, "clamp_max", 2, R::kPromoted, {kNotAboveB, kNotAboveA}, kBelow},
    {F::kFmod, "fmod", 2, R::kNumber, {"g", "-g * round((a - y) / b)"}},
    {F::kRemainder, "remainder", 2, R::kNumber, {"g", "-g * floor_divide(a, b)"}},
    {F::kFloorDivide, "floor_divide", 2, R::kNumber},
    {F::kPow, "pow", 2, R::kNumber,
     {"where(b == 0, 0, g * (b * pow(a, b - 1)))",
      "where(logical_and(a == 0, b >= 0), 0, g * (y * log(a)))"}},
    {F::kDiv, "div", 2, R::kFloating, {"g / b", "-(g * (y / b))"}},
    {F::kAtan2, "atan2", 2, R::kFloating,
     {"s = abs(a) + abs(b); o = logical_or(s == 0, isinf(s)); p = where(o, 1, a); "
      "q = where(o, 1, b); r = hypot(p, q); where(o, 0, g * (q / r) / r)",
      "s = abs(a) + abs(b); o = logical_or(s == 0, isinf(s)); p = where(o, 1, a); "
      "q = where(o, 1, b); r = hypot(p, q); where(o, 0, -(g * (p / r) / r))"}},
    {F::kHypot, "hypot", 2, R::kFloating, {"g * (a / y)", "g * (b / y)"}},
    {F::kCopySign, "copysign", 2, R::kFloating,
     {"where(a == 0, 0, where(logical_xor(signbit(a), signbit(b)), -g, g))"}},
    {F::kXLogY, "xlogy", 2, R::kFloating,
     {"where(logical_and(a == 0, logical_or(b <= 0, isinf(b))), 0, g * log(b))",
      "where(logical_and(a == 0, b == 0), 0, g * (a / (b + 0.0)))"}},
    {F::kLogAddExp, "logaddexp", 2, R::kFloating,
     {"g * sigmoid(where(logical_and(a == b, isinf(a)), 0, a - b))",
      "g * sigmoid(where(logical_and(a == b, isinf(a)), 0, b - a))"}},
    {F::kFmax, "fmax", 2, R::kPromoted,
     {"where(logical_or(b > a, logical_and(isnan(a), logical_not(isnan(b)))), 0, "
      "where(a == b, g * 0.5, g))",
      "where(logical_or(a > b, logical_and(isnan(b), logical_not(isnan(a)))), 0, "
      "where(a == b, g * 0.5, g))"}},
    {F::kFmin, "fmin", 2, R::kPromoted,
     {"where(logical_or(b < a, logical_and(isnan(a), logical_not(isnan(b)))), 0, "
      "where(a == b, g * 0.5, g))",
      "where(logical_or(a < b, logical_and(isnan(b), logical_not(isnan(a)))), 0, "
      "where(a == b, g * 0.5, g))"}},
    {F::kGeluSlope, "gelu_backward", 2, R::kFloating,
     {"gelu_backward(g, b)",
      "g * a * where(abs(b) > 40, 0, 0.3989422804014327 * exp(-0.5 * b * b) * (2 - b * b))"}},
    {F::kGeluTanhSlope, "gelu_tanh_backward", 2, R::kFloating,
     {"gelu_tanh_backward(g, b)",
      "u = 1.5957691216057308 * b + 0.07135481627260025 * b * b * b; "
      "p = 1.5957691216057308 + 0.21406444881780075 * b * b; s = sigmoid(u); r = sigmoid(-u); "
      "q = s * r; g * a * where(abs(b) > 40, 0, "
      "2 * q * p + b * (q * (r - s) * p * p + q * 0.4281288976356015 * b))"}},
    {F::kEq, "eq", 2, R::kTruth}, {F::kNe, "ne", 2, R::kTruth}, {F::kLt, "lt", 2, R::kTruth},
    {F::kLe, "le", 2, R::kTruth}, {F::kGt, "gt", 2, R::kTruth}, {F::kGe, "ge", 2, R::kTruth},
    {F::kLogicalAnd, "logical_and", 2, R::kTruth},
    {F::kLogicalOr, "logical_or", 2, R::kTruth},
    {F::kLogicalXor, "logical_xor", 2, R::kTruth},
    {F::kAnd, "bitwise_and", 2, R::kBits},
    {F::kOr, "bitwise_or", 2, R::kBits},
    {F::kXor, "bitwise_xor", 2, R::kBits},
    {F::kNeg, "neg", 1, R::kNumber, {"-g"}},
    {F::kAbs, "abs", 1, R::kNumber, {"g * sign(a)"}},
    {F::kRelu, "relu", 1, R::kNumber, {"where(y <= 0, 0, g)"}},
    {F::kSign, "sign", 1, R::kNumber},
    {F::kSquare, "square", 1, R::kNumber, {"g * a * 2"}},
    {F::kFloor, "floor", 1, R::kNumber},
    {F::kCeil, "ceil", 1, R::kNumber},
    {F::kTrunc, "trunc", 1, R::kNumber},
    {F::kRound, "round", 1, R::kNumber},
    {F::kBitwiseNot, "bitwise_not", 1, R::kBits},
    {F::kIsNan, "isnan", 1, R::kTruth},
    {F::kIsInf, "isinf", 1, R::kTruth},
    {F::kIsFinite, "isfinite", 1, R::kTruth},
    {F::kIsSigned, "signbit", 1, R::kTruth},
    {F::kLogicalNot, "logical_not", 1, R::kTruth},
    {F::kExp, "exp", 1, R::kFloating, {"g * y"}},
    {F::kExp2, "exp2", 1, R::kFloating, {"g * y * 0.6931471805599453"}},
    {F::kExpm1, "expm1", 1, R::kFloating, {"g * (y + 1)"}},
    {F::kLog, "log", 1, R::kFloating, {"g / a"}},
    {F::kLog1p, "log1p", 1, R::kFloating, {"g / (a + 1)"}},
    {F::kLog2, "log2", 1, R::kFloating, {"g / (a * 0.6931471805599453)"}},
    {F::kLog10, "log10", 1, R::kFloating, {"g / (a * 2.302585092994046)"}},
    {F::kSqrt, "sqrt", 1, R::kFloating, {"g / (2 * y)"}},
    {F::kRsqrt, "rsqrt", 1, R::kFloating, {"-0.5 * g * (y * y * y)"}},
    {F::kReciprocal, "reciprocal", 1, R::kFloating, {"-(g * (y * y))"}},
    {F::kSigmoid, "sigmoid", 1, R::kFloating, {"g * (y * (1 - y))"}},
    {F::kSin, "sin", 1, R::kFloating, {"g * cos(a)"}},
    {F::kCos, "cos", 1, R::kFloating, {"-(g * sin(a))"}},
    {F::kTan, "tan", 1, R::kFloating, {"g * (1 + y * y)"}},
    {F::kAsin, "asin", 1, R::kFloating,
     {"g * rsqrt(where(abs(a) == 1, 1 - a * a, (1 - a) * (1 + a)))"}},
    {F::kAcos, "acos", 1, R::kFloating,
     {"-(g * rsqrt(where(abs(a) == 1, 1 - a * a, (1 - a) * (1 + a))))"}},
    {F::kAtan, "atan", 1, R::kFloating, {"g / (1 + a * a)"}},
    {F::kSinh, "sinh", 1, R::kFloating, {"g * cosh(a)"}},
    {F::kCosh, "cosh", 1, R::kFloating, {"g * sinh(a)"}},
    {F::kTanh, "tanh", 1, R::kFloating, {"g * (1 - y * y)"}},
    {F::kAsinh, "asinh", 1, R::kFloating, {"g / hypot(a, 1)"}},
    {F::kAcosh, "acosh", 1, R::kFloating,
     {"o = a > 1e9; s = where(o, 2, a); "
      "g / where(o, a, sqrt(where(abs(s) == 1, s * s - 1, (s - 1) * (s + 1))))"}},
    {F::kAtanh, "atanh", 1, R::kFloating,
     {"g / where(abs(a) == 1, 1 - a * a, (1 - a) * (1 + a))"}},
    {F::kErf, "erf", 1, R::kFloating, {"g * (1.1283791670955126 * exp(-(a * a)))"}},
    {F::kErfc, "erfc", 1, R::kFloating, {"g * (-1.1283791670955126 * exp(-(a * a)))"}},
    {F::kErfinv, "erfinv", 1, R::kFloating, {"g * (0.886226925452758 * exp(y * y))"}},
    {F::kGelu, "gelu", 1, R::kFloating, {"gelu_backward(g, a)"}},
    {F::kGeluTanh, "gelu_tanh", 1, R::kFloating, {"gelu_tanh_backward(g, a)"}},
};

// In forms whose derivatives, which are of their steps, are right and finite where the function's
// are. `x = a * 1.0` makes floats of integers, whose products and differences may not fit their
// dtype. t is -abs(x) with a slope at 0, too: by abs the second derivative there would be 0. Beyond
// +-1000 silu and mish are a or 0; their factors are kept there, since infinity times 0 is NaN.
constexpr ComposedFunction kComposed[] = {
    {"addcdiv", "a, b, c: a + b / c"},
    {"addcmul", "a, b, c: a + b * c"},
    {"clamp", "a, b, c: _clamp_high(_clamp_low(a, b, c), c, b)"},
    {"deg2rad", "a: a * 0.017453292519943295"},
    {"elu", "a: where(a <= 0, expm1(where(a <= 0, a, 0)), a)"},
    {"hardsigmoid", "a: where(a <= -3, 0, where(a >= 3, 1, a * 0.16666666666666666 + 0.5))"},
    {"hardswish", "a: x = a * 1.0; u = where(abs(x) >= 3, 0, x); "
     "where(x <= -3, -0.0, where(x >= 3, x, u * (u + 3) * 0.16666666666666666))"},
    {"leaky_relu", "a, b: where(a > 0, a, a * b)"},
    {"lerp",
     "a, b, c: e = abs(c) < 0.5; where(e, a, b) - (b - a) * where(e, -c, 1 - c)"},
    {"logsigmoid", "a: x = a * 1.0; t = where(x >= 0, -x, x); where(x >= 0, 0, x) - log1p(exp(t))"},
    {"mish",
     "a: x = maximum(a, -1000.0); u = minimum(a, 1000.0); t = where(u >= 0, -u, u); "
     "x * tanh(where(u >= 0, u, 0) + log1p(exp(t)))"},
    {"rad2deg", "a: a * 57.29577951308232"},
    {"relu6", "a: where(a <= 0, where(a < 0, 0, a * 0), where(a >= 6, 6, a))"},
    {"rsub", "a, b: b - a"},
    {"silu", "a: maximum(a, -1000.0) * sigmoid(minimum(a, 1000.0))"},
    {"softplus", "a: x = a * 1.0; t = where(x >= 0, -x, x); where(x >= 0, x, 0) + log1p(exp(t))"},
    {"softsign",
     "a: x = a * 1.0; o = isinf(x); u = where(o, 0, x); where(o, sign(x), u / (1 + abs(u)))"},
};
// clang-format on

}  // namespace

absl::Span<const ElementFunction> StepFunctions() { return kSteps; }
absl::Span<const ComposedFunction> ComposedFunctions() { return kComposed; }

const Expression& ParsedOnce(const char* text) {
  static std::mutex* mutex = new std::mutex;
  static auto* parsed = new std::map<const char*, std::unique_ptr<Expression>>;
  {
    const std::lock_guard lock(*mutex);
    if (const auto found = parsed->find(text); found != parsed->end()) return *found->second;
  }
  StatusOr<Expression> e = Expression::Parse(text);  // which may ask for others
  OFL_CHECK(e.ok());
  const std::lock_guard lock(*mutex);
  auto& kept = (*parsed)[text];
  if (!kept) kept = std::make_unique<Expression>(*std::move(e));
  return *kept;
}

}  // namespace internal

const ElementFunction& FunctionOf(ElementFn fn) {
  static const auto* rows = [] {
    auto* found = new std::array<const ElementFunction*, 256>{};
    for (const ElementFunction& f : internal::StepFunctions()) {
      (*found)[static_cast<size_t>(f.fn)] = &f;
    }
    return found;
  }();
  return *(*rows)[static_cast<size_t>(fn)];
}

std::vector<ElementFunctionName> ElementFunctions() {
  std::vector<ElementFunctionName> names;
  for (const ElementFunction& f : internal::StepFunctions()) {
    if (f.name[0] != '_') names.push_back({f.name, f.arity});  // not a part of another
  }
  for (const internal::ComposedFunction& f : internal::ComposedFunctions()) {
    const auto& parameters = internal::ParsedOnce(f.text).parameters();
    names.push_back({f.name, static_cast<int>(parameters.size())});
  }
  std::sort(names.begin(), names.end(), [](auto& a, auto& b) { return a.name < b.name; });
  return names;
}

}  // namespace oneflow_lite
