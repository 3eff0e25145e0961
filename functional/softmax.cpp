// SPDX-License-Identifier: Apache-2.0
#include "functional/softmax.h"

#include "functional/copy.h"
#include "functional/cross_entropy_split.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/row_stride.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// Calls the op over the axis that its first attribute is. Where that is the last in memory but not
// in order, transposes around the op are free; other tensors the op takes as they are, or copies.
StatusOr<Tensor> CallOverAxis(const OpExpr& op, absl::Span<const Tensor> inputs, Attrs attrs) {
  const Tensor& x = inputs[0];
  const int64_t axis = attrs.get<int64_t>(0), last = std::max(1, x.ndim()) - 1;
  if (axis == last || x.numel() == 0 || x.is_contiguous()) return Call(op, inputs, attrs);
  OFL_ASSIGN_OR_RETURN(const Tensor rows, Transpose(x, axis, last));
  if (RowStrideOf(rows, last) == 0) return Call(op, inputs, attrs);
  TensorList moved;
  for (const Tensor& t : inputs) {
    OFL_ASSIGN_OR_RETURN(Tensor m, Transpose(t, axis, last));
    moved.push_back(std::move(m));
  }
  attrs[0] = last;
  OFL_ASSIGN_OR_RETURN(Tensor y, Call(op, moved, attrs));
  return Transpose(y, axis, last);
}

const OpExpr& ForwardOp(const char* name) {
  return OpBuilder(name).Input("in").Output("out").Attr("axis").Attr("out_dtype").Get();
}
const OpExpr& LogSoftmaxOp() {
  static const OpExpr& op = ForwardOp("log_softmax");
  return op;
}

StatusOr<Tensor> Forward(const char* name, const OpExpr& op, const Tensor& input,
                         std::optional<int64_t> dim, std::optional<DType> dtype) {
  Tensor x = input;
  const bool casts = dtype && *dtype != x.dtype();
  const bool widens = casts && *dtype == DType::kFloat32 && ComputeType(x.dtype()) == *dtype;
  if (casts && !widens) {
    OFL_ASSIGN_OR_RETURN(x, Cast(x, *dtype));
  }
  if (!IsFloating(x.dtype())) return UnsupportedDType(name, "input", x.dtype(), kFloatingDTypes);
  const int ndim = x.ndim();
  const int64_t given = dim.value_or(ndim == 0 || ndim == 1 || ndim == 3 ? 0 : 1);
  OFL_ASSIGN_OR_RETURN(const int64_t axis, WrapDim(name, given, x));
  if (axis == 1 && &op == &LogSoftmaxOp() && HasSplitClasses(x) &&
      !GlobalOf(x)->placement->Here().empty()) {
    if (widens) {
      OFL_ASSIGN_OR_RETURN(x, Cast(x, *dtype));
    }
    return SplitClassLogSoftmax(x);
  }
  return CallOverAxis(op, absl::MakeConstSpan(&x, 1),
                      {axis, widens ? AttrValue(*dtype) : AttrValue()});
}

}  // namespace

StatusOr<Tensor> Softmax(const Tensor& x, std::optional<int64_t> dim, std::optional<DType> dtype) {
  static const OpExpr& op = ForwardOp("softmax");
  return Forward("softmax", op, x, dim, dtype);
}

StatusOr<Tensor> LogSoftmax(const Tensor& x, std::optional<int64_t> dim,
                            std::optional<DType> dtype) {
  return Forward("log_softmax", LogSoftmaxOp(), x, dim, dtype);
}

StatusOr<Tensor> SoftmaxBackward(const Tensor& y, const Tensor& dy, int64_t axis) {
  static const OpExpr& op =
      OpBuilder("softmax_backward").Input("y").Input("dy").Output("dx").Attr("axis").Get();
  const Tensor inputs[] = {y, dy};
  return CallOverAxis(op, inputs, {axis});
}

StatusOr<Tensor> LogSoftmaxBackward(const Tensor& y, const Tensor& dy, int64_t axis) {
  static const OpExpr& op =
      OpBuilder("log_softmax_backward").Input("y").Input("dy").Output("dx").Attr("axis").Get();
  const Tensor inputs[] = {y, dy};
  return CallOverAxis(op, inputs, {axis});
}

OFL_REGISTER_FUNCTION("softmax(Tensor input, int? dim=None, dtype? dtype=None) -> Tensor", Softmax,
                      kMethod,
                      "Softmax over one dim: exp(x - max) / sum exp(x - max).\n\n"
                      "dim counts from the end where negative; without it, 0 where ndim is 0, 1 or "
                      "3, else 1.\ninput is cast to dtype first where given; it must be floating.");
OFL_REGISTER_FUNCTION("log_softmax(Tensor input, int? dim=None, dtype? dtype=None) -> Tensor",
                      LogSoftmax, kMethod,
                      "Logarithm of the softmax over one dim: (x - max) - log sum exp(x - max).\n\n"
                      "Arguments as for softmax.");

}  // namespace oneflow_lite::functional
