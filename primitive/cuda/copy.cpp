// SPDX-License-Identifier: Apache-2.0
#include "primitive/copy.h"

#include "primitive/cuda/copy_plan.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaCopy final : public Copy {
 public:
  CudaCopy(const Spec& spec, cuda::CopyLauncher launcher)
      : spec_(spec), launcher_(launcher), packs_(cuda::FindPackConversion(spec.from, spec.to)) {}
  Status Launch(Stream& stream, const Elementwise<2>& g, const void* src,
                void* dst) const override {
    if (spec_.from != spec_.to) return Convert(stream, g, src, dst);
    const auto element_bytes = static_cast<int>(SizeOf(spec_.from));
    const cuda::CopyPlan plan = cuda::PlanCopy(g, element_bytes, src, dst);
    return Run(stream,
               plan.access_bytes > 0
                   ? cuda::FindTransposingCopy(plan.element_bytes, plan.access_bytes)
                   : cuda::FindCopyOf(plan.element_bytes),
               plan.g, src, dst);
  }

 private:
  Status Convert(Stream& stream, Elementwise<2> g, const void* src, void* dst) const {
    const auto from = static_cast<int>(SizeOf(spec_.from)), to = static_cast<int>(SizeOf(spec_.to));
    const bool packs =
        packs_ && cuda::PlanPacks(cuda::ConversionPack(from, to), {from, to}, src, dst, &g);
    return Run(stream, packs ? packs_ : launcher_, g, src, dst);
  }
  Status Run(Stream& stream, cuda::CopyLauncher launcher, const Elementwise<2>& g, const void* src,
             void* dst) const {
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launcher(cuda::ToStrided(g), src, dst, s); });
  }

  Spec spec_;
  cuda::CopyLauncher launcher_, packs_;
};

StatusOr<std::unique_ptr<Copy>> NewCopy(const Copy::Spec& spec) {
  const cuda::CopyLauncher launcher = cuda::FindCopy(spec.from, spec.to);
  if (!launcher) return NoPrimitiveFor(Copy::kName, DeviceType::kCUDA, spec.from);
  return std::make_unique<CudaCopy>(spec, launcher);
}

const bool registered = RegisterPrimitive<Copy>(DeviceType::kCUDA, &NewCopy);

}  // namespace
}  // namespace oneflow_lite
