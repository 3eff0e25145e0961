// SPDX-License-Identifier: Apache-2.0
#include "primitive/binary.h"

#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaBinary final : public Binary {
 public:
  CudaBinary(cuda::BinaryLaunchers launchers, DType compute)
      : launchers_(launchers), compute_(compute) {}

  Status Launch(Stream& stream, const Elementwise<3>& g, const void* a, const void* b,
                void* out) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.tensors(cuda::ToStrided(g), a, b, out, s);
    });
  }
  Status LaunchScalar(Stream& stream, const Elementwise<2>& g, const void* x, Scalar scalar,
                      bool scalar_first, void* out) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.scalar(cuda::ToStrided(g), x, cuda::BitsOf(scalar, compute_), scalar_first,
                               out, s);
    });
  }

 private:
  cuda::BinaryLaunchers launchers_;
  DType compute_;
};

StatusOr<std::unique_ptr<Binary>> NewBinary(const Binary::Spec& spec) {
  const cuda::BinaryLaunchers launchers = cuda::FindBinary(spec.op, spec.dtype);
  if (!launchers.tensors) return NoPrimitiveFor(Binary::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaBinary>(launchers, ComputeType(spec.dtype));
}

const bool registered = RegisterPrimitive<Binary>(DeviceType::kCUDA, &NewBinary);

}  // namespace
}  // namespace oneflow_lite
