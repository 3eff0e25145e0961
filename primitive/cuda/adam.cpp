// SPDX-License-Identifier: Apache-2.0
#include "primitive/adam.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/optimizers/adam_launch.h"

namespace oneflow_lite {
namespace {

class CudaAdam final : public Adam {
 public:
  explicit CudaAdam(cuda::AdamLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, const AdamProblem& problem,
                absl::Span<const AdamTensors> tensors) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_(problem, tensors.data(), static_cast<int64_t>(tensors.size()), s);
    });
  }

 private:
  cuda::AdamLauncher launcher_;
};

StatusOr<std::unique_ptr<Adam>> NewAdam(const Adam::Spec& spec) {
  const cuda::AdamLauncher launcher = cuda::FindAdam(spec.dtype);
  if (!launcher) return NoPrimitiveFor(Adam::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaAdam>(launcher);
}

const bool registered = RegisterPrimitive<Adam>(DeviceType::kCUDA, &NewAdam);

}  // namespace
}  // namespace oneflow_lite
