// SPDX-License-Identifier: Apache-2.0
//
// cat: each tensor is copied to its part of the result.
#include "absl/container/inlined_vector.h"
#include "kernels/primitive_kernel.h"
#include "primitive/copy.h"

namespace oneflow_lite {
namespace {

class CatKernel final : public PrimitiveKernel<Copy> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor& out = c.output(0);
    const auto dim = static_cast<int>(c.attr<int64_t>(0));
    const int64_t row = out.strides()[dim] * static_cast<int64_t>(SizeOf(out.dtype()));
    char* part = static_cast<char*>(out.data());
    absl::InlinedVector<Copy::Part, 4> parts;
    for (int i = 0; i < c.num_inputs(); ++i) {
      const Tensor& x = c.input(i);
      if (x.numel() == 0) continue;
      parts.push_back(
          {MakeElementwise<2>(x.shape(), {x.strides(), out.strides()}), x.data(), part});
      part += x.shape()[dim] * row;
    }
    return primitive_->LaunchAll(c.stream(), parts);
  }
};

OFL_REGISTER_KERNEL({.op = "cat", .strided_inputs = ~uint32_t{0}, .bind = [](const BindContext& c) {
                       return BindKernel<CatKernel>(c, {.from = c.outputs[0], .to = c.outputs[0]});
                     }});

}  // namespace
}  // namespace oneflow_lite
