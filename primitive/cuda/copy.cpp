// SPDX-License-Identifier: Apache-2.0
#include "primitive/copy.h"

#include "primitive/cuda/elementwise/host.h"
#include "primitive/cuda/moves/copy_launch.h"
#include "primitive/cuda/moves/copy_plan.h"

namespace oneflow_lite {
namespace {

class CudaCast final : public Copy {
 public:
  explicit CudaCast(const Spec& spec)
      : pass_({{spec.from}, cuda::CastsThrough(spec.from, spec.to), spec.to},
              cuda::FindCast(cuda::CastsThrough(spec.from, spec.to), spec.to)) {}

  Status Launch(Stream& stream, const Elementwise<2>& g, const void* src,
                void* dst) const override {
    return pass_.Run(stream, kName, g, {{{src}}}, dst);
  }

 private:
  cuda::CudaPass<1> pass_;
};

// Without conversion.
class CudaCopy final : public Copy {
 public:
  explicit CudaCopy(DType dtype) : element_bytes_(static_cast<int>(SizeOf(dtype))) {}

  Status Launch(Stream& stream, const Elementwise<2>& g, const void* src,
                void* dst) const override {
    const cuda::CopyPlan plan = cuda::PlanCopy(g, element_bytes_, src, dst);
    if (plan.access_bytes > 0) {
      return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
        return cuda::FindTransposingCopy(plan.element_bytes, plan.access_bytes)(
            cuda::ToStrided(plan.g), src, dst, s);
      });
    }
    const int64_t* dims = plan.g.dims;
    if (plan.repeats == cuda::Repeats::kElements) {
      return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
        return cuda::FindRepeat(plan.element_bytes)(dims[0], dims[1], src, dst, s);
      });
    }
    if (plan.repeats == cuda::Repeats::kLine) {
      return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
        return cuda::LaunchRepeatLine(dims[1] * plan.element_bytes, dims[0], src, dst, s);
      });
    }
    const DType moved = cuda::MovedAs(plan.element_bytes);
    const cuda::CudaPass<1> pass({{moved}, moved, moved}, cuda::FindMove(moved));
    return pass.Run(stream, kName, plan.g, {{{src}}}, dst);
  }

 private:
  int element_bytes_;
};

StatusOr<std::unique_ptr<Copy>> NewCopy(const Copy::Spec& spec) {
  if (spec.from == spec.to) return std::make_unique<CudaCopy>(spec.from);
  return std::make_unique<CudaCast>(spec);
}

const bool registered = RegisterPrimitive<Copy>(DeviceType::kCUDA, &NewCopy);

}  // namespace
}  // namespace oneflow_lite
