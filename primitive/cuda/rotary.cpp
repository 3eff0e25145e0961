// SPDX-License-Identifier: Apache-2.0
#include "primitive/rotary.h"

#include "primitive/cuda/elementwise/rotary_launch.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaRotary final : public Rotary {
 public:
  explicit CudaRotary(cuda::RotaryLauncher launch) : launch_(launch) {}
  Status Launch(Stream& stream, const RotaryShape& shape, const void* x, const void* cos,
                const void* sin, void* y) const override {
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launch_(shape, x, cos, sin, y, s); });
  }

 private:
  cuda::RotaryLauncher launch_;
};

StatusOr<std::unique_ptr<Rotary>> NewRotary(const Rotary::Spec& spec) {
  const cuda::RotaryLauncher launch = cuda::FindRotary(spec.dtype);
  if (!launch) return NoPrimitiveFor(Rotary::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaRotary>(launch);
}

const bool registered = RegisterPrimitive<Rotary>(DeviceType::kCUDA, &NewRotary);

}  // namespace
}  // namespace oneflow_lite
