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

class RandomKernel final : public PrimitiveKernel<Random> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    OFL_ASSIGN_OR_RETURN(const uint64_t* shift, c.stream().RandomShift());
    const PhiloxState state{.seed = static_cast<uint64_t>(c.attr<int64_t>(3)),
                            .offset = static_cast<uint64_t>(c.attr<int64_t>(4)),
                            .shift = shift};
    return primitive_->Launch(c.stream(), c.output(0).numel(), state, c.output(0).data());
  }
};

template <Distribution kDistribution>
StatusOr<std::unique_ptr<BoundKernel>> BindRandom(const BindContext& c) {
  return BindKernel<RandomKernel>(c, {.distribution = kDistribution, .dtype = c.outputs[0]});
}

constexpr DTypeSet kInt64Set = SetOf(DType::kInt64);

OFL_REGISTER_KERNEL({.op = "full", .bind = BindByOutput<FillKernel<1>>});
OFL_REGISTER_KERNEL({.op = "fill_", .strided_inputs = 0b1, .bind = BindByOutput<FillKernel<0>>});
OFL_REGISTER_KERNEL({.op = "arange", .dtypes = kNumericSet, .bind = BindByOutput<ArangeKernel>});
OFL_REGISTER_KERNEL({.op = "rand",
                     .dtypes = kFloatingSet,
                     .bind = BindRandom<Distribution::kUniform>});
OFL_REGISTER_KERNEL({.op = "randn",
                     .dtypes = kFloatingSet,
                     .bind = BindRandom<Distribution::kNormal>});
OFL_REGISTER_KERNEL({.op = "random_bits",
                     .dtypes = kInt64Set,
                     .bind = BindRandom<Distribution::kBits>});

}  // namespace
}  // namespace oneflow_lite
