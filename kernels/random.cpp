// SPDX-License-Identifier: Apache-2.0
//
// Ops that draw: each makes its distribution's numbers of its attributes; the last two attributes
// are the seed and the offset.
#include "primitive/random.h"

#include <cmath>

#include "kernels/primitive_kernel.h"
#include "primitive/permutation.h"
#include "primitive/random_math.h"

namespace oneflow_lite {
namespace {

// The last two attributes, and what a graph's replays add to them.
StatusOr<PhiloxState> StateOf(KernelContext& c) {
  OFL_ASSIGN_OR_RETURN(const uint64_t* shift, c.stream().RandomShift());
  const int last = static_cast<int>(c.attrs().size()) - 1;
  return PhiloxState{.seed = static_cast<uint64_t>(c.attr<int64_t>(last - 1)),
                     .offset = static_cast<uint64_t>(c.attr<int64_t>(last)),
                     .shift = shift};
}

class RandomKernel final : public PrimitiveKernel<Random> {
 public:
  using Numbers = RandomNumbers (*)(const Attrs&);
  RandomKernel(std::unique_ptr<Random> primitive, Numbers numbers)
      : PrimitiveKernel(std::move(primitive)), numbers_(numbers) {}

  Status Launch(KernelContext& c) const override {
    OFL_ASSIGN_OR_RETURN(const PhiloxState state, StateOf(c));
    return primitive_->Launch(c.stream(), c.output(0).numel(), state, numbers_(c.attrs()),
                              c.output(0).data());
  }

 private:
  Numbers numbers_;
};

// CUDA has none: functional/random.cpp sorts.
class PermutationKernel final : public PrimitiveKernel<Permutation> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    OFL_ASSIGN_OR_RETURN(const PhiloxState state, StateOf(c));
    const int64_t n = c.output(0).numel();
    OFL_ASSIGN_OR_RETURN(const size_t bytes, primitive_->WorkspaceBytes(c.stream(), n));
    OFL_ASSIGN_OR_RETURN(void* workspace, c.Workspace(bytes));
    return primitive_->Launch(c.stream(), n, state, c.output(0).data<int64_t>(), workspace, bytes);
  }
};

// a and b, of [0, 1) and of mean 0 and deviation 1.
RandomNumbers Standard(const Attrs&) { return {}; }
RandomNumbers TwoReals(const Attrs& attrs) {
  return {.a = attrs.get<double>(0), .b = attrs.get<double>(1)};
}
RandomNumbers OneReal(const Attrs& attrs) { return {.b = attrs.get<double>(0)}; }
RandomNumbers Range(const Attrs& attrs) {
  return {.low = attrs.get<int64_t>(0), .count = static_cast<uint64_t>(attrs.get<int64_t>(1))};
}
RandomNumbers Chance(const Attrs& attrs) {
  return {.threshold = UniformThreshold(attrs.get<double>(0))};
}

template <RandomKind kKind, RandomKernel::Numbers kNumbers>
StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& c) {
  OFL_ASSIGN_OR_RETURN(auto primitive,
                       NewPrimitive<RandomFactory>(c.device, {kKind, c.outputs[0]}));
  return std::make_unique<RandomKernel>(std::move(primitive), kNumbers);
}

constexpr DTypeSet kInt64Set = SetOf(DType::kInt64);

OFL_REGISTER_KERNEL({.op = "rand",
                     .dtypes = kFloatingSet,
                     .bind = Bind<RandomKind::kUniform, Standard>});
OFL_REGISTER_KERNEL({.op = "randn",
                     .dtypes = kFloatingSet,
                     .bind = Bind<RandomKind::kNormal, Standard>});
OFL_REGISTER_KERNEL({.op = "random_bits",
                     .dtypes = kInt64Set,
                     .bind = Bind<RandomKind::kBits, Standard>});
OFL_REGISTER_KERNEL({.op = "randperm",
                     .device = DeviceType::kCPU,
                     .dtypes = kInt64Set,
                     .bind = BindByOutput<PermutationKernel>});
OFL_REGISTER_KERNEL({.op = "uniform_",
                     .dtypes = kFloatingSet,
                     .bind = Bind<RandomKind::kUniform, TwoReals>});
OFL_REGISTER_KERNEL({.op = "normal_",
                     .dtypes = kFloatingSet,
                     .bind = Bind<RandomKind::kNormal, TwoReals>});
OFL_REGISTER_KERNEL({.op = "exponential_",
                     .dtypes = kFloatingSet,
                     .bind = Bind<RandomKind::kExponential, OneReal>});
OFL_REGISTER_KERNEL({.op = "random_", .bind = Bind<RandomKind::kIntegers, Range>});
OFL_REGISTER_KERNEL({.op = "bernoulli_", .bind = Bind<RandomKind::kBernoulli, Chance>});

}  // namespace
}  // namespace oneflow_lite
