// SPDX-License-Identifier: Apache-2.0
#include "primitive/ternary.h"

#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaTernary final : public Ternary {
 public:
  CudaTernary(cuda::TernaryLauncher launcher, DType compute)
      : launcher_(launcher), compute_(compute) {}

  Status Launch(Stream& stream, const Elementwise<4>& g, const Ternary::Operand (&operands)[3],
                const TernaryNumbers& numbers, void* out) const override {
    cuda::TernaryOperand given[3];
    for (int i = 0; i < 3; ++i) {
      given[i].data = operands[i].data;
      given[i].bits = operands[i].data ? 0 : cuda::BitsOf(operands[i].number, compute_);
    }
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_(cuda::ToStrided(g), given, numbers, out, s);
    });
  }

 private:
  cuda::TernaryLauncher launcher_;
  DType compute_;
};

StatusOr<std::unique_ptr<Ternary>> NewTernary(const Ternary::Spec& spec) {
  const cuda::TernaryLauncher launcher = cuda::FindTernary(spec.op, spec.dtype);
  if (!launcher) return NoPrimitiveFor(Ternary::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaTernary>(launcher, ComputeType(spec.dtype));
}

const bool registered = RegisterPrimitive<Ternary>(DeviceType::kCUDA, &NewTernary);

}  // namespace
}  // namespace oneflow_lite
