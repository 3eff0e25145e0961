// SPDX-License-Identifier: Apache-2.0
#include "primitive/compact.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/moves/compact_launch.h"

namespace oneflow_lite {
namespace {

class CudaCompact final : public Compact {
 public:
  explicit CudaCompact(const Spec& spec)
      : mask_(spec.mask), item_(static_cast<int>(SizeOf(spec.dtype))) {}

  size_t WorkspaceBytes(int64_t n) const override { return cuda::CompactWorkspaceBytes(n); }
  Status Places(Stream& stream, int ndim, const int64_t* dims, const void* mask, int64_t count,
                int64_t* y, void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::LaunchPlaces(mask_, {ndim, dims, count}, mask, y, workspace, s);
    });
  }
  Status Take(Stream& stream, int64_t n, const void* mask, const void* x, int64_t count, void* y,
              void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::LaunchMaskedTake(item_, n, mask, x, count, y, workspace, s);
    });
  }
  Status Put(Stream& stream, int64_t n, const void* mask, const void* x, const void* src,
             int64_t count, void* y, void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::LaunchMaskedPut(item_, n, mask, x, src, count, y, workspace, s);
    });
  }

 private:
  DType mask_;
  int item_;
};

StatusOr<std::unique_ptr<Compact>> NewCompact(const Compact::Spec& spec) {
  return std::make_unique<CudaCompact>(spec);
}

const bool registered = RegisterPrimitive<Compact>(DeviceType::kCUDA, &NewCompact);

}  // namespace
}  // namespace oneflow_lite
