// SPDX-License-Identifier: Apache-2.0
#include "primitive/unary_backward.h"

#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaUnaryBackward final : public UnaryBackward {
 public:
  explicit CudaUnaryBackward(cuda::UnaryBackwardLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, int64_t n, const void* dy, bool dy_is_number, const void* s,
                void* dx, const UnaryParams& params) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t on) {
      return launcher_(n, dy, dy_is_number, s, dx, params, on);
    });
  }

 private:
  cuda::UnaryBackwardLauncher launcher_;
};

StatusOr<std::unique_ptr<UnaryBackward>> NewUnaryBackward(const UnaryBackward::Spec& spec) {
  const cuda::UnaryBackwardLauncher launcher = cuda::FindUnaryBackward(spec.op, spec.dtype);
  if (!launcher) return NoPrimitiveFor(UnaryBackward::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaUnaryBackward>(launcher);
}

const bool registered = RegisterPrimitive<UnaryBackward>(DeviceType::kCUDA, &NewUnaryBackward);

}  // namespace
}  // namespace oneflow_lite
