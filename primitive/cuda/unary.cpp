// SPDX-License-Identifier: Apache-2.0
#include "primitive/unary.h"

#include "primitive/cuda/elementwise_launchers.h"
#include "primitive/cuda/elementwise_plan.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaUnary final : public Unary {
 public:
  CudaUnary(const Spec& spec, cuda::UnaryLauncher launcher)
      : types_{{spec.in.value_or(spec.dtype)}, spec.dtype, spec.out.value_or(spec.dtype)},
        launcher_(launcher) {}

  Status Launch(Stream& stream, const Elementwise<2>& g, const void* x, void* y) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::ForEachPass<1>(types_, g, {x}, y, /*value=*/0,
                                  [&](const cuda::Pass<1>& pass) { return launcher_(pass, s); });
    });
  }

 private:
  cuda::PassTypes<1> types_;
  cuda::UnaryLauncher launcher_;
};

StatusOr<std::unique_ptr<Unary>> NewUnary(const Unary::Spec& spec) {
  const cuda::UnaryLauncher launcher = cuda::FindUnary(spec.op, spec.dtype);
  if (!launcher) return NoPrimitiveFor(Unary::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaUnary>(spec, launcher);
}

const bool registered = RegisterPrimitive<Unary>(DeviceType::kCUDA, &NewUnary);

}  // namespace
}  // namespace oneflow_lite
