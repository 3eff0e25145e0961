// SPDX-License-Identifier: Apache-2.0
#include "functional/unary.h"

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

OFL_REGISTER_FUNCTION("neg(Tensor input) -> Tensor", Neg, kMethod, "Negates each element.");
OFL_REGISTER_FUNCTION("exp(Tensor input) -> Tensor", Exp, kMethod,
                      "e to the power of each element.");
OFL_REGISTER_FUNCTION("log(Tensor input) -> Tensor", Log, kMethod,
                      "Natural logarithm of each element.");
OFL_REGISTER_FUNCTION("relu(Tensor input) -> Tensor", Relu, kMethod, "max(x, 0) of each element.");

}  // namespace oneflow_lite::functional
