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

// Calls the op over `axis`. Where that is the last in memory but not in order, transposes around
// the op are free; other tensors the op takes as they are, or copies.
StatusOr<Tensor> CallOverAxis(const OpExpr& op, absl::Span<const Tensor> inputs, int64_t axis) {
  const Tensor& x = inputs[0];
  const int64_t last = std::max(1, x.ndim()) - 1;
  if (axis == last || x.numel() == 0 || x.is_contiguous()) return Call(op, inputs, {axis});
  OFL_ASSIGN_OR_RETURN(const Tensor rows, Transpose(x, axis, last));
  if (RowStrideOf(rows, last) == 0) return Call(op, inputs, {axis});
  TensorList moved;
  for (const Tensor& t : inputs) {
    OFL_ASSIGN_OR_RETURN(Tensor m, Transpose(t, axis, last));
    moved.push_back(std::move(m));
  }
  OFL_ASSIGN_OR_RETURN(Tensor y, Call(op, moved, {last}));
  return Transpose(y, axis, last);
}

const OpExpr& LogSoftmaxOp() {
  static const OpExpr& op = OpBuilder("log_softmax").Input("in").Output("out").Attr("axis").Get();
  return op;
}

// to_float32: the op that gives 16-bit input's result in float32.
StatusOr<Tensor> Forward(const char* name, const OpExpr& op, const OpExpr& to_float32,
                         const Tensor& input, std::optional<int64_t> dim,
                         std::optional<DType> dtype) {
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
  if (axis == 1 && &op == &LogSoftmaxOp() && HasSplitClasses(x)) {
    if (widens) {
      OFL_ASSIGN_OR_RETURN(x, Cast(x, *dtype));
    }
    return SplitClassLogSoftmax(x);
  }
  return CallOverAxis(widens ? to_float32 : op, absl::MakeConstSpan(&x, 1), axis);
}

}  // namespace

StatusOr<Tensor> Softmax(const Tensor& x, std::optional<int64_t> dim, std::optional<DType> dtype) {
  static const OpExpr& op = OpBuilder("softmax").Input("in").Output("out").Attr("axis").Get();
  static const OpExpr& to_float32 =
      OpBuilder("softmax_to_float32").Input("in").Output("out").Attr("axis").Get();
  return Forward("softmax", op, to_float32, x, dim, dtype);
}

StatusOr<Tensor> LogSoftmax(const Tensor& x, std::optional<int64_t> dim,
                            std::optional<DType> dtype) {
  static const OpExpr& to_float32 =
      OpBuilder("log_softmax_to_float32").Input("in").Output("out").Attr("axis").Get();
  return Forward("log_softmax", LogSoftmaxOp(), to_float32, x, dim, dtype);
}

StatusOr<Tensor> SoftmaxBackward(const Tensor& y, const Tensor& dy, int64_t axis) {
  static const OpExpr& op =
      OpBuilder("softmax_backward").Input("y").Input("dy").Output("dx").Attr("axis").Get();
  const Tensor inputs[] = {y, dy};
  return CallOverAxis(op, inputs, axis);
}

StatusOr<Tensor> LogSoftmaxBackward(const Tensor& y, const Tensor& dy, int64_t axis) {
  static const OpExpr& op =
      OpBuilder("log_softmax_backward").Input("y").Input("dy").Output("dx").Attr("axis").Get();
  const Tensor inputs[] = {y, dy};
  return CallOverAxis(op, inputs, axis);
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
