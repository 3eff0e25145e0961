// SPDX-License-Identifier: Apache-2.0
#include "primitive/gated.h"

#include "primitive/cuda/elementwise/gated_launch.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaGatedUnit final : public GatedUnit {
 public:
  explicit CudaGatedUnit(cuda::GatedLaunchers launchers) : launchers_(launchers) {}
  Status Launch(Stream& stream, int64_t rows, int64_t half, const void* x, void* y) const override {
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launchers_.forward(rows, half, x, y, s); });
  }
  Status LaunchBackward(Stream& stream, int64_t rows, int64_t half, const void* dy, const void* x,
                        void* dx) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.backward(rows, half, dy, x, dx, s);
    });
  }

 private:
  cuda::GatedLaunchers launchers_;
};

StatusOr<std::unique_ptr<GatedUnit>> NewGatedUnit(const GatedUnit::Spec& spec) {
  const cuda::GatedLaunchers launchers = cuda::FindGated(spec.kind, spec.dtype);
  if (!launchers.forward) return NoPrimitiveFor(GatedUnit::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaGatedUnit>(launchers);
}

const bool registered = RegisterPrimitive<GatedUnit>(DeviceType::kCUDA, &NewGatedUnit);

}  // namespace
}  // namespace oneflow_lite
