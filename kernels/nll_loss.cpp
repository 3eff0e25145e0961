// SPDX-License-Identifier: Apache-2.0
#include "primitive/nll_loss.h"

#include "oneflow_lite/framework/kernel_registry.h"

namespace oneflow_lite {
namespace {

NllLossShape ShapeOf(const Shape& logp, int64_t ignore_index) {
  const AxisSplit s = SplitAt(logp, logp.ndim() == 1 ? 0 : 1);
  return {.outer = s.outer, .classes = s.axis, .inner = s.inner, .ignore_index = ignore_index};
}

class NllLossKernel final : public BoundKernel {
 public:
  explicit NllLossKernel(std::unique_ptr<NllLoss> primitive) : primitive_(std::move(primitive)) {}
  Status Launch(KernelContext& c) const override {
    return primitive_->Launch(c.stream(), ShapeOf(c.input(0).shape(), c.attr<int64_t>(0)),
                              c.input(0).data(), c.input(1).data<int64_t>(),
                              c.input(2).defined() ? c.input(2).data() : nullptr,
                              c.output(0).data(), c.output(1).data());
  }

 private:
  std::unique_ptr<NllLoss> primitive_;
};

class NllLossBackwardKernel final : public BoundKernel {
 public:
  explicit NllLossBackwardKernel(std::unique_ptr<NllLossBackward> primitive)
      : primitive_(std::move(primitive)) {}
  Status Launch(KernelContext& c) const override {
    return primitive_->Launch(c.stream(), ShapeOf(c.output(0).shape(), c.attr<int64_t>(1)),
                              c.input(0).data(), c.input(1).data<int64_t>(), c.input(2).data(),
                              c.output(0).data());
  }

 private:
  std::unique_ptr<NllLossBackward> primitive_;
};

template <class Kernel, class Factory>
StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& c) {
  OFL_ASSIGN_OR_RETURN(auto primitive, NewPrimitive<Factory>(c.device, {.dtype = c.inputs[0]}));
  return std::make_unique<Kernel>(std::move(primitive));
}

OFL_REGISTER_KERNEL({.op = "nll_loss",
                     .dtypes = kFloatingSet,
                     .bind = Bind<NllLossKernel, NllLossFactory>});
OFL_REGISTER_KERNEL({.op = "nll_loss_backward",
                     .dtypes = kFloatingSet,
                     .bind = Bind<NllLossBackwardKernel, NllLossBackwardFactory>});

}  // namespace
}  // namespace oneflow_lite
