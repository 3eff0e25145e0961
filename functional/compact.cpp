// SPDX-License-Identifier: Apache-2.0
#include "functional/compact.h"

#include "functional/copy.h"
#include "functional/host_value.h"
#include "functional/reduce.h"
#include "functional/shapes.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

StatusOr<int64_t> HeldBy(const char* name, const Tensor& mask) {
  OFL_ASSIGN_OR_RETURN(const Tensor count, CountNonzero(mask.Detach()));
  return ValueOf<int64_t>(name, count);
}

Status CheckMasked(const char* name, const Tensor& x, const Tensor& mask) {
  if (!x.defined()) return NotDefined(name, "input");
  if (!mask.defined()) return NotDefined(name, "mask");
  if (mask.dtype() != DType::kBool) return DTypeMismatch(name, "mask", mask.dtype(), "bool");
  if (x.device() == mask.device()) return OkStatus();
  return DeviceMismatch(name, "input", x.device(), "mask", mask.device());
}

}  // namespace

StatusOr<Tensor> Argwhere(const Tensor& x) {
  static const OpExpr& op = OpBuilder("nonzero").Input("in").Output("out").Attr("count").Get();
  if (!x.defined()) return NotDefined("argwhere", "input");
  OFL_ASSIGN_OR_RETURN(const int64_t count, HeldBy("argwhere", x));
  return Call(op, {x}, {count});
}

StatusOr<Tensor> MaskedTake(const Tensor& x, const Tensor& mask, int64_t count) {
  static const OpExpr& op =
      OpBuilder("masked_take").Input("in").Input("mask").Output("out").Attr("count").Get();
  return Call(op, {x, mask}, {count});
}

StatusOr<Tensor> MaskedPut(const Tensor& x, const Tensor& mask, const Tensor& source) {
  static const OpExpr& op =
      OpBuilder("masked_put").Input("in").Input("mask").Input("src").Output("out").Get();
  return Call(op, {x, mask, source});
}

StatusOr<Tensor> MaskedSelect(const Tensor& x, const Tensor& mask) {
  constexpr char kMaskedSelect[] = "masked_select";
  OFL_RETURN_IF_ERROR(CheckMasked(kMaskedSelect, x, mask));
  const Tensor both[] = {x, mask};
  OFL_ASSIGN_OR_RETURN(const Shape shape, CommonShape(kMaskedSelect, both));
  OFL_ASSIGN_OR_RETURN(const Tensor from, Expand(x, shape));
  OFL_ASSIGN_OR_RETURN(const Tensor held, Expand(mask, shape));
  OFL_ASSIGN_OR_RETURN(const int64_t count, HeldBy(kMaskedSelect, held));
  return MaskedTake(from, held, count);
}

StatusOr<Tensor> MaskedScatter(const Tensor& x, const Tensor& mask, const Tensor& source) {
  constexpr char kMaskedScatter[] = "masked_scatter";
  OFL_RETURN_IF_ERROR(CheckMasked(kMaskedScatter, x, mask));
  if (!source.defined()) return NotDefined(kMaskedScatter, "source");
  if (source.dtype() != x.dtype()) {
    return DTypeMismatch(kMaskedScatter, "source", source.dtype(), Name(x.dtype()));
  }
  const Tensor both[] = {x, mask};
  OFL_ASSIGN_OR_RETURN(const Shape shape, CommonShape(kMaskedScatter, both));
  OFL_ASSIGN_OR_RETURN(const Tensor to, Expand(x, shape));
  OFL_ASSIGN_OR_RETURN(const Tensor held, Expand(mask, shape));
  if (TakesPart(held)) {
    OFL_ASSIGN_OR_RETURN(const int64_t count, HeldBy(kMaskedScatter, held));
    if (count > source.numel()) {
      return Error(ErrorKind::kShape, kMaskedScatter, "(): source has ", source.numel(),
                   " elements for ", count, " places");
    }
  }
  OFL_ASSIGN_OR_RETURN(const Tensor line, Reshape(source, {-1}));
  return MaskedPut(to, held, line);
}

OFL_REGISTER_FUNCTION(
    "argwhere(Tensor input) -> Tensor", Argwhere, kMethod,
    "The places of the elements that are not 0: int64 [count, ndim], row by row. How many there\n"
    "are waits for the device.");
OFL_REGISTER_FUNCTION("masked_select(Tensor input, Tensor mask) -> Tensor", MaskedSelect, kMethod,
                      "The elements where the mask holds, 1-D. Waits for the device.");
OFL_REGISTER_FUNCTION(
    "masked_scatter(Tensor input, Tensor mask, Tensor source) -> Tensor", MaskedScatter, kMethod,
    "Where the mask holds the elements of source, in their order, else those of the input.\n"
    "ShapeError where source has too few elements. Waits for the device.");

}  // namespace oneflow_lite::functional
