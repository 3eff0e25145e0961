// SPDX-License-Identifier: Apache-2.0
#include "primitive/ravel_multi_index.h"

#include <algorithm>

#include "primitive/cuda/host.h"
#include "primitive/cuda/moves/ravel_multi_index_launch.h"

namespace oneflow_lite {
namespace {

static_assert(cuda::kMostIndices == MultiIndex::kMost);

class CudaRavelMultiIndex final : public RavelMultiIndex {
 public:
  Status Launch(Stream& stream, const MultiIndex& m, int64_t* out) const override {
    cuda::MultiIndexDims dims = {.count = m.count, .continues = m.continues};
    std::copy_n(m.index, m.count, dims.index);
    std::copy_n(m.size, m.count, dims.size);
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::LaunchRavelMultiIndex(cuda::ToStrided(m.g), dims, kNoPlace, out, s);
    });
  }
};

StatusOr<std::unique_ptr<RavelMultiIndex>> New(const RavelMultiIndex::Spec&) {
  return std::make_unique<CudaRavelMultiIndex>();
}

const bool registered = RegisterPrimitive<RavelMultiIndex>(DeviceType::kCUDA, &New);

}  // namespace
}  // namespace oneflow_lite
