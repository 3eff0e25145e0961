// SPDX-License-Identifier: Apache-2.0
#include "functional/unary.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "functional/activation.h"
#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/operands.h"
#include "functional/unary_table.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

const OpExpr& UnaryOpExpr(const UnaryRow& row) {
  OpBuilder builder(row.name);
  builder.Input("in").Output("out");
  for (const char* attr : row.attrs) {
    if (attr != nullptr) builder.Attr(attr);
  }
  return builder.Get();
}

// The op of a row on x, which the kernel casts as it loads it, or which is copied, as the row's
// rule says.
template <size_t kRow>
StatusOr<Tensor> CallRow(const Tensor& x, const Attrs& attrs) {
  static_assert(kRow < kNumUnaryRows, "no row of that name in functional/unary_table.h");
  constexpr const UnaryRow& row = kUnaryRows[kRow];
  static const OpExpr& op = UnaryOpExpr(row);
  if constexpr (row.rule == UnaryRow::kWhole) {
    if (!IsFloating(x.dtype())) return Clone(x);
  }
  return Call(op, {x}, attrs);
}
// With its length: GCC's sanitizers would compare the text with null, which is no constant.
template <OpName kName>
constexpr size_t kRowOf = UnaryRowOf({kName.text, sizeof(kName.text) - 1});
template <OpName kName>
StatusOr<Tensor> CallNamed(const Tensor& x, const Attrs& attrs = {}) {
  return CallRow<kRowOf<kName>>(x, attrs);
}

// A function and method of the row's name; its text is kept.
template <auto kFunctor, OpName kName>
bool RegisterRow(internal::Place place) {
  constexpr const UnaryRow& row = kUnaryRows[kRowOf<kName>];
  static const std::string signature = absl::StrCat(row.name, "(Tensor input) -> Tensor");
  return internal::RegisterFunctor<kFunctor>(signature.c_str(), kMethod, row.doc, place);
}

}  // namespace

// The functor of a row that has nothing else to say, and its function.
#define OFL_UNARY(Function, name)                                           \
  StatusOr<Tensor> Function(const Tensor& x) { return CallNamed<name>(x); } \
  static const bool OFL_CONCAT(ofl_function_registered_, __COUNTER__) =     \
      RegisterRow<(Function), name>({__FILE__, __LINE__});
OFL_UNARY(Neg, "neg")
OFL_UNARY(Exp, "exp")
OFL_UNARY(Log, "log")
OFL_UNARY(Abs, "abs")
OFL_UNARY(Sqrt, "sqrt")
OFL_UNARY(Rsqrt, "rsqrt")
OFL_UNARY(Tanh, "tanh")
OFL_UNARY(Sigmoid, "sigmoid")
OFL_UNARY(Sin, "sin")
OFL_UNARY(Cos, "cos")
OFL_UNARY(Erf, "erf")
OFL_UNARY(Floor, "floor")
OFL_UNARY(Ceil, "ceil")
OFL_UNARY(Trunc, "trunc")
OFL_UNARY(Reciprocal, "reciprocal")
OFL_UNARY(Deg2rad, "deg2rad")
OFL_UNARY(Rad2deg, "rad2deg")
OFL_UNARY(Exp2, "exp2")
OFL_UNARY(Expm1, "expm1")
OFL_UNARY(Log1p, "log1p")
OFL_UNARY(Log2, "log2")
OFL_UNARY(Log10, "log10")
OFL_UNARY(Tan, "tan")
OFL_UNARY(Sinh, "sinh")
OFL_UNARY(Cosh, "cosh")
OFL_UNARY(Asin, "asin")
OFL_UNARY(Acos, "acos")
OFL_UNARY(Atan, "atan")
OFL_UNARY(Asinh, "asinh")
OFL_UNARY(Acosh, "acosh")
OFL_UNARY(Atanh, "atanh")
OFL_UNARY(Sinc, "sinc")
OFL_UNARY(Erfc, "erfc")
OFL_UNARY(Erfinv, "erfinv")
OFL_UNARY(Lgamma, "lgamma")
OFL_UNARY(Digamma, "digamma")
OFL_UNARY(I0, "i0")
OFL_UNARY(IsNan, "isnan")
OFL_UNARY(IsInf, "isinf")
OFL_UNARY(IsFinite, "isfinite")
OFL_UNARY(IsPosInf, "isposinf")
OFL_UNARY(IsNegInf, "isneginf")
OFL_UNARY(Signbit, "signbit")
OFL_UNARY(LogicalNot, "logical_not")
OFL_UNARY(BitwiseNot, "bitwise_not")
#undef OFL_UNARY

