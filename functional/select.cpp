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
  for (const Operand* o : {&a, &b}) {
    const Scalar* number = std::get_if<Scalar>(o);
    if (number) OFL_RETURN_IF_ERROR(CheckFits("where", *number, dtype));
  }
  OFL_ASSIGN_OR_RETURN(Tensor x, ToTensor(a, dtype));
  OFL_ASSIGN_OR_RETURN(Tensor y, ToTensor(b, dtype));
  return Call(op, {condition, x, y});
}

StatusOr<Tensor> MaskedFill(const Tensor& x, const Tensor& mask, Scalar value) {
  OFL_RETURN_IF_ERROR(CheckCondition("masked_fill", "mask", mask));
  OFL_RETURN_IF_ERROR(CheckFits("masked_fill", value, x.dtype()));
  OFL_ASSIGN_OR_RETURN(Tensor fill, ToTensor(value, x.dtype()));
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

// A bound in the dtype it is compared in. One past the end that every element is within anyhow is
// that end; past the other, nothing is within it.
StatusOr<Scalar> FittingBound(const Tensor& x, Scalar bound, bool is_min) {
  const DType dtype = ResultDType(x, bound);
  return VisitAll(dtype, [&]<class T>(Tag<T>) -> StatusOr<Scalar> {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      constexpr auto kLeast = int64_t{std::numeric_limits<T>::min()};
      constexpr auto kMost = int64_t{std::numeric_limits<T>::max()};
      const auto value = bound.to<int64_t>();
      if (is_min ? value < kLeast : value > kMost) return Scalar(is_min ? kLeast : kMost);
      if (value < kLeast || value > kMost) {
        return BadValue("clamp", is_min ? "min" : "max", absl::StrCat(value),
                        absl::StrCat("in [", kLeast, ", ", kMost, "] for ", Name(dtype)));
      }
    }
    return bound;
  });
}

}  // namespace

StatusOr<Tensor> Clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max) {
  if (!min && !max) return BadValue("clamp", "min", "None, like max", "a number, or max");
  if (min) {
    OFL_ASSIGN_OR_RETURN(min, FittingBound(x, *min, true));
  }
  if (max) {
    OFL_ASSIGN_OR_RETURN(max, FittingBound(x, *max, false));
  }
  Tensor y = x;
  if (min) {
    OFL_ASSIGN_OR_RETURN(y, (Bounded<Maximum, Ge>(y, *min)));
  }
  if (max) {
    OFL_ASSIGN_OR_RETURN(y, (Bounded<Minimum, Le>(y, *max)));
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
