// SPDX-License-Identifier: Apache-2.0
#include "functional/unary.h"

#include <limits>

#include "functional/binary.h"
#include "functional/copy.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

const OpExpr& UnaryOpExpr(const char* name) {
  return OpBuilder(name).Input("in").Output("out").Get();
}

StatusOr<Tensor> CallFloating(const OpExpr& op, const Tensor& x) {
  OFL_ASSIGN_OR_RETURN(Tensor floating, IsFloating(x.dtype()) ? x : Cast(x, DType::kFloat32));
  return Call(op, {floating});
}

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
OFL_REGISTER_FUNCTION("isnan(Tensor input) -> Tensor", IsNan, kMethod,
                      "Whether each element is NaN.");
OFL_REGISTER_FUNCTION("isinf(Tensor input) -> Tensor", IsInf, kMethod,
                      "Whether each element is infinite.");
OFL_REGISTER_FUNCTION("isfinite(Tensor input) -> Tensor", IsFinite, kMethod,
                      "Whether each element is neither infinite nor NaN.");
OFL_REGISTER_FUNCTION("logical_not(Tensor input) -> Tensor", LogicalNot, kMethod,
                      "Whether each element is 0.");

}  // namespace oneflow_lite::functional
