// SPDX-License-Identifier: Apache-2.0
#include "primitive/index_rows.h"

#include <limits>

#include "primitive/cuda/host.h"
#include "primitive/cuda/moves/index_launch.h"
#include "primitive/cuda/moves/index_rows_launch.h"

namespace oneflow_lite {
namespace {

cuda::RowsProblem ProblemOf(const IndexRows& s) {
  return {s.outer, s.size, s.count, s.inner, s.outer_stride, s.row_stride, s.from_end};
}

class CudaIndexSelect final : public IndexSelect {
 public:
  explicit CudaIndexSelect(DType dtype)
      : item_(static_cast<int>(SizeOf(dtype))),
        gather_(cuda::FindGatherRun(dtype)),
        bits_(IsFloating(dtype)
                  ? cuda::BitsOf(Scalar(std::numeric_limits<double>::quiet_NaN()), dtype)
                  : 0) {
    auto* bytes = reinterpret_cast<unsigned char*>(missing_.words);
    for (int i = 0; i < 16; ++i) bytes[i] = static_cast<unsigned char>(bits_ >> 8 * (i % item_));
  }
  Status Launch(Stream& stream, const IndexRows& shape, const int64_t* index, const void* x,
                void* y) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      if (shape.inner == 1) {  // rows of one element
        const int64_t dims[] = {shape.outer, shape.count}, of_index[] = {0, 1},
                      of_x[] = {shape.outer_stride, 0}, of_y[] = {shape.count, 1};
        const auto g = MakeElementwise<3>(dims, {of_index, of_x, of_y});
        return gather_(
            {cuda::ToStrided(g), shape.size, shape.row_stride, shape.from_end, index, x, bits_, y},
            cuda::LimitsOf(stream), s);
      }
      return cuda::LaunchIndexSelect(item_, ProblemOf(shape), missing_, index, x, y, s);
    });
  }

 private:
  int item_;
  cuda::GatherRunLauncher gather_;
  cuda::ScalarBits bits_;
  cuda::MissingElements missing_;
};

class CudaIndexCopy final : public IndexPut {
 public:
  explicit CudaIndexCopy(DType dtype) : item_(static_cast<int>(SizeOf(dtype))) {}
  StatusOr<size_t> WorkspaceBytes(const Stream&, const IndexRows& shape) const override {
    if (cuda::InOneLaunch(ProblemOf(shape))) return size_t{0};
    const int64_t entries = shape.count <= cuda::kFewRows ? shape.count : shape.size;
    return static_cast<size_t>(entries) * sizeof(uint64_t);
  }
  Status Launch(Stream& stream, const IndexRows& shape, const int64_t* index, double, int64_t,
                const void* x, void* y, void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return cuda::LaunchIndexCopy(item_, ProblemOf(shape), index, x, y, workspace, s);
    });
  }

 private:
  int item_;
};

class CudaIndexSum final : public IndexPut {
 public:
  CudaIndexSum(const Spec& spec, cuda::IndexSumLauncher launcher)
      : spec_(spec), launcher_(launcher) {}
  StatusOr<size_t> WorkspaceBytes(const Stream& stream, const IndexRows& shape) const override {
    size_t bytes = 0;
    OFL_RETURN_IF_ERROR(cuda::RunOn(stream, kName, [&](cudaStream_t) {
      return cuda::IndexSumWorkspaceBytes(spec_.dtype, ProblemOf(shape), &bytes);
    }));
    return bytes;
  }
  Status Launch(Stream& stream, const IndexRows& shape, const int64_t* index, double alpha,
                int64_t skipped, const void* x, void* y, void* workspace) const override {
    const cuda::IndexSumRun run{
        ProblemOf(shape), spec_.mode == Mode::kAdd, alpha, skipped, index, x, y, workspace};
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) { return launcher_(run, s); });
  }

 private:
  Spec spec_;
  cuda::IndexSumLauncher launcher_;
};

StatusOr<std::unique_ptr<IndexSelect>> NewIndexSelect(const IndexSelect::Spec& spec) {
  return std::make_unique<CudaIndexSelect>(spec.dtype);
}
StatusOr<std::unique_ptr<IndexPut>> NewIndexPut(const IndexPut::Spec& spec) {
  if (spec.mode == IndexPut::Mode::kCopy) return std::make_unique<CudaIndexCopy>(spec.dtype);
  const cuda::IndexSumLauncher launcher = cuda::FindIndexSum(spec.dtype);
  if (!launcher) return NoPrimitiveFor(IndexPut::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaIndexSum>(spec, launcher);
}

const bool registered = RegisterPrimitive<IndexSelect>(DeviceType::kCUDA, &NewIndexSelect) &&
                        RegisterPrimitive<IndexPut>(DeviceType::kCUDA, &NewIndexPut);

}  // namespace
}  // namespace oneflow_lite
