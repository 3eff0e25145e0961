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

// Where the output is wider than the input, `direct` serves rows of the last axis, if the device
// has it; else the output takes a copy, and becomes its softmax.
class SoftmaxKernel final : public BoundKernel {
 public:
  SoftmaxKernel(std::unique_ptr<Softmax> direct, std::unique_ptr<Copy> copy,
                std::unique_ptr<Softmax> in_place)
      : direct_(std::move(direct)), copy_(std::move(copy)), in_place_(std::move(in_place)) {}

  Status Launch(KernelContext& c) const override {
    SoftmaxShape shape = ShapeOf(c, 1);
    const Tensor &in = c.input(0), &out = c.output(0);
    const bool copies = copy_ && !(direct_ && shape.inner == 1);
    const Softmax& softmax = copies ? *in_place_ : *direct_;
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(softmax.WorkspaceBytes(c.stream(), shape)));
    if (copies) {
      const auto g = MakeElementwise<2>(in.shape(), {in.strides(), out.strides()});
      OFL_RETURN_IF_ERROR(copy_->Launch(c.stream(), g, in.data(), out.data()));
      shape.strides[0] = 0;
    }
    const void* x = copies ? out.data() : in.data();
    return softmax.Launch(c.stream(), shape, x, out.data(), workspace);
  }
  bool takes_strides(int, const Tensor& input, const Attrs& attrs) const override {
    return TakesStrides(input, attrs);
  }

 private:
  const std::unique_ptr<Softmax> direct_;  // null where only a copy's softmax is there
  const std::unique_ptr<Copy> copy_;       // null where input and output are of one dtype
  const std::unique_ptr<Softmax> in_place_;
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

template <bool kLog>
StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& c) {
  const DType from = c.inputs[0], to = c.outputs[0];
  const bool widens = from != to;
  auto direct =
      NewPrimitive<SoftmaxFactory>(c.device, {.dtype = from, .log = kLog, .to_float32 = widens});
  if (!widens) {
    OFL_RETURN_IF_ERROR(direct.status());
    return std::make_unique<SoftmaxKernel>(*std::move(direct), nullptr, nullptr);
  }
  OFL_ASSIGN_OR_RETURN(auto copy, NewPrimitive<CopyFactory>(c.device, {.from = from, .to = to}));
  OFL_ASSIGN_OR_RETURN(auto in_place,
                       NewPrimitive<SoftmaxFactory>(c.device, {.dtype = to, .log = kLog}));
  return std::make_unique<SoftmaxKernel>(direct.ok() ? *std::move(direct) : nullptr,
                                         std::move(copy), std::move(in_place));
}

template <bool kLog>
StatusOr<std::unique_ptr<BoundKernel>> BindBackward(const BindContext& c) {
  return BindKernel<SoftmaxBackwardKernel>(c, {.dtype = c.inputs[0], .log = kLog});
}

OFL_REGISTER_KERNEL(
    {.op = "softmax", .dtypes = kFloatingSet, .strided_inputs = 1, .bind = Bind<false>});
OFL_REGISTER_KERNEL(
    {.op = "log_softmax", .dtypes = kFloatingSet, .strided_inputs = 1, .bind = Bind<true>});
OFL_REGISTER_KERNEL({.op = "softmax_backward",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b11,
                     .bind = BindBackward<false>});
OFL_REGISTER_KERNEL({.op = "log_softmax_backward",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b11,
                     .bind = BindBackward<true>});

}  // namespace
}  // namespace oneflow_lite
