// SPDX-License-Identifier: Apache-2.0
#include "primitive/frexp.h"

#include "oneflow_lite/core/elementwise_order.h"
#include "primitive/cuda/elementwise/frexp_launch.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaFrexp final : public Frexp {
 public:
  explicit CudaFrexp(cuda::FrexpLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, const Elementwise<3>& g, const void* x, void* mantissa,
                void* exponent) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_(cuda::ToStrided(OrderedBy(g, 1)), x, mantissa,
                       static_cast<int32_t*>(exponent), s);
    });
  }

 private:
  cuda::FrexpLauncher launcher_;
};

StatusOr<std::unique_ptr<Frexp>> NewFrexp(const Frexp::Spec& spec) {
  const cuda::FrexpLauncher launcher = cuda::FindFrexp(spec.dtype);
  if (!launcher) return NoPrimitiveFor(Frexp::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaFrexp>(launcher);
}

const bool registered = RegisterPrimitive<Frexp>(DeviceType::kCUDA, &NewFrexp);

}  // namespace
}  // namespace oneflow_lite
