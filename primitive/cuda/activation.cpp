// SPDX-License-Identifier: Apache-2.0
#include "primitive/activation.h"

#include "primitive/cuda/elementwise/host.h"

namespace oneflow_lite {
namespace {

class CudaActivation final : public Activation {
 public:
  CudaActivation(const Spec& spec, cuda::ActivationLauncher launcher)
      : pass_({{spec.in.value_or(spec.dtype)}, spec.dtype, spec.dtype}, launcher) {}

  Status Launch(Stream& stream, const Elementwise<2>& g, const ActivationNumbers& numbers,
                const void* x, void* y) const override {
    return pass_.Run(stream, kName, g, {{{x}}}, y, numbers);
  }

 private:
  cuda::CudaPass<1, ActivationNumbers> pass_;
};

class CudaActivationBackward final : public ActivationBackward {
 public:
  CudaActivationBackward(DType dtype, cuda::SlopeLauncher launcher)
      : pass_({{dtype, dtype}, dtype, dtype}, launcher) {}

  Status Launch(Stream& stream, const Elementwise<3>& g, const ActivationNumbers& numbers,
                const void* dy, const void* x, void* dx) const override {
    return pass_.Run(stream, kName, g, {{{dy}, {x}}}, dx, numbers);
  }

 private:
  cuda::CudaPass<2, ActivationNumbers> pass_;
};

StatusOr<std::unique_ptr<Activation>> NewActivation(const Activation::Spec& spec) {
  const cuda::ActivationLauncher launcher = cuda::FindActivation(spec.op, spec.dtype);
  if (!launcher) return NoPrimitiveFor(Activation::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaActivation>(spec, launcher);
}
StatusOr<std::unique_ptr<ActivationBackward>> NewBackward(const ActivationBackward::Spec& spec) {
  const cuda::SlopeLauncher launcher = cuda::FindSlope(spec.op, spec.of_output, spec.dtype);
  if (!launcher) return NoPrimitiveFor(ActivationBackward::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaActivationBackward>(spec.dtype, launcher);
}

const bool registered = RegisterPrimitive<Activation>(DeviceType::kCUDA, &NewActivation) &&
                        RegisterPrimitive<ActivationBackward>(DeviceType::kCUDA, &NewBackward);

}  // namespace
}  // namespace oneflow_lite
