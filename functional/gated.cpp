// SPDX-License-Identifier: Apache-2.0
#include "functional/gated.h"

#include <algorithm>

#include "functional/operands.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {

namespace {

StatusOr<Tensor> Unit(const OpExpr& op, const Tensor& x, int64_t dim) {
  const char* name = op.def().name.c_str();
  if (!x.defined()) return NotDefined(name, "input");
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(name, dim, x));
  const int64_t size = x.ndim() > 0 ? x.shape()[static_cast<int>(axis)] : 1;
  if (IsFloating(x.dtype()) && size % 2 != 0) {  // by the caller's number of the dim
    return ShapeMismatch(name, "input", x.shape(), absl::StrCat("an even size of dim ", dim));
  }
  return Call(op, {x}, {axis});
}

}  // namespace

StatusOr<Tensor> Glu(const Tensor& x, int64_t dim) {
  static const OpExpr& op = OpBuilder("glu").Input("input").Output("out").Attr("dim").Get();
  return Unit(op, x, dim);
}

StatusOr<Tensor> Swiglu(const Tensor& x, int64_t dim) {
  static const OpExpr& op = OpBuilder("swiglu").Input("input").Output("out").Attr("dim").Get();
  return Unit(op, x, dim);
}

StatusOr<Tensor> GatedUnitBackward(bool swiglu, const Tensor& dy, const Tensor& x, int64_t dim) {
  static const OpExpr& of_glu =
      OpBuilder("glu_backward").Input("dy").Input("input").Output("dx").Attr("dim").Get();
  static const OpExpr& of_swiglu =
      OpBuilder("swiglu_backward").Input("dy").Input("input").Output("dx").Attr("dim").Get();
  return Call(swiglu ? of_swiglu : of_glu, {dy, x}, {dim});
}

StatusOr<Tensor> Prelu(const Tensor& x, const Tensor& given) {
  constexpr char kName[] = "prelu";
  if (!x.defined()) return NotDefined(kName, "input");
  if (!given.defined()) return NotDefined(kName, "weight");
  if (given.device() != x.device()) {
    return DeviceMismatch(kName, "input", x.device(), "weight", given.device());
  }
  Tensor weight = given;
  if (weight.numel() != 1) {
    const int64_t channels = x.ndim() > 1 ? x.shape()[1] : 1;
    if (weight.ndim() != 1 || weight.numel() != channels) {
      return ShapeMismatch(kName, "weight", weight.shape(),
                           absl::StrCat("[1] or [", channels, "]"));
    }
    Dims shape(std::max(1, x.ndim() - 1), 1);
    shape[0] = -1;
    OFL_ASSIGN_OR_RETURN(weight, Reshape(weight, shape));
  } else {
    OFL_ASSIGN_OR_RETURN(weight, Reshape(weight, {}));
  }
  return CallPromoted(OpOfTwo<"prelu">(), x, weight);
}

OFL_REGISTER_FUNCTION("glu(Tensor input, int dim=-1) -> Tensor", Glu, kFunction,
                      "The first half along a dim times the sigmoid of the second.");
OFL_REGISTER_FUNCTION("swiglu(Tensor input, int dim=-1) -> Tensor", Swiglu, kFunction,
                      "silu of the first half along a dim, times the second half (Shazeer, 2020).");
OFL_REGISTER_FUNCTION(
    "prelu(Tensor input, Tensor weight) -> Tensor", Prelu, kMethod,
    "The element where it is positive, else weight times it: one number, or one per channel, dim "
    "1.");

}  // namespace oneflow_lite::functional
