// SPDX-License-Identifier: Apache-2.0
#include "functional/select.h"

#include <limits>
#include <type_traits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
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

StatusOr<Tensor> MaskedFill(const Tensor& x, const Tensor& mask, Scalar value) {
  OFL_RETURN_IF_ERROR(CheckCondition("masked_fill", "mask", mask));
  OFL_ASSIGN_OR_RETURN(Tensor fill, ToTensor("masked_fill", value, x.dtype()));
  return Where(mask, fill, x);
}

namespace {

using Comparison = StatusOr<Tensor> (*)(const Operand&, const Operand&);

// What kExtremum gives; but at the bound the gradient is 0, as relu's is at 0, not half of it.
template <Comparison kExtremum, Comparison kReaches>
StatusOr<Tensor> Bounded(const Tensor& x, Scalar bound) {
  if (!GradEnabled() || !autograd::RequiresGrad(x)) return kExtremum(x, bound);
  OFL_ASSIGN_OR_RETURN(Tensor reached, kReaches(bound, x));
  return Where(reached, bound, x);
}

// A bound that the dtype does not hold is the dtype's end that is nearest.
Scalar Saturated(const Tensor& x, Scalar bound) {
  return VisitAll(ResultDType(x, bound), [&]<class T>(Tag<T>) -> Scalar {
    if (bound.fits<T>()) return bound;
    const double d = bound.to<double>();
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      return int64_t{d < 0 ? Limits::min() : Limits::max()};
    }
    return Scalar(d);
  });
}

}  // namespace

StatusOr<Tensor> Clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max) {
  if (!min && !max) return BadValue("clamp", "min", "None, like max", "a number, or max");
  Tensor y = x;
  if (min) {
    OFL_ASSIGN_OR_RETURN(y, (Bounded<Maximum, Ge>(y, Saturated(y, *min))));
  }
  if (max) {
    OFL_ASSIGN_OR_RETURN(y, (Bounded<Minimum, Le>(y, Saturated(y, *max))));
  }
  return y;
}

OFL_REGISTER_FUNCTION("where(Tensor condition, Operand input, Operand other) -> Tensor", Where,
                      kFunction, "input where condition (bool) holds, else other.");
OFL_REGISTER_FUNCTION("masked_fill(Tensor input, Tensor mask, Scalar value) -> Tensor", MaskedFill,
                      kMethod, "input with value where mask (bool) holds.");
OFL_REGISTER_FUNCTION("clamp(Tensor input, Scalar? min=None, Scalar? max=None) -> Tensor", Clamp,
                      kMethod, "Each element, not below min and not above max; NaN stays.");

}  // namespace oneflow_lite::functional
