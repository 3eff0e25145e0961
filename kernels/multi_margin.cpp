// SPDX-License-Identifier: Apache-2.0
#include "primitive/multi_margin.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

MultiMarginShape ShapeOf(const Tensor& x, const KernelContext& c) {
  return {.rows = x.shape()[0],
          .classes = x.shape()[1],
          .margin = c.attr<double>(1),
          .squared = c.attr<int64_t>(0) == 2};
}

class MultiMarginKernel final : public PrimitiveKernel<MultiMargin> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    return primitive_->Launch(c.stream(), ShapeOf(c.input(0), c), c.input(0).data(),
                              c.input(1).data<int64_t>(), c.output(0).data());
  }
};

class MultiMarginBackwardKernel final : public PrimitiveKernel<MultiMargin> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    return primitive_->LaunchBackward(c.stream(), ShapeOf(c.input(1), c), c.input(0).data(),
                                      c.input(1).data(), c.input(2).data<int64_t>(),
                                      c.output(0).data());
  }
};

OFL_REGISTER_KERNEL({.op = "multi_margin",
                     .dtypes = kFloatingSet,
                     .bind = BindByInput<MultiMarginKernel>});
OFL_REGISTER_KERNEL({.op = "multi_margin_backward",
                     .dtypes = kFloatingSet,
                     .bind = BindByInput<MultiMarginBackwardKernel>});

}  // namespace
}  // namespace oneflow_lite
