// SPDX-License-Identifier: Apache-2.0
//
// Kernels that own one primitive, which most do.
//
//   class CumSumKernel final : public PrimitiveKernel<CumSum> {
//    public:
//     using PrimitiveKernel::PrimitiveKernel;
//     Status Launch(KernelContext& c) const override { return primitive_->Launch(...); }
//   };
//   OFL_REGISTER_KERNEL({.op = "cumsum", .bind = BindByInput<CumSumKernel>});
#pragma once

#include <memory>
#include <utility>

#include "oneflow_lite/framework/kernel_registry.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

template <class P>
class PrimitiveKernel : public BoundKernel {
 public:
  using Primitive = P;
  explicit PrimitiveKernel(std::unique_ptr<P> primitive) : primitive_(std::move(primitive)) {}

 protected:
  const std::unique_ptr<P> primitive_;
};

// A Kernel around the primitive that the device has for the spec, or the reason why it has none.
template <class Kernel>
StatusOr<std::unique_ptr<BoundKernel>> BindKernel(const BindContext& c,
                                                  const typename Kernel::Primitive::Spec& spec) {
  using Factory = PrimitiveFactory<typename Kernel::Primitive>;
  OFL_ASSIGN_OR_RETURN(auto primitive, NewPrimitive<Factory>(c.device, spec));
  return std::make_unique<Kernel>(std::move(primitive));
}

// The same where the spec is the dtype of the first input, or of the first output.
template <class Kernel>
StatusOr<std::unique_ptr<BoundKernel>> BindByInput(const BindContext& c) {
  return BindKernel<Kernel>(c, {.dtype = c.inputs[0]});
}
template <class Kernel>
StatusOr<std::unique_ptr<BoundKernel>> BindByOutput(const BindContext& c) {
  return BindKernel<Kernel>(c, {.dtype = c.outputs[0]});
}

}  // namespace oneflow_lite
