// SPDX-License-Identifier: Apache-2.0
#include "primitive/frexp.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class FrexpKernel final : public PrimitiveKernel<Frexp> {
 public:
  using PrimitiveKernel::PrimitiveKernel;

  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &mantissa = c.output(0), &exponent = c.output(1);
    const auto g =
        MakeElementwise<3>(x.shape(), {x.strides(), mantissa.strides(), exponent.strides()});
    return primitive_->Launch(c.stream(), g, x.data(), mantissa.data(), exponent.data());
  }
};

OFL_REGISTER_KERNEL({.op = "frexp",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b1,
                     .bind = BindByInput<FrexpKernel>});

}  // namespace
}  // namespace oneflow_lite
