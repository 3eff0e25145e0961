// SPDX-License-Identifier: Apache-2.0
#include "primitive/sort.h"

#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaSort final : public Sort {
 public:
  explicit CudaSort(cuda::SortLauncher launcher) : launcher_(launcher) {}
  Status Launch(Stream& stream, int64_t rows, int64_t cols, bool descending, const void* x,
                void* values, int64_t* indices) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_(rows, cols, descending, x, values, indices, s);
    });
  }

 private:
  cuda::SortLauncher launcher_;
};

StatusOr<std::unique_ptr<Sort>> NewSort(const Sort::Spec& spec) {
  return std::make_unique<CudaSort>(cuda::FindSort(spec.dtype));
}

const bool registered = RegisterPrimitive<Sort>(DeviceType::kCUDA, &NewSort);

}  // namespace
}  // namespace oneflow_lite
