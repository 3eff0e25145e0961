// SPDX-License-Identifier: Apache-2.0
#include "primitive/presence.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/moves/presence_launch.h"

namespace oneflow_lite {
namespace {

class CudaPresence final : public Presence {
 public:
  explicit CudaPresence(cuda::PresenceLauncher launcher) : launcher_(launcher) {}

  Status Launch(Stream& stream, int64_t n, const void* x, int64_t low, int64_t size,
                bool* seen) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_({n, x, low, size, seen}, cuda::LimitsOf(stream), s);
    });
  }

 private:
  cuda::PresenceLauncher launcher_;
};

StatusOr<std::unique_ptr<Presence>> NewPresence(const Presence::Spec& spec) {
  return std::make_unique<CudaPresence>(cuda::FindPresence(spec.dtype));
}

const bool registered = RegisterPrimitive<Presence>(DeviceType::kCUDA, &NewPresence);

}  // namespace
}  // namespace oneflow_lite
