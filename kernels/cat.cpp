// SPDX-License-Identifier: Apache-2.0
//
// cat: each tensor is copied to its part of the result.
#include "oneflow_lite/framework/kernel_registry.h"
#include "primitive/copy.h"

namespace oneflow_lite {
namespace {

class CatKernel final : public BoundKernel {
 public:
  explicit CatKernel(std::unique_ptr<Copy> copy) : copy_(std::move(copy)) {}
  Status Launch(KernelContext& c) const override {
    const Tensor& out = c.output(0);
    const int64_t dim = c.attr<int64_t>(0);
    char* part = static_cast<char*>(out.data());
    for (int i = 0; i < c.num_inputs(); ++i) {
      const Tensor& x = c.input(i);
      if (x.numel() == 0) continue;
      OFL_RETURN_IF_ERROR(copy_->Launch(
          c.stream(), MakeElementwise<2>(x.shape(), {x.strides(), out.strides()}), x.data(), part));
      part += x.shape()[static_cast<int>(dim)] * out.strides()[dim] *
              static_cast<int64_t>(SizeOf(out.dtype()));
    }
    return OkStatus();
  }

 private:
  std::unique_ptr<Copy> copy_;
};

OFL_REGISTER_KERNEL({.op = "cat",
                     .strided_inputs = ~uint32_t{0},
                     .bind = [](const BindContext& c) -> StatusOr<std::unique_ptr<BoundKernel>> {
                       OFL_ASSIGN_OR_RETURN(
                           auto copy, NewPrimitive<CopyFactory>(
                                          c.device, {.from = c.outputs[0], .to = c.outputs[0]}));
                       return std::make_unique<CatKernel>(std::move(copy));
                     }});

}  // namespace
}  // namespace oneflow_lite
