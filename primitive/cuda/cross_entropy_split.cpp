// SPDX-License-Identifier: Apache-2.0
#include "primitive/cross_entropy_split.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/losses/cross_entropy_split_launch.h"

namespace oneflow_lite {
namespace {

class CudaCrossEntropySplit final : public CrossEntropySplit {
 public:
  explicit CudaCrossEntropySplit(cuda::CrossEntropySplitLaunchers launchers)
      : launchers_(launchers) {}

  Status Part(Stream& stream, const ClassPartShape& shape, const void* x, const int64_t* target,
              void* part) const override {
    return cuda::RunOn(stream, kName,
                       [&](cudaStream_t s) { return launchers_.part(shape, x, target, part, s); });
  }
  Status Merge(Stream& stream, const ClassMergeShape& shape, const int64_t* target,
               const void* parts, void* loss, void* stats) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.merge(shape, target, parts, loss, stats, s);
    });
  }
  Status Gradient(Stream& stream, const ClassPartShape& shape, const void* x, const int64_t* target,
                  const void* stats, const void* dloss, int64_t dloss_stride, void* dx,
                  int64_t dx_stride) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.gradient(shape, x, target, stats, dloss, dloss_stride, dx, dx_stride, s);
    });
  }

 private:
  cuda::CrossEntropySplitLaunchers launchers_;
};

StatusOr<std::unique_ptr<CrossEntropySplit>> New(const CrossEntropySplit::Spec& spec) {
  const auto launchers = cuda::FindCrossEntropySplit(spec.dtype);
  if (!launchers.part) {
    return NoPrimitiveFor(CrossEntropySplit::kName, DeviceType::kCUDA, spec.dtype);
  }
  return std::make_unique<CudaCrossEntropySplit>(launchers);
}

const bool registered = RegisterPrimitive<CrossEntropySplit>(DeviceType::kCUDA, &New);

}  // namespace
}  // namespace oneflow_lite
