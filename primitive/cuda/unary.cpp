// SPDX-License-Identifier: Apache-2.0
#include "primitive/unary.h"

#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaUnary final : public Unary {
 public:
  explicit CudaUnary(cuda::UnaryLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, int64_t n, const void* x, void* y,
                const UnaryParams& params) const override {
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launcher_(n, x, y, params, s); });
  }

 private:
  cuda::UnaryLauncher launcher_;
};

StatusOr<std::unique_ptr<Unary>> NewUnary(const Unary::Spec& spec) {
  cuda::UnaryLauncher launcher = cuda::FindUnary(spec.op, spec.dtype);
  if (!launcher) launcher = cuda::FindElementary(spec.op, spec.dtype);
  if (!launcher) return NoPrimitiveFor(Unary::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaUnary>(launcher);
}

const bool registered = RegisterPrimitive<Unary>(DeviceType::kCUDA, &NewUnary);

}  // namespace
}  // namespace oneflow_lite
