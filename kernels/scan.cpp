// SPDX-License-Identifier: Apache-2.0
#include "primitive/scan.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

class CumSumKernel final : public PrimitiveKernel<CumSum> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor& x = c.input(0);
    const int64_t cols = x.shape()[x.ndim() - 1];
    return primitive_->Launch(c.stream(), x.numel() / cols, cols, c.attr<bool>(0), x.data(),
                              c.output(0).data());
  }
};

OFL_REGISTER_KERNEL({.op = "cumsum", .dtypes = kNumericSet, .bind = BindByInput<CumSumKernel>});

}  // namespace
}  // namespace oneflow_lite
