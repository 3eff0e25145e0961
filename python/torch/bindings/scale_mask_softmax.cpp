// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) and its gradient; a mask that broadcasts is read through strides.
#include "primitive/scale_mask_softmax.h"

#include "python/torch/bindings/boxed.h"
#include "python/torch/bindings/launch.h"
#include "python/torch/bindings/operators.h"
#include "python/torch/invariant/invariant.h"

namespace oneflow_lite::torch_ops {
namespace {

constexpr char kOp[] = "scale_mask_softmax";
// PyTorch's tensors have at most so many dims.
constexpr int kMostDims = 64;

ScaleMaskSoftmaxShape ShapeOf(const TensorInfo& x, double scale, bool causal) {
  Require(x.is_floating() && x.ndim >= 1, kOp,
          "(): input must have a floating dtype and at least one dim");
  ScaleMaskSoftmaxShape s;
  s.cols = x.sizes[x.ndim - 1];
  s.rows = s.cols > 0 ? x.numel() / s.cols : 0;
  s.queries = x.ndim > 1 ? x.sizes[x.ndim - 2] : 1;
  s.scale = scale;
  s.causal = causal;
  return s;
}

// The mask's strides seen from x, whose dims align on the right; neighbours that step alike become
// one. False where more than three are left.
bool GeometryOf(const TensorInfo& mask, const TensorInfo& x, MaskGeometry* out) {
  int64_t dims[kMostDims], steps[kMostDims];
  int n = 0;
  const int64_t missing = x.ndim - mask.ndim;
  Require(missing >= 0, kOp, "(): mask has more dims than input");
  for (int64_t d = 0; d < x.ndim; ++d) {
    const int64_t size = d < missing ? 1 : mask.sizes[d - missing];
    Require(size == 1 || size == x.sizes[d], kOp, "(): mask does not broadcast to input");
    const int64_t step = size == 1 ? 0 : mask.strides[d - missing];
    if (d == x.ndim - 1) {
      out->col_stride = step;
      break;
    }
    if (x.sizes[d] == 1) continue;
    const bool merge = n > 0 && steps[n - 1] == step * x.sizes[d];
    if (!merge) dims[n++] = 1;
    dims[n - 1] *= x.sizes[d];
    steps[n - 1] = step;
  }
  if (n > MaskGeometry::kDims) return false;
  for (int i = 0; i < n; ++i) {
    out->dims[MaskGeometry::kDims - n + i] = dims[i];
    out->strides[MaskGeometry::kDims - n + i] = steps[i];
  }
  return true;
}

// The mask as large as x.
Tensor Expanded(const Tensor& mask, const TensorInfo& x) {
  const torch::headeronly::IntHeaderOnlyArrayRef sizes(x.sizes, x.ndim);
  const auto out = CallOperator("aten::expand", mask, sizes, false);
  return Copied(OnStack<Tensor>::Take(out[0]));
}

// Of rows along the last dim.
Tensor AlignedRows(bool invariant, const Tensor& dense) {
  const TensorInfo x(dense);
  return x.ndim == 0 ? dense : Aligned(invariant, dense, x.sizes[x.ndim - 1]);
}

// What the factory of the primitive is asked for, by the mask's dtype.
constexpr int kBool = 0, kSame = 1, kWide = 2;

}  // namespace

Tensor ScaleMaskSoftmaxForward(const Tensor& given, const OptionalTensor& mask, double scale,
                               bool causal, bool zero_masked_rows, bool invariant) {
  const Tensor input = AlignedRows(invariant, Contiguous(given));
  const TensorInfo x(input);
  ScaleMaskSoftmaxShape shape = ShapeOf(x, scale, causal);
  shape.zero_masked_rows = zero_masked_rows;
  DType mask_dtype = DType::kBool;
  OptionalTensor seen = mask;
  if (mask) {
    const TensorInfo m(*mask);
    mask_dtype = m.dtype;
    const bool wide = m.dtype == DType::kFloat32 && SizeOf(x.dtype) == 2;
    Require(m.known && (m.dtype == DType::kBool || m.dtype == x.dtype || wide), kOp,
            "(): mask must be bool, or of input's dtype, or float32 beside 16 bits");
    RequireBeside(kOp, "mask", m, x);
    if (NeedsCopy(invariant, m, 16, 16)) {  // how a mask begins may choose the kernel
      return ScaleMaskSoftmaxForward(input, CopyOf(*mask), scale, causal, zero_masked_rows, true);
    }
    if (!GeometryOf(m, x, &shape.mask)) {
      seen = Expanded(*mask, x);
      GeometryOf(TensorInfo(*seen), x, &shape.mask);
    }
  }
  Tensor y = EmptyLike(x);
  if (x.numel() == 0) return y;
  CurrentStream stream(x.device, invariant);
  const int variant = mask_dtype == DType::kBool ? kBool : mask_dtype == x.dtype ? kSame : kWide;
  const auto& softmax = RowPrimitive<ScaleMaskSoftmax>(
      invariant, x.device, {.dtype = x.dtype, .mask_dtype = mask_dtype}, shape.cols, variant);
  const Workspace workspace(x.device, softmax.WorkspaceBytes(stream, shape));
  Check(softmax.Launch(stream, shape, x.data, seen ? TensorInfo(*seen).data : nullptr, y.data(),
                       workspace.data()));
  return y;
}

Tensor ScaleMaskSoftmaxGradient(const Tensor& dout, const Tensor& out, double scale, bool causal,
                                bool invariant) {
  const Tensor dense_dy = AlignedRows(invariant, Contiguous(dout)),
               dense_y = AlignedRows(invariant, Contiguous(out));
  const TensorInfo dy(dense_dy), y(dense_y);
  RequireAlike("scale_mask_softmax_backward", "the gradient", dy, y);
  const ScaleMaskSoftmaxShape shape = ShapeOf(y, scale, causal);
  Tensor dx = EmptyLike(y);
  if (y.numel() == 0) return dx;
  CurrentStream stream(y.device, invariant);
  const auto& backward =
      RowPrimitive<ScaleMaskSoftmaxBackward>(invariant, y.device, {.dtype = y.dtype}, shape.cols);
  const Workspace workspace(y.device, backward.WorkspaceBytes(stream, shape));
  Check(backward.Launch(stream, shape, y.data, dy.data, dx.data(), workspace.data()));
  return dx;
}

}  // namespace oneflow_lite::torch_ops
