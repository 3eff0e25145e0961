// SPDX-License-Identifier: Apache-2.0
#include "primitive/nll_loss.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

NllLossShape ShapeOf(const Shape& logp, int64_t ignore_index) {
  const AxisSplit s = SplitAt(logp, logp.ndim() == 1 ? 0 : 1);
  return {.outer = s.outer, .classes = s.axis, .inner = s.inner, .ignore_index = ignore_index};
}

class NllLossKernel final : public PrimitiveKernel<NllLoss> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    return primitive_->Launch(c.stream(), ShapeOf(c.input(0).shape(), c.attr<int64_t>(0)),
                              c.input(0).data(), c.input(1).data<int64_t>(),
                              c.input(2).defined() ? c.input(2).data() : nullptr,
                              c.output(0).data(), c.output(1).data());
  }
};

class NllLossBackwardKernel final : public PrimitiveKernel<NllLossBackward> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    return primitive_->Launch(c.stream(), ShapeOf(c.output(0).shape(), c.attr<int64_t>(1)),
                              c.input(0).data(), c.input(1).data<int64_t>(), c.input(2).data(),
                              c.output(0).data());
  }
};

OFL_REGISTER_KERNEL({.op = "nll_loss", .dtypes = kFloatingSet, .bind = BindByInput<NllLossKernel>});
OFL_REGISTER_KERNEL({.op = "nll_loss_backward",
                     .dtypes = kFloatingSet,
                     .bind = BindByInput<NllLossBackwardKernel>});

}  // namespace
}  // namespace oneflow_lite
