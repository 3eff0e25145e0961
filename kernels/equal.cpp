// SPDX-License-Identifier: Apache-2.0
//
// equal: on the CPU alone, where the answer needs no wait.
#include "primitive/equal.h"

#include "kernels/primitive_kernel.h"
#include "oneflow_lite/core/elementwise_order.h"

namespace oneflow_lite {
namespace {

class EqualKernel final : public PrimitiveKernel<Equal> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor &a = c.input(0), &b = c.input(1);
    const auto g = MakeElementwise<2>(a.shape(), {a.strides(), b.strides()});
    return primitive_->Launch(c.stream(), OrderedBy(g, 0), a.data(), b.data(),
                              c.output(0).data<bool>());
  }
};

OFL_REGISTER_KERNEL({.op = "equal",
                     .device = DeviceType::kCPU,
                     .strided_inputs = 0b11,
                     .bind = BindByInput<EqualKernel>});

}  // namespace
}  // namespace oneflow_lite
