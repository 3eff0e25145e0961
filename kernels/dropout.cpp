// SPDX-License-Identifier: Apache-2.0
#include "primitive/dropout.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class DropoutKernel final : public PrimitiveKernel<Dropout> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    OFL_ASSIGN_OR_RETURN(const uint64_t* shift, c.stream().RandomShift());
    const PhiloxState state{.seed = static_cast<uint64_t>(c.attr<int64_t>(5)),
                            .offset = static_cast<uint64_t>(c.attr<int64_t>(6)),
                            .shift = shift};
    const DropoutNumbers numbers{.p = c.attr<double>(0),
                                 .scale = c.attr<double>(1),
                                 .kept = c.attr<double>(2),
                                 .dropped = c.attr<double>(3),
                                 .inner = c.attr<int64_t>(4)};
    return primitive_->Launch(c.stream(), c.output(0).numel(), state, numbers, c.input(0).data(),
                              c.output(0).data(), static_cast<uint64_t*>(c.output(1).data()));
  }
};

class DropoutBackwardKernel final : public PrimitiveKernel<Dropout> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const DropoutNumbers numbers{
        .p = c.attr<double>(0), .scale = c.attr<double>(1), .inner = c.attr<int64_t>(2)};
    return primitive_->LaunchBackward(c.stream(), c.output(0).numel(), numbers, c.input(0).data(),
                                      static_cast<const uint64_t*>(c.input(1).data()),
                                      c.output(0).data());
  }
};

OFL_REGISTER_KERNEL({.op = "dropout", .dtypes = kFloatingSet, .bind = BindByInput<DropoutKernel>});
OFL_REGISTER_KERNEL({.op = "dropout_backward",
                     .dtypes = kFloatingSet,
                     .bind = BindByInput<DropoutBackwardKernel>});

}  // namespace
}  // namespace oneflow_lite
