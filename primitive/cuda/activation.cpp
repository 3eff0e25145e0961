// SPDX-License-Identifier: Apache-2.0
#include "primitive/activation.h"

#include "primitive/cuda/activation_launchers.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaActivation final : public Activation {
 public:
  explicit CudaActivation(cuda::ActivationLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, int64_t n, const ActivationNumbers& numbers, const void* x,
                void* y) const override {
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launcher_(n, numbers, x, y, s); });
  }

 private:
  cuda::ActivationLauncher launcher_;
};

class CudaActivationBackward final : public ActivationBackward {
 public:
  explicit CudaActivationBackward(cuda::SlopeLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, int64_t n, const ActivationNumbers& numbers, const void* dy,
                bool one_dy, const void* x, void* dx) const override {
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launcher_(n, numbers, dy, one_dy, x, dx, s); });
  }

 private:
  cuda::SlopeLauncher launcher_;
};

StatusOr<std::unique_ptr<Activation>> NewActivation(const Activation::Spec& spec) {
  const cuda::ActivationLauncher launcher = cuda::FindActivation(spec.op, spec.dtype);
  if (!launcher) return NoPrimitiveFor(Activation::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaActivation>(launcher);
}
StatusOr<std::unique_ptr<ActivationBackward>> NewBackward(const ActivationBackward::Spec& spec) {
  const cuda::SlopeLauncher launcher = cuda::FindSlope(spec.op, spec.of_output, spec.dtype);
  if (!launcher) return NoPrimitiveFor(ActivationBackward::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaActivationBackward>(launcher);
}

const bool registered = RegisterPrimitive<Activation>(DeviceType::kCUDA, &NewActivation) &&
                        RegisterPrimitive<ActivationBackward>(DeviceType::kCUDA, &NewBackward);

}  // namespace
}  // namespace oneflow_lite
