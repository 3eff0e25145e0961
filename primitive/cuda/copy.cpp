// SPDX-License-Identifier: Apache-2.0
#include "primitive/copy.h"

#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaCopy final : public Copy {
 public:
  explicit CudaCopy(cuda::CopyLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, const Elementwise<2>& g, const void* src,
                void* dst) const override {
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launcher_(cuda::ToStrided(g), src, dst, s); });
  }

 private:
  cuda::CopyLauncher launcher_;
};

StatusOr<std::unique_ptr<Copy>> NewCopy(const Copy::Spec& spec) {
  const cuda::CopyLauncher launcher = cuda::FindCopy(spec.from, spec.to);
  if (!launcher) return NoPrimitiveFor(Copy::kName, DeviceType::kCUDA, spec.from);
  return std::make_unique<CudaCopy>(launcher);
}

const bool registered = RegisterPrimitive<Copy>(DeviceType::kCUDA, &NewCopy);

}  // namespace
}  // namespace oneflow_lite
