// SPDX-License-Identifier: Apache-2.0
#include "primitive/ternary.h"

#include "primitive/cuda/elementwise/host.h"

namespace oneflow_lite {
namespace {

class CudaTernary final : public Ternary {
 public:
  CudaTernary(const Spec& spec, cuda::TernaryLauncher launcher)
      : pass_({{spec.dtype, spec.dtype, spec.dtype},
               spec.dtype,
               IsComparison(spec.op) ? DType::kBool : spec.dtype},
              launcher) {}

  Status Launch(Stream& stream, const Elementwise<4>& g, const Ternary::Operand (&operands)[3],
                const TernaryNumbers& numbers, void* out) const override {
    cuda::PassInputs<3> in;
    for (int i = 0; i < 3; ++i) in[i] = pass_.Input(operands[i].data, operands[i].number);
    return pass_.Run(stream, kName, g, in, out, numbers);
  }

 private:
  cuda::CudaPass<3, TernaryNumbers> pass_;
};

StatusOr<std::unique_ptr<Ternary>> NewTernary(const Ternary::Spec& spec) {
  const cuda::TernaryLauncher launcher = cuda::FindTernary(spec.op, spec.dtype);
  if (!launcher) return NoPrimitiveFor(Ternary::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaTernary>(spec, launcher);
}

const bool registered = RegisterPrimitive<Ternary>(DeviceType::kCUDA, &NewTernary);

}  // namespace
}  // namespace oneflow_lite
