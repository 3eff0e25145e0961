// SPDX-License-Identifier: Apache-2.0
#include "primitive/creation.h"

#include "oneflow_lite/framework/kernel_registry.h"

namespace oneflow_lite {
namespace {

// full and fill_; kValue is the attribute that holds the number.
template <int kValue>
class FillKernel final : public BoundKernel {
 public:
  explicit FillKernel(std::unique_ptr<Fill> primitive) : primitive_(std::move(primitive)) {}
  Status Launch(KernelContext& c) const override {
    const Tensor& out = c.output(0);
    return primitive_->Launch(c.stream(), MakeElementwise<1>(out.shape(), {out.strides()}),
                              c.attr<Scalar>(kValue), out.data());
  }

 private:
  std::unique_ptr<Fill> primitive_;
};

class ArangeKernel final : public BoundKernel {
 public:
  explicit ArangeKernel(std::unique_ptr<Arange> primitive) : primitive_(std::move(primitive)) {}
  Status Launch(KernelContext& c) const override {
    return primitive_->Launch(c.stream(), c.attr<int64_t>(0), c.attr<Scalar>(1), c.attr<Scalar>(2),
                              c.output(0).data());
  }

 private:
  std::unique_ptr<Arange> primitive_;
};

class RandomKernel final : public BoundKernel {
 public:
  explicit RandomKernel(std::unique_ptr<Random> primitive) : primitive_(std::move(primitive)) {}
  Status Launch(KernelContext& c) const override {
    const PhiloxState state{.seed = static_cast<uint64_t>(c.attr<int64_t>(3)),
                            .offset = static_cast<uint64_t>(c.attr<int64_t>(4))};
    return primitive_->Launch(c.stream(), c.output(0).numel(), state, c.output(0).data());
  }

 private:
  std::unique_ptr<Random> primitive_;
};

template <int kValue>
StatusOr<std::unique_ptr<BoundKernel>> BindFill(const BindContext& c) {
  OFL_ASSIGN_OR_RETURN(auto primitive,
                       NewPrimitive<FillFactory>(c.device, {.dtype = c.outputs[0]}));
  return std::make_unique<FillKernel<kValue>>(std::move(primitive));
}

StatusOr<std::unique_ptr<BoundKernel>> BindArange(const BindContext& c) {
  OFL_ASSIGN_OR_RETURN(auto primitive,
                       NewPrimitive<ArangeFactory>(c.device, {.dtype = c.outputs[0]}));
  return std::make_unique<ArangeKernel>(std::move(primitive));
}

template <Distribution kDistribution>
StatusOr<std::unique_ptr<BoundKernel>> BindRandom(const BindContext& c) {
  OFL_ASSIGN_OR_RETURN(auto primitive,
                       NewPrimitive<RandomFactory>(
                           c.device, {.distribution = kDistribution, .dtype = c.outputs[0]}));
  return std::make_unique<RandomKernel>(std::move(primitive));
}

constexpr DTypeSet kInt64Set = SetOf(DType::kInt64);

OFL_REGISTER_KERNEL({.op = "full", .bind = BindFill<1>});
OFL_REGISTER_KERNEL({.op = "fill_", .strided_inputs = 0b1, .bind = BindFill<0>});
OFL_REGISTER_KERNEL({.op = "arange", .dtypes = kNumericSet, .bind = BindArange});
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
