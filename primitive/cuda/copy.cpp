// SPDX-License-Identifier: Apache-2.0
#include "primitive/copy.h"

#include "primitive/cuda/copy_plan.h"
#include "primitive/cuda/elementwise_launchers.h"
#include "primitive/cuda/elementwise_plan.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaCopy final : public Copy {
 public:
  explicit CudaCopy(const Spec& spec)
      : element_bytes_(static_cast<int>(SizeOf(spec.from))),
        types_{{spec.from}, cuda::CastsThrough(spec.from, spec.to), spec.to},
        cast_(spec.from == spec.to ? nullptr : cuda::FindCast(types_.common, spec.to)) {}

  Status Launch(Stream& stream, const Elementwise<2>& g, const void* src,
                void* dst) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cast_ ? RunCast(g, src, dst, s) : RunCopy(g, src, dst, s);
    });
  }

 private:
  cudaError_t RunCast(const Elementwise<2>& g, const void* src, void* dst, cudaStream_t s) const {
    return cuda::ForEachPass<1>(types_, g, {src}, dst, /*value=*/0,
                                [&](const cuda::Pass<1>& pass) { return cast_(pass, s); });
  }
  cudaError_t RunCopy(const Elementwise<2>& g, const void* src, void* dst, cudaStream_t s) const {
    const cuda::CopyPlan plan = cuda::PlanCopy(g, element_bytes_, src, dst);
    const cuda::CopyLauncher launcher =
        plan.access_bytes > 0 ? cuda::FindTransposingCopy(plan.element_bytes, plan.access_bytes)
                              : cuda::FindCopyOf(plan.element_bytes);
    return launcher(cuda::ToStrided(plan.g), src, dst, s);
  }

  int element_bytes_;
  cuda::PassTypes<1> types_;
  cuda::PassLauncher<1> cast_;
};

StatusOr<std::unique_ptr<Copy>> NewCopy(const Copy::Spec& spec) {
  return std::make_unique<CudaCopy>(spec);
}

const bool registered = RegisterPrimitive<Copy>(DeviceType::kCUDA, &NewCopy);

}  // namespace
}  // namespace oneflow_lite