StatusOr<Tensor> PowHalf(const Tensor& x) { return CallNamed<"pow_half">(x); }
StatusOr<Tensor> PowMinusHalf(const Tensor& x) { return CallNamed<"pow_minus_half">(x); }
StatusOr<Tensor> Relu(const Tensor& x, bool inplace) {
  return inplace ? ReluInto(x) : CallNamed<"relu">(x);
}

StatusOr<Tensor> Gelu(const Tensor& x, absl::string_view approximate) {
  if (approximate == "tanh") return CallNamed<"gelu_tanh">(x);
  if (approximate == "none") return CallNamed<"gelu">(x);
  return BadValue("gelu", "approximate", absl::StrCat("\"", approximate, "\""),
                  "\"none\" or \"tanh\"");
}
StatusOr<Tensor> Round(const Tensor& x, int64_t decimals) {
  if (decimals == 0) return CallNamed<"round">(x);
  const double scale = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  return CallNamed<"round_decimals">(x, {scale, decimals < 0 ? 1.0 : 0.0});
}
StatusOr<Tensor> Frac(const Tensor& x) {
  if (x.dtype() == DType::kBool)
    return UnsupportedDType("frac", "the input", x.dtype(), "one of " + ToString(kNumericSet));
  return IsFloating(x.dtype()) ? CallNamed<"frac">(x) : Sub(x, x);
}
StatusOr<Tensor> Sign(const Tensor& x) {
  return x.dtype() == DType::kBool ? Clone(x) : CallNamed<"sign">(x);
}
StatusOr<Tensor> Square(const Tensor& x) {
  if (x.dtype() != DType::kBool) return CallNamed<"square">(x);
  return Cast(x, DType::kInt64);
}
StatusOr<Tensor> Positive(const Tensor& x) {
  if (x.dtype() != DType::kBool) return x;
  return UnsupportedDType("positive", "the input", x.dtype(), "one of " + ToString(kNumericSet));
}
StatusOr<Tensor> Logit(const Tensor& x, std::optional<double> eps) {
  return CallNamed<"logit">(x, {eps.value_or(-1.0)});
}
StatusOr<Tensor> NanToNum(const Tensor& x, double nan, std::optional<double> posinf,
                          std::optional<double> neginf) {
  double most = std::numeric_limits<double>::max();
  if (x.dtype() == DType::kFloat32) most = std::numeric_limits<float>::max();
  if (x.dtype() == DType::kFloat16) most = 65504;
  if (x.dtype() == DType::kBFloat16) most = 0x1.fep127;
  const Attrs numbers{nan, posinf.value_or(most), neginf.value_or(-most)};
  return CallNamed<"nan_to_num">(x, numbers);
}

OFL_REGISTER_FUNCTION("relu(Tensor input, bool inplace=False) -> Tensor", Relu, kMethod,
                      "max(x, 0) of each element; NaN stays NaN.");
OFL_REGISTER_FUNCTION("gelu(Tensor input, str approximate='none') -> Tensor", Gelu, kFunction,
                      "x P(N <= x) of each element, N standard normal; approximate='tanh' for the\n"
                      "approximation by tanh.");
OFL_REGISTER_FUNCTION("round(Tensor input, *, int decimals=0) -> Tensor", Round, kMethod,
                      "The nearest integer, the even one where two are; or so many digits after\n"
                      "the point, or before it where decimals is negative.");
OFL_REGISTER_FUNCTION("frac(Tensor input) -> Tensor", Frac, kMethod,
                      "The fraction of each element, with its sign.");
OFL_REGISTER_FUNCTION("sign(Tensor input) -> Tensor", Sign, kMethod,
                      "1, 0 or -1; NaN where x is; its gradient is 0.");
OFL_REGISTER_FUNCTION("square(Tensor input) -> Tensor", Square, kMethod, "x^2; of bool as int64.");
OFL_REGISTER_FUNCTION("positive(Tensor input) -> Tensor", Positive, kMethod,
                      "The tensor itself; not of bool.");
OFL_REGISTER_FUNCTION("logit(Tensor input, float? eps=None) -> Tensor", Logit, kMethod,
                      "log(x / (1 - x)); with eps, x is moved into [eps, 1 - eps] first.");
OFL_REGISTER_FUNCTION(
    "nan_to_num(Tensor input, float nan=0.0, float? posinf=None, float? neginf=None) -> Tensor",
    NanToNum, kMethod,
    "NaN and the infinities replaced, by default by 0 and the dtype's largest numbers.");

OFL_REGISTER_ALIAS("arccos", "acos");
OFL_REGISTER_ALIAS("arccosh", "acosh");
OFL_REGISTER_ALIAS("arcsin", "asin");
OFL_REGISTER_ALIAS("arcsinh", "asinh");
OFL_REGISTER_ALIAS("arctan", "atan");
OFL_REGISTER_ALIAS("arctanh", "atanh");
OFL_REGISTER_ALIAS("sgn", "sign");

}  // namespace oneflow_lite::functional
