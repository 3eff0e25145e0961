// SPDX-License-Identifier: Apache-2.0
#include "primitive/scan.h"

#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaCumSum final : public CumSum {
 public:
  explicit CudaCumSum(cuda::CumSumLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, int64_t rows, int64_t cols, bool reverse, const void* x,
                void* y) const override {
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launcher_(rows, cols, reverse, x, y, s); });
  }

 private:
  cuda::CumSumLauncher launcher_;
};

StatusOr<std::unique_ptr<CumSum>> NewCumSum(const CumSum::Spec& spec) {
  const cuda::CumSumLauncher launcher = cuda::FindCumSum(spec.dtype);
  if (!launcher) return NoPrimitiveFor(CumSum::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaCumSum>(launcher);
}

const bool registered = RegisterPrimitive<CumSum>(DeviceType::kCUDA, &NewCumSum);

}  // namespace
}  // namespace oneflow_lite
