// SPDX-License-Identifier: Apache-2.0
#include "functional/unary.h"

#include <limits>

#include "functional/binary.h"
#include "functional/copy.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

const OpExpr& UnaryOpExpr(const char* name) {
  return OpBuilder(name).Input("in").Output("out").Get();
}

// The op gives float32 of integers and bool.
StatusOr<Tensor> CallFloating(const OpExpr& op, const Tensor& x) { return Call(op, {x}); }

}  // namespace

StatusOr<Tensor> Neg(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("neg");
  return Call(op, {x});
}
StatusOr<Tensor> Exp(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("exp");
  return CallFloating(op, x);
}
StatusOr<Tensor> Log(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("log");
  return CallFloating(op, x);
}
StatusOr<Tensor> Relu(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("relu");
  return Call(op, {x});
}

StatusOr<Tensor> Abs(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("abs");
  return Call(op, {x});
}
StatusOr<Tensor> Sqrt(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("sqrt");
  return CallFloating(op, x);
}
StatusOr<Tensor> Rsqrt(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("rsqrt");
  return CallFloating(op, x);
}
StatusOr<Tensor> Tanh(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("tanh");
  return CallFloating(op, x);
}
StatusOr<Tensor> Sigmoid(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("sigmoid");
  return CallFloating(op, x);
}

StatusOr<Tensor> Sin(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("sin");
  return CallFloating(op, x);
}
StatusOr<Tensor> Cos(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("cos");
  return CallFloating(op, x);
}
StatusOr<Tensor> Erf(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("erf");
  return CallFloating(op, x);
}
StatusOr<Tensor> Silu(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("silu");
  return CallFloating(op, x);
}
StatusOr<Tensor> Floor(const Tensor& x) {
  static const OpExpr& op = UnaryOpExpr("floor");
  return IsFloating(x.dtype()) ? Call(op, {x}) : Clone(x);
}

StatusOr<Tensor> Gelu(const Tensor& x, absl::string_view approximate) {
  static const OpExpr& exact = UnaryOpExpr("gelu");
  static const OpExpr& by_tanh = UnaryOpExpr("gelu_tanh");
  if (approximate == "tanh") return CallFloating(by_tanh, x);
  if (approximate == "none") return CallFloating(exact, x);
  return BadValue("gelu", "approximate", absl::StrCat("\"", approximate, "\""),
                  "\"none\" or \"tanh\"");
}

StatusOr<Tensor> IsNan(const Tensor& x) { return Ne(x, x); }
StatusOr<Tensor> IsInf(const Tensor& x) {
  if (!IsFloating(x.dtype())) return Ne(x, x);
  OFL_ASSIGN_OR_RETURN(Tensor size, Abs(x));
  return Eq(size, Scalar(std::numeric_limits<double>::infinity()));
}
StatusOr<Tensor> IsFinite(const Tensor& x) {
  if (!IsFloating(x.dtype())) return Eq(x, x);
  OFL_ASSIGN_OR_RETURN(Tensor size, Abs(x));
  return Lt(size, Scalar(std::numeric_limits<double>::infinity()));
}
StatusOr<Tensor> LogicalNot(const Tensor& x) { return Eq(x, Scalar(false)); }

OFL_REGISTER_FUNCTION("neg(Tensor input) -> Tensor", Neg, kMethod, "Negates each element.");
OFL_REGISTER_FUNCTION("exp(Tensor input) -> Tensor", Exp, kMethod,
                      "e to the power of each element.");
OFL_REGISTER_FUNCTION("log(Tensor input) -> Tensor", Log, kMethod,
                      "Natural logarithm of each element.");
OFL_REGISTER_FUNCTION("relu(Tensor input) -> Tensor", Relu, kMethod, "max(x, 0) of each element.");
OFL_REGISTER_FUNCTION("abs(Tensor input) -> Tensor", Abs, kMethod, "|x| of each element.");
OFL_REGISTER_FUNCTION("sqrt(Tensor input) -> Tensor", Sqrt, kMethod,
                      "Square root of each element.");
OFL_REGISTER_FUNCTION("rsqrt(Tensor input) -> Tensor", Rsqrt, kMethod,
                      "1 / sqrt(x) of each element.");
OFL_REGISTER_FUNCTION("tanh(Tensor input) -> Tensor", Tanh, kMethod,
                      "Hyperbolic tangent of each element.");
OFL_REGISTER_FUNCTION("sigmoid(Tensor input) -> Tensor", Sigmoid, kMethod,
                      "1 / (1 + exp(-x)) of each element.");
OFL_REGISTER_FUNCTION("sin(Tensor input) -> Tensor", Sin, kMethod, "Sine of each element.");
OFL_REGISTER_FUNCTION("cos(Tensor input) -> Tensor", Cos, kMethod, "Cosine of each element.");
OFL_REGISTER_FUNCTION("erf(Tensor input) -> Tensor", Erf, kMethod,
                      "The error function of each element.");
OFL_REGISTER_FUNCTION("silu(Tensor input) -> Tensor", Silu, kFunction,
                      "x / (1 + exp(-x)) of each element.");
OFL_REGISTER_FUNCTION("gelu(Tensor input, str approximate='none') -> Tensor", Gelu, kFunction,
                      "x P(N <= x) of each element, N standard normal; approximate='tanh' for the\n"
                      "approximation by tanh.");
OFL_REGISTER_FUNCTION("floor(Tensor input) -> Tensor", Floor, kMethod,
                      "The largest integer not above each element.");
OFL_REGISTER_FUNCTION("isnan(Tensor input) -> Tensor", IsNan, kMethod,
                      "Whether each element is NaN.");
OFL_REGISTER_FUNCTION("isinf(Tensor input) -> Tensor", IsInf, kMethod,
                      "Whether each element is infinite.");
OFL_REGISTER_FUNCTION("isfinite(Tensor input) -> Tensor", IsFinite, kMethod,
                      "Whether each element is neither infinite nor NaN.");
OFL_REGISTER_FUNCTION("logical_not(Tensor input) -> Tensor", LogicalNot, kMethod,
                      "Whether each element is 0.");

}  // namespace oneflow_lite::functional
