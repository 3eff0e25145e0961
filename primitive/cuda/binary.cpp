// SPDX-License-Identifier: Apache-2.0
#include "primitive/binary.h"

#include "primitive/cuda/elementwise/host.h"

namespace oneflow_lite {
namespace {

class CudaBinary final : public Binary {
 public:
  CudaBinary(const Spec& spec, cuda::BinaryLauncher launcher)
      : pass_({{spec.a.value_or(spec.dtype), spec.b.value_or(spec.dtype)},
               spec.dtype,
               IsComparison(spec.op) ? DType::kBool : spec.dtype},
              launcher) {}

  Status Launch(Stream& stream, const Elementwise<3>& g, const Operand& a, const Operand& b,
                void* out) const override {
    return pass_.Run(stream, kName, g,
                     {{pass_.Input(a.data, a.number), pass_.Input(b.data, b.number)}}, out);
  }

 private:
  cuda::CudaPass<2> pass_;
};

StatusOr<std::unique_ptr<Binary>> NewBinary(const Binary::Spec& spec) {
  cuda::BinaryLauncher launcher = cuda::FindBinary(spec.op, spec.dtype);
  if (!launcher) launcher = cuda::FindBinaryMath(spec.op, spec.dtype);
  if (!launcher) return NoPrimitiveFor(Binary::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaBinary>(spec, launcher);
}

const bool registered = RegisterPrimitive<Binary>(DeviceType::kCUDA, &NewBinary);

}  // namespace
}  // namespace oneflow_lite
