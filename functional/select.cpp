// SPDX-License-Identifier: Apache-2.0
#include "functional/select.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "functional/argument_names.h"
#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

Status CheckCondition(const char* name, const char* argument, const Tensor& t) {
  if (t.dtype() == DType::kBool) return OkStatus();
  if (!t.defined()) return NotDefined(name, argument);
  return DTypeMismatch(name, argument, t.dtype(), "bool");
}

}  // namespace

StatusOr<Tensor> Where(const Tensor& condition, const Operand& a, const Operand& b) {
  static const OpExpr& op =
      OpBuilder("where").Input("condition").Input("input").Input("other").Output("out").Get();
  OFL_RETURN_IF_ERROR(CheckCondition("where", "condition", condition));
  const DType dtype = ResultDType(a, b);
  OFL_ASSIGN_OR_RETURN(Tensor x, ToTensor("where", a, dtype));
  OFL_ASSIGN_OR_RETURN(Tensor y, ToTensor("where", b, dtype));
  return Call(op, {condition, x, y});
}

StatusOr<Tensor> MaskedFill(const Tensor& x, const Tensor& mask, const Operand& value) {
  OFL_RETURN_IF_ERROR(CheckCondition("masked_fill", "mask", mask));
  Operand given = value;
  if (const Tensor* t = std::get_if<Tensor>(&value)) {
    if (t->ndim() != 0) {
      return ShapeMismatch("masked_fill", "value", t->shape(), "a number, or a tensor of 0 dims");
    }
    OFL_ASSIGN_OR_RETURN(given, To(*t, x.device(), x.dtype()));
  }
  OFL_ASSIGN_OR_RETURN(Tensor fill, ToTensor("masked_fill", given, x.dtype()));
  StatusOr<Tensor> y = Where(mask, fill, x);
  return y.ok() ? y : WithArgument(Renamed("masked_fill", y.status()), "other", "input");
}

OFL_REGISTER_FUNCTION("where(Tensor condition, Operand input, Operand other) -> Tensor", Where,
                      kFunction, "input where condition (bool) holds, else other.");
OFL_REGISTER_FUNCTION("masked_fill(Tensor input, Tensor mask, Operand value) -> Tensor", MaskedFill,
                      kMethod, "input with value where mask (bool) holds.");

}  // namespace oneflow_lite::functional
