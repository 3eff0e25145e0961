// SPDX-License-Identifier: Apache-2.0
#include "primitive/sort.h"

#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaSort final : public Sort {
 public:
  explicit CudaSort(DType dtype) : dtype_(dtype) {}

  StatusOr<size_t> WorkspaceBytes(const Stream& stream, int64_t rows, int64_t cols) const override {
    size_t bytes = 0;
    OFL_RETURN_IF_ERROR(cuda::RunOn(stream, kName, [&](cudaStream_t) {
      return cuda::SortWorkspaceBytes({dtype_, false, rows, cols, nullptr}, &bytes);
    }));
    return bytes;
  }

  Status Launch(Stream& stream, int64_t rows, int64_t cols, bool descending, const void* x,
                void* values, int64_t* indices, void* workspace) const override {
    OFL_ASSIGN_OR_RETURN(const size_t bytes, WorkspaceBytes(stream, rows, cols));
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::LaunchSort({dtype_, descending, rows, cols, x}, workspace, bytes, values,
                              indices, s);
    });
  }

 private:
  DType dtype_;
};

StatusOr<std::unique_ptr<Sort>> NewSort(const Sort::Spec& spec) {
  return std::make_unique<CudaSort>(spec.dtype);
}

const bool registered = RegisterPrimitive<Sort>(DeviceType::kCUDA, &NewSort);

}  // namespace
}  // namespace oneflow_lite
