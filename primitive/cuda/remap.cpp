// SPDX-License-Identifier: Apache-2.0
#include "primitive/remap.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/moves/remap_launch.h"

namespace oneflow_lite {
namespace {

class CudaRemap final : public Remap {
 public:
  explicit CudaRemap(DType dtype) : dtype_(dtype), backward_(cuda::FindRemapBackward(dtype)) {}

  Status Launch(Stream& stream, const RemapShape& shape, Scalar fill, const void* x,
                void* y) const override {
    const int item = static_cast<int>(SizeOf(dtype_));
    const uint64_t bits = cuda::BitsOf(fill, dtype_);
    cuda::FillElements elements;
    auto* bytes = reinterpret_cast<unsigned char*>(elements.words);
    for (int i = 0; i < 16; ++i) bytes[i] = static_cast<unsigned char>(bits >> 8 * (i % item));
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::LaunchRemap(item, shape, elements, x, y, s);
    });
  }
  Status LaunchBackward(Stream& stream, const RemapShape& shape, const void* dy,
                        void* dx) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) { return backward_(shape, dy, dx, s); });
  }

 private:
  DType dtype_;
  cuda::RemapBackwardLauncher backward_;  // null for what is no float
};

class CudaTriangle final : public Triangle {
 public:
  explicit CudaTriangle(DType dtype) : item_(static_cast<int>(SizeOf(dtype))) {}
  Status Launch(Stream& stream, int64_t matrices, int64_t rows, int64_t cols, int64_t diagonal,
                bool lower, const void* x, void* y) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::LaunchTriangle(item_, {matrices, rows, cols, diagonal, lower}, x, y, s);
    });
  }

 private:
  int item_;
};

StatusOr<std::unique_ptr<Remap>> NewRemap(const Remap::Spec& spec) {
  return std::make_unique<CudaRemap>(spec.dtype);
}
StatusOr<std::unique_ptr<Triangle>> NewTriangle(const Triangle::Spec& spec) {
  return std::make_unique<CudaTriangle>(spec.dtype);
}

const bool registered = RegisterPrimitive<Remap>(DeviceType::kCUDA, &NewRemap) &&
                        RegisterPrimitive<Triangle>(DeviceType::kCUDA, &NewTriangle);

}  // namespace
}  // namespace oneflow_lite
