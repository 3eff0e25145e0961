// SPDX-License-Identifier: Apache-2.0
//
// softmax, log_softmax and their backward: sees the tensors as outer x axis x inner and launches
// the device's primitive.
#include "primitive/softmax.h"

#include "kernels/primitive_kernel.h"
#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/row_stride.h"
#include "primitive/copy.h"

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

class SoftmaxKernel final : public PrimitiveKernel<Softmax> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const SoftmaxShape shape = ShapeOf(c, 1);
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    return primitive_->Launch(c.stream(), shape, c.input(0).data(), c.output(0).data(), workspace);
  }
  bool takes_strides(int, const Tensor& input, const Attrs& attrs) const override {
    return TakesStrides(input, attrs);
  }
};

class SoftmaxBackwardKernel final : public PrimitiveKernel<SoftmaxBackward> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const SoftmaxShape shape = ShapeOf(c, 2);
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), shape)));
    return primitive_->Launch(c.stream(), shape, c.input(0).data(), c.input(1).data(),
                              c.output(0).data(), workspace);
  }
  bool takes_strides(int, const Tensor& input, const Attrs& attrs) const override {
    return TakesStrides(input, attrs);
  }
};

// 16-bit rows as float32: by a primitive that does it, where the device has one and the axis is the
// last; else the output takes a copy, and becomes its softmax.
class SoftmaxToFloat32Kernel final : public BoundKernel {
 public:
  SoftmaxToFloat32Kernel(std::unique_ptr<Softmax> direct, std::unique_ptr<Copy> copy,
                         std::unique_ptr<Softmax> in_place)
      : direct_(std::move(direct)), copy_(std::move(copy)), in_place_(std::move(in_place)) {}

  Status Launch(KernelContext& c) const override {
    SoftmaxShape shape = ShapeOf(c, 1);
    const Tensor &x = c.input(0), &y = c.output(0);
    const bool direct = direct_ && shape.inner == 1;
    const Softmax& softmax = direct ? *direct_ : *in_place_;
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(softmax.WorkspaceBytes(c.stream(), shape)));
    if (direct) return softmax.Launch(c.stream(), shape, x.data(), y.data(), workspace);
    const auto g = MakeElementwise<2>(x.shape(), {x.strides(), y.strides()});
    OFL_RETURN_IF_ERROR(copy_->Launch(c.stream(), g, x.data(), y.data()));
    shape.strides[0] = 0;
    return softmax.Launch(c.stream(), shape, y.data(), y.data(), workspace);
  }
  bool takes_strides(int, const Tensor& input, const Attrs& attrs) const override {
    return TakesStrides(input, attrs);
  }

 private:
  const std::unique_ptr<Softmax> direct_;  // or null
  const std::unique_ptr<Copy> copy_;
  const std::unique_ptr<Softmax> in_place_;
};

template <class Kernel, bool kLog>
StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& c) {
  return BindKernel<Kernel>(c, {.dtype = c.inputs[0], .log = kLog});
}

template <bool kLog>
StatusOr<std::unique_ptr<BoundKernel>> BindToFloat32(const BindContext& c) {
  const DType from = c.inputs[0], to = DType::kFloat32;
  OFL_ASSIGN_OR_RETURN(auto copy, NewPrimitive<CopyFactory>(c.device, {.from = from, .to = to}));
  OFL_ASSIGN_OR_RETURN(auto in_place,
                       NewPrimitive<SoftmaxFactory>(c.device, {.dtype = to, .log = kLog}));
  auto direct = NewPrimitive<SoftmaxFactory>(
      c.device, {.dtype = from, .log = kLog, .to_float32 = true});  // few devices have it
  return std::make_unique<SoftmaxToFloat32Kernel>(direct.ok() ? *std::move(direct) : nullptr,
                                                  std::move(copy), std::move(in_place));
}

OFL_REGISTER_KERNEL({.op = "softmax",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 1,
                     .bind = Bind<SoftmaxKernel, false>});
OFL_REGISTER_KERNEL({.op = "log_softmax",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 1,
                     .bind = Bind<SoftmaxKernel, true>});
OFL_REGISTER_KERNEL({.op = "softmax_to_float32",
                     .dtypes = SetOf(DType::kFloat16) | SetOf(DType::kBFloat16),
                     .strided_inputs = 1,
                     .bind = BindToFloat32<false>});
OFL_REGISTER_KERNEL({.op = "log_softmax_to_float32",
                     .dtypes = SetOf(DType::kFloat16) | SetOf(DType::kBFloat16),
                     .strided_inputs = 1,
                     .bind = BindToFloat32<true>});
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
