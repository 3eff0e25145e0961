// SPDX-License-Identifier: Apache-2.0
#include "primitive/random.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/random/launch.h"

namespace oneflow_lite {
namespace {

class CudaRandom final : public Random {
 public:
  explicit CudaRandom(cuda::RandomLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, int64_t n, const PhiloxState& state, const RandomNumbers& numbers,
                void* y) const override {
    const cuda::RandomArguments arguments{state.seed, state.offset, state.shift};
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launcher_(n, arguments, numbers, y, s); });
  }

 private:
  cuda::RandomLauncher launcher_;
};

StatusOr<std::unique_ptr<Random>> NewRandom(const Random::Spec& spec) {
  const cuda::RandomLauncher launcher = cuda::FindRandom(spec.kind, spec.dtype);
  if (!launcher) return NoPrimitiveFor(Random::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaRandom>(launcher);
}

const bool registered = RegisterPrimitive<Random>(DeviceType::kCUDA, &NewRandom);

}  // namespace
}  // namespace oneflow_lite
