// SPDX-License-Identifier: Apache-2.0
#include "primitive/creation.h"

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
  explicit CudaArange(cuda::ArangeLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, int64_t n, Scalar start, Scalar step, void* y) const override {
    const cuda::ArangeArguments arguments{start.to<int64_t>(), step.to<int64_t>(),
                                          start.to<double>(), step.to<double>()};
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launcher_(n, arguments, y, s); });
  }

 private:
  cuda::ArangeLauncher launcher_;
};

StatusOr<std::unique_ptr<Fill>> NewFill(const Fill::Spec& spec) {
  return std::make_unique<CudaFill>(spec.dtype);
}

StatusOr<std::unique_ptr<Arange>> NewArange(const Arange::Spec& spec) {
  const cuda::ArangeLauncher launcher = cuda::FindArange(spec.dtype);
  if (!launcher) return NoPrimitiveFor(Arange::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaArange>(launcher);
}

const bool registered = RegisterPrimitive<Fill>(DeviceType::kCUDA, &NewFill) &&
                        RegisterPrimitive<Arange>(DeviceType::kCUDA, &NewArange);

}  // namespace
}  // namespace oneflow_lite
