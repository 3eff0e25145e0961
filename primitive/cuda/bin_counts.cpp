// SPDX-License-Identifier: Apache-2.0
#include "primitive/bin_counts.h"

#include "oneflow_lite/core/error.h"
#include "primitive/cuda/host.h"
#include "primitive/cuda/moves/bin_counts_launch.h"

namespace oneflow_lite {
namespace {

class CudaBinCounts final : public BinCounts {
 public:
  explicit CudaBinCounts(cuda::BinCountsLauncher launcher) : launcher_(launcher) {}

  Status Launch(Stream& stream, int64_t n, const void* x, int64_t bins, double low, double high,
                const void* edges, const void* weights, void* sums) const override {
    if (edges || weights) {
      return Error(ErrorKind::kNotImplemented, kName, "(): edges and weights are for the CPU");
    }
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_({n, x, bins, low, high, static_cast<int64_t*>(sums)}, cuda::LimitsOf(stream),
                       s);
    });
  }

 private:
  cuda::BinCountsLauncher launcher_;
};

StatusOr<std::unique_ptr<BinCounts>> NewBinCounts(const BinCounts::Spec& spec) {
  const cuda::BinCountsLauncher launcher = cuda::FindBinCounts(spec.dtype);
  if (!launcher) return NoPrimitiveFor(BinCounts::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaBinCounts>(launcher);
}

const bool registered = RegisterPrimitive<BinCounts>(DeviceType::kCUDA, &NewBinCounts);

}  // namespace
}  // namespace oneflow_lite
