// SPDX-License-Identifier: Apache-2.0
#include "primitive/unary.h"

#include "primitive/cuda/elementwise/host.h"

namespace oneflow_lite {
namespace {

class CudaUnary final : public Unary {
 public:
  CudaUnary(const Spec& spec, cuda::UnaryLauncher launcher)
      : pass_({{spec.in.value_or(spec.dtype)},
               spec.dtype,
               IsTruth(spec.op) ? DType::kBool : spec.dtype},
              launcher) {}

  Status Launch(Stream& stream, const Elementwise<2>& g, const void* x, void* y,
                const UnaryParams& params) const override {
    return pass_.Run(stream, kName, g, {{{x}}}, y, params);
  }

 private:
  cuda::CudaPass<1, UnaryParams> pass_;
};

StatusOr<std::unique_ptr<Unary>> NewUnary(const Unary::Spec& spec) {
  cuda::UnaryLauncher launcher = cuda::FindUnary(spec.op, spec.dtype);
  if (!launcher) launcher = cuda::FindElementary(spec.op, spec.dtype);
  if (!launcher) return NoPrimitiveFor(Unary::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaUnary>(spec, launcher);
}

const bool registered = RegisterPrimitive<Unary>(DeviceType::kCUDA, &NewUnary);

}  // namespace
}  // namespace oneflow_lite
