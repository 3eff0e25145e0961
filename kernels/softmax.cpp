// SPDX-License-Identifier: Apache-2.0
//
// softmax, log_softmax and their backward: sees the tensors as outer x axis x inner and launches
// the device's primitive.
#include "primitive/softmax.h"

#include "kernels/primitive_kernel.h"
#include "oneflow_lite/core/row_stride.h"

namespace oneflow_lite {
namespace {

SoftmaxShape ShapeOf(const KernelContext& c, int inputs) {
  const int64_t axis = c.attr<int64_t>(0);
  const AxisSplit s = SplitAt(c.input(0).shape(), axis);
  SoftmaxShape shape{.rows = s.outer, .cols = s.axis, .inner = s.inner};
  for (int i = 0; i < inputs; ++i) {
    if (!c.input(i).is_contiguous()) shape.strides[i] = RowStrideOf(c.input(i), axis);
  }
  return shape;
}

// Rows may lie apart where the axis is the last, but for dims of size 1.
bool TakesStrides(const Tensor& x, const Attrs& attrs) {
  const int64_t axis = attrs.get<int64_t>(0);
  return SplitAt(x.shape(), axis).inner == 1 && RowStrideOf(x, axis) > 0;
}

Status CheckAxis(const char* op, const SoftmaxShape& shape, bool has_axis_kernel) {
  if (shape.inner == 1 || has_axis_kernel) return OkStatus();
  return Error(ErrorKind::kNotImplemented, op,
               "(): this device has no kernel for an axis that is not the last");
}

class SoftmaxKernel final : public PrimitiveKernel<Softmax> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const SoftmaxShape shape = ShapeOf(c, 1);
    OFL_RETURN_IF_ERROR(CheckAxis("softmax", shape, has_axis_kernel()));
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    return primitive_->Launch(c.stream(), shape, c.input(0).data(), c.output(0).data(), workspace);
  }
  bool has_axis_kernel() const override { return primitive_->has_axis_kernel(); }
  bool takes_strides(int, const Tensor& input, const Attrs& attrs) const override {
    return TakesStrides(input, attrs);
  }
};

class SoftmaxBackwardKernel final : public PrimitiveKernel<SoftmaxBackward> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const SoftmaxShape shape = ShapeOf(c, 2);
    OFL_RETURN_IF_ERROR(CheckAxis("softmax_backward", shape, has_axis_kernel()));
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    return primitive_->Launch(c.stream(), shape, c.input(0).data(), c.input(1).data(),
                              c.output(0).data(), workspace);
  }
  bool has_axis_kernel() const override { return primitive_->has_axis_kernel(); }
  bool takes_strides(int, const Tensor& input, const Attrs& attrs) const override {
    return TakesStrides(input, attrs);
  }
};

template <class Kernel, bool kLog>
StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& c) {
  return BindKernel<Kernel>(c, {.dtype = c.inputs[0], .log = kLog});
}

OFL_REGISTER_KERNEL({.op = "softmax",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 1,
                     .bind = Bind<SoftmaxKernel, false>});
OFL_REGISTER_KERNEL({.op = "log_softmax",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 1,
                     .bind = Bind<SoftmaxKernel, true>});
OFL_REGISTER_KERNEL({.op = "softmax_backward",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b11,
                     .bind = Bind<SoftmaxBackwardKernel, false>});
OFL_REGISTER_KERNEL({.op = "log_softmax_backward",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b11,
                     .bind = Bind<SoftmaxBackwardKernel, true>});

}  // namespace
}  // namespace oneflow_lite
