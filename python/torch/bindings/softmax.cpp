// SPDX-License-Identifier: Apache-2.0
//
// softmax, log_softmax and their gradients.
#include "primitive/softmax.h"

#include "python/torch/bindings/launch.h"
#include "python/torch/bindings/operators.h"
#include "python/torch/invariant/invariant.h"

namespace oneflow_lite::torch_ops {
namespace {

// x as outer x axis x inner; a stride of 0 asks for a contiguous tensor.
SoftmaxShape ShapeOf(const TensorInfo& x, int64_t axis) {
  SoftmaxShape s{.rows = 1, .cols = 1, .inner = 1};
  for (int64_t d = 0; d < x.ndim; ++d) {
    (d < axis ? s.rows : d == axis ? s.cols : s.inner) *= x.sizes[d];
  }
  return s;
}

// Whether the tensor can be read as it lies; its row stride then.
bool Served(const TensorInfo& x, int64_t axis, int64_t inner, int64_t* stride) {
  *stride = inner == 1 ? RowsOf(x, axis).stride : 0;
  return *stride > 0 || IsContiguous(x);
}

// Rows of the middle axis lie apart.
void CheckInvariant(bool invariant, const SoftmaxShape& shape, const char* op) {
  Require(!invariant || shape.inner == 1, op, "(): invariant rows are those of the last dim");
}

void CheckFloating(const TensorInfo& x, const char* op) {
  Require(x.is_floating(), op, "(): input must be float16, bfloat16, float32 or float64");
}

}  // namespace

Tensor SoftmaxForward(const Tensor& given, int64_t dim, bool log, bool to_float32, bool invariant) {
  return SoftmaxOf(given, TensorInfo(given), dim, log, to_float32, invariant);
}

Tensor SoftmaxOf(const Tensor& given, const TensorInfo& x, int64_t dim, bool log, bool to_float32,
                 bool invariant) {
  const char* op = log ? "log_softmax" : "softmax";
  CheckFloating(x, op);
  const int64_t axis = WrapDim(dim, x.ndim, op);
  SoftmaxShape shape = ShapeOf(x, axis);
  CheckInvariant(invariant, shape, op);
  if (!Served(x, axis, shape.inner, &shape.strides[0])) {
    return SoftmaxForward(Copied(given), dim, log, to_float32, invariant);
  }
  if (NeedsCopy(invariant, x, shape.cols, shape.stride(0))) {
    return SoftmaxForward(CopyOf(given), dim, log, to_float32, invariant);
  }
  const bool widens = to_float32 && SizeOf(x.dtype) == 2;
  if (widens && (x.device.type == DeviceType::kCPU || shape.inner != 1 || invariant)) {
    Require(false, op, "(): only rows on CUDA, not invariant, are widened to float32 on the way");
  }
  Tensor out = Empty(x.sizes, x.ndim, widens ? DType::kFloat32 : x.dtype, x.device);
  if (shape.rows == 0 || shape.cols == 0 || shape.inner == 0) return out;
  CurrentStream stream(x.device, invariant);
  const Softmax::Spec spec{.dtype = x.dtype, .log = log, .to_float32 = widens};
  const Softmax& softmax =
      RowPrimitive<Softmax>(invariant, x.device, spec, shape.cols, log + 2 * widens);
  const Workspace workspace(x.device, softmax.WorkspaceBytes(stream, shape));
  const int64_t item = SizeOf(x.dtype);
  EachRows(invariant, x, shape.rows, shape.cols, [&](int64_t first, int64_t count) {
    SoftmaxShape part = shape;
    part.rows = count;
    Check(softmax.Launch(stream, part, Further(x.data, first * shape.stride(0) * item),
                         Further(out.data(), first * shape.cols * item), workspace.data()));
  });
  return out;
}

Tensor SoftmaxGradient(const Tensor& dout, const Tensor& out, int64_t dim, bool log,
                       bool invariant) {
  return SoftmaxGradientOf(dout, TensorInfo(dout), out, TensorInfo(out), dim, log, invariant);
}

Tensor SoftmaxGradientOf(const Tensor& dout, const TensorInfo& dy, const Tensor& out,
                         const TensorInfo& y, int64_t dim, bool log, bool invariant) {
  const char* op = log ? "log_softmax_backward" : "softmax_backward";
  CheckFloating(y, op);
  RequireAlike(op, "the gradient", dy, y);
  const int64_t axis = WrapDim(dim, y.ndim, op);
  SoftmaxShape shape = ShapeOf(y, axis);
  CheckInvariant(invariant, shape, op);
  if (!Served(y, axis, shape.inner, &shape.strides[0])) {
    return SoftmaxGradient(dout, Copied(out), dim, log, invariant);
  }
  if (!Served(dy, axis, shape.inner, &shape.strides[1])) {
    return SoftmaxGradient(Copied(dout), out, dim, log, invariant);
  }
  if (NeedsCopy(invariant, y, shape.cols, shape.stride(0))) {
    return SoftmaxGradient(dout, CopyOf(out), dim, log, invariant);
  }
  if (NeedsCopy(invariant, dy, shape.cols, shape.stride(1))) {
    return SoftmaxGradient(CopyOf(dout), out, dim, log, invariant);
  }
  Tensor dx = EmptyLike(y);
  if (y.numel() == 0) return dx;
  CurrentStream stream(y.device, invariant);
  const SoftmaxBackward& backward = RowPrimitive<SoftmaxBackward>(
      invariant, y.device, {.dtype = y.dtype, .log = log}, shape.cols, log);
  const Workspace workspace(y.device, backward.WorkspaceBytes(stream, shape));
  const int64_t item = SizeOf(y.dtype);
  EachRows(invariant, y, shape.rows, shape.cols, [&](int64_t first, int64_t count) {
    SoftmaxShape part = shape;
    part.rows = count;
    Check(backward.Launch(stream, part, Further(y.data, first * shape.stride(0) * item),
                          Further(dy.data, first * shape.stride(1) * item),
                          Further(dx.data(), first * shape.cols * item), workspace.data()));
  });
  return dx;
}

}  // namespace oneflow_lite::torch_ops
