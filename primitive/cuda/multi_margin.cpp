// SPDX-License-Identifier: Apache-2.0
#include "primitive/multi_margin.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/losses/multi_margin_launch.h"

namespace oneflow_lite {
namespace {

class CudaMultiMargin final : public MultiMargin {
 public:
  explicit CudaMultiMargin(cuda::MultiMarginLaunchers launchers) : launchers_(launchers) {}
  Status Launch(Stream& stream, const MultiMarginShape& s, const void* x, const int64_t* target,
                void* loss) const override {
    const cuda::MultiMarginProblem p{s.rows, s.classes, s.margin, s.squared,
                                     x,      target,    nullptr,  loss};
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t native) { return launchers_.forward(p, native); });
  }
  Status LaunchBackward(Stream& stream, const MultiMarginShape& s, const void* dloss, const void* x,
                        const int64_t* target, void* dx) const override {
    const cuda::MultiMarginProblem p{s.rows, s.classes, s.margin, s.squared, x, target, dloss, dx};
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t native) { return launchers_.backward(p, native); });
  }

 private:
  cuda::MultiMarginLaunchers launchers_;
};

StatusOr<std::unique_ptr<MultiMargin>> NewMultiMargin(const MultiMargin::Spec& spec) {
  const cuda::MultiMarginLaunchers launchers = cuda::FindMultiMargin(spec.dtype);
  if (!launchers.forward) {
    return NoPrimitiveFor(MultiMargin::kName, DeviceType::kCUDA, spec.dtype);
  }
  return std::make_unique<CudaMultiMargin>(launchers);
}

const bool registered = RegisterPrimitive<MultiMargin>(DeviceType::kCUDA, &NewMultiMargin);

}  // namespace
}  // namespace oneflow_lite
