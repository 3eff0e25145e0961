// SPDX-License-Identifier: Apache-2.0
#include "primitive/scan.h"

#include "oneflow_lite/framework/kernel_registry.h"

namespace oneflow_lite {
namespace {

class CumSumKernel final : public BoundKernel {
 public:
  explicit CumSumKernel(std::unique_ptr<CumSum> primitive) : primitive_(std::move(primitive)) {}
  Status Launch(KernelContext& c) const override {
    const Tensor& x = c.input(0);
    const int64_t cols = x.shape()[x.ndim() - 1];
    return primitive_->Launch(c.stream(), x.numel() / cols, cols, c.attr<bool>(0), x.data(),
                              c.output(0).data());
  }

 private:
  std::unique_ptr<CumSum> primitive_;
};

OFL_REGISTER_KERNEL({.op = "cumsum",
                     .dtypes = kNumericSet,
                     .bind = [](const BindContext& c) -> StatusOr<std::unique_ptr<BoundKernel>> {
                       OFL_ASSIGN_OR_RETURN(auto primitive, NewPrimitive<CumSumFactory>(
                                                                c.device, {.dtype = c.inputs[0]}));
                       return std::make_unique<CumSumKernel>(std::move(primitive));
                     }});

}  // namespace
}  // namespace oneflow_lite
