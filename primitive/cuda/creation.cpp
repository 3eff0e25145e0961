// SPDX-License-Identifier: Apache-2.0
#include "primitive/creation.h"

#include <algorithm>

#include "primitive/cuda/elementwise/creation_launch.h"
#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaFill final : public Fill {
 public:
  explicit CudaFill(DType dtype) : launcher_(cuda::FindFill(dtype)), dtype_(dtype) {}
  Status Launch(Stream& stream, const Elementwise<1>& g, Scalar value, void* y) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_(cuda::ToStrided(g), cuda::BitsOf(value, dtype_), y, s);
    });
  }

 private:
  cuda::FillLauncher launcher_;
  DType dtype_;
};

class CudaArange final : public Arange {
 public:
  CudaArange(cuda::ArangeLauncher launcher, cuda::LinspaceLauncher between)
      : launcher_(launcher), between_(between) {}
  Status Launch(Stream& stream, int64_t n, Scalar start, Scalar step, void* y) const override {
    const cuda::ArangeArguments arguments{start.to<int64_t>(), step.to<int64_t>(),
                                          start.to<double>(), step.to<double>()};
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launcher_(n, arguments, y, s); });
  }
  Status LaunchBetween(Stream& stream, int64_t n, double start, double end,
                       void* y) const override {
    const int64_t last = n - 1, half = std::max<int64_t>(1, n / 2);
    const double step = (end - start) / static_cast<double>(std::max<int64_t>(1, last));
    const cuda::LinspaceArguments arguments{start, end, step, half, last};
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) { return between_(n, arguments, y, s); });
  }

 private:
  cuda::ArangeLauncher launcher_;
  cuda::LinspaceLauncher between_;
};

StatusOr<std::unique_ptr<Fill>> NewFill(const Fill::Spec& spec) {
  return std::make_unique<CudaFill>(spec.dtype);
}

StatusOr<std::unique_ptr<Arange>> NewArange(const Arange::Spec& spec) {
  const cuda::ArangeLauncher launcher = cuda::FindArange(spec.dtype);
  const cuda::LinspaceLauncher between = cuda::FindLinspace(spec.dtype);
  if (!launcher || !between) {
    return NoPrimitiveFor(Arange::kName, DeviceType::kCUDA, spec.dtype);
  }
  return std::make_unique<CudaArange>(launcher, between);
}

const bool registered = RegisterPrimitive<Fill>(DeviceType::kCUDA, &NewFill) &&
                        RegisterPrimitive<Arange>(DeviceType::kCUDA, &NewArange);

}  // namespace
}  // namespace oneflow_lite
