// SPDX-License-Identifier: Apache-2.0
#include "primitive/creation.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

// full and fill_; kValue is the attribute that holds the number.
template <int kValue>
class FillKernel final : public PrimitiveKernel<Fill> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor& out = c.output(0);
    return primitive_->Launch(c.stream(), MakeElementwise<1>(out.shape(), {out.strides()}),
                              c.attr<Scalar>(kValue), out.data());
  }
};

class ArangeKernel final : public PrimitiveKernel<Arange> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    return primitive_->Launch(c.stream(), c.attr<int64_t>(0), c.attr<Scalar>(1), c.attr<Scalar>(2),
                              c.output(0).data());
  }
};

class LinspaceKernel final : public PrimitiveKernel<Arange> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    return primitive_->LaunchBetween(c.stream(), c.attr<int64_t>(0), c.attr<double>(1),
                                     c.attr<double>(2), c.output(0).data());
  }
};

OFL_REGISTER_KERNEL({.op = "full", .bind = BindByOutput<FillKernel<1>>});
OFL_REGISTER_KERNEL({.op = "fill_", .strided_inputs = 0b1, .bind = BindByOutput<FillKernel<0>>});
OFL_REGISTER_KERNEL({.op = "arange", .dtypes = kNumericSet, .bind = BindByOutput<ArangeKernel>});
OFL_REGISTER_KERNEL({.op = "linspace",
                     .dtypes = kNumericSet,
                     .bind = BindByOutput<LinspaceKernel>});

}  // namespace
}  // namespace oneflow_lite
