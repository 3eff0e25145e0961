// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) and its gradient: sees the tensors as rows, and a mask that broadcasts
// against them as strides, so that no expanded copy is made.
#include "primitive/scale_mask_softmax.h"

#include "kernels/primitive_kernel.h"
#include "oneflow_lite/core/elementwise.h"

namespace oneflow_lite {
namespace {

// The attributes scale and causal come first in both ops.
ScaleMaskSoftmaxShape ScaleMaskShapeOf(const KernelContext& c) {
  const Shape& shape = c.input(0).shape();
  ScaleMaskSoftmaxShape s;
  s.cols = shape[shape.ndim() - 1];
  s.rows = c.input(0).numel() / s.cols;  // no output is empty
  s.queries = shape.ndim() > 1 ? shape[shape.ndim() - 2] : 1;
  s.scale = c.attr<double>(0);
  s.causal = c.attr<bool>(1);
  return s;
}

// The mask's strides seen from x: dims are aligned on the right, those of size 1 are broadcast.
StatusOr<MaskGeometry> GeometryOf(const Tensor& mask, const Shape& x) {
  const int ndim = x.ndim(), missing = ndim - mask.ndim();
  Dims strides(ndim, 0);
  for (int d = missing; d < ndim; ++d) {
    if (mask.shape()[d - missing] > 1) strides[d] = mask.strides()[d - missing];
  }
  const absl::Span<const int64_t> all = x.dims(), steps = strides;
  const auto g = MakeElementwise<1>(all.subspan(0, ndim - 1), {steps.subspan(0, ndim - 1)});
  if (g.ndim > MaskGeometry::kDims) {
    return Error(ErrorKind::kNotImplemented, "scale_mask_softmax(): a mask of shape ",
                 mask.shape().ToString(), " broadcasts in too many places against ", x.ToString(),
                 "; expand it first");
  }
  MaskGeometry m;
  m.col_stride = strides[ndim - 1];
  for (int d = 0; d < g.ndim; ++d) {
    m.dims[MaskGeometry::kDims - g.ndim + d] = g.dims[d];
    m.strides[MaskGeometry::kDims - g.ndim + d] = g.strides[0][d];
  }
  return m;
}

class ScaleMaskSoftmaxKernel final : public PrimitiveKernel<ScaleMaskSoftmax> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    ScaleMaskSoftmaxShape shape = ScaleMaskShapeOf(c);
    shape.zero_masked_rows = c.attr<bool>(2);
    const Tensor& mask = c.input(1);
    if (mask.defined()) {
      OFL_ASSIGN_OR_RETURN(shape.mask, GeometryOf(mask, c.input(0).shape()));
    }
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    return primitive_->Launch(c.stream(), shape, c.input(0).data(),
                              mask.defined() ? mask.data() : nullptr, c.output(0).data(),
                              workspace);
  }
};

class ScaleMaskSoftmaxBackwardKernel final : public PrimitiveKernel<ScaleMaskSoftmaxBackward> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const ScaleMaskSoftmaxShape shape = ScaleMaskShapeOf(c);
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    return primitive_->Launch(c.stream(), shape, c.input(0).data(), c.input(1).data(),
                              c.output(0).data(), workspace);
  }
};

StatusOr<std::unique_ptr<BoundKernel>> BindForward(const BindContext& c) {
  return BindKernel<ScaleMaskSoftmaxKernel>(c, {.dtype = c.inputs[0], .mask_dtype = c.inputs[1]});
}

OFL_REGISTER_KERNEL({.op = "scale_mask_softmax",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b10,
                     .bind = BindForward});
OFL_REGISTER_KERNEL({.op = "scale_mask_softmax_backward",
                     .dtypes = kFloatingSet,
                     .bind = BindByInput<ScaleMaskSoftmaxBackwardKernel>});

}  // namespace
}  // namespace oneflow_lite
