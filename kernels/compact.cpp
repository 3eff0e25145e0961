// SPDX-License-Identifier: Apache-2.0
#include "primitive/compact.h"

#include "kernels/primitive_kernel.h"
#include "primitive/presence.h"

namespace oneflow_lite {
namespace {

class NonzeroKernel final : public PrimitiveKernel<Compact> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor& x = c.input(0);
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(primitive_->WorkspaceBytes(x.numel())));
    return primitive_->Places(c.stream(), x.ndim(), x.shape().dims().data(), x.data(),
                              c.output(0).shape()[0], c.output(0).data<int64_t>(), workspace);
  }
};

class MaskedTakeKernel final : public PrimitiveKernel<Compact> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor& x = c.input(0);
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(primitive_->WorkspaceBytes(x.numel())));
    return primitive_->Take(c.stream(), x.numel(), c.input(1).data(), x.data(), c.output(0).numel(),
                            c.output(0).data(), workspace);
  }
};

class MaskedPutKernel final : public PrimitiveKernel<Compact> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor& x = c.input(0);
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(primitive_->WorkspaceBytes(x.numel())));
    return primitive_->Put(c.stream(), x.numel(), c.input(1).data(), x.data(), c.input(2).data(),
                           c.input(2).numel(), c.output(0).data(), workspace);
  }
};

class PresenceKernel final : public PrimitiveKernel<Presence> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &seen = c.output(0);
    return primitive_->Launch(c.stream(), x.numel(), x.data(), c.attr<int64_t>(0), seen.numel(),
                              seen.data<bool>());
  }
};

StatusOr<std::unique_ptr<BoundKernel>> BindNonzero(const BindContext& c) {
  return BindKernel<NonzeroKernel>(c, {.mask = c.inputs[0], .dtype = c.inputs[0]});
}

OFL_REGISTER_KERNEL({.op = "nonzero", .bind = BindNonzero});
OFL_REGISTER_KERNEL({.op = "masked_take", .bind = BindByInput<MaskedTakeKernel>});
OFL_REGISTER_KERNEL({.op = "masked_put", .bind = BindByInput<MaskedPutKernel>});
OFL_REGISTER_KERNEL({.op = "presence", .bind = BindByInput<PresenceKernel>});

}  // namespace
}  // namespace oneflow_lite
