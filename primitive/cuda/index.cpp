// SPDX-License-Identifier: Apache-2.0
#include "primitive/index.h"

#include <limits>

#include "primitive/cuda/host.h"
#include "primitive/cuda/moves/index_launch.h"
#include "primitive/cuda/moves/index_rows_launch.h"

namespace oneflow_lite {
namespace {

class CudaGather final : public Gather {
 public:
  explicit CudaGather(DType dtype)
      : launcher_(cuda::FindGatherRun(dtype)),
        missing_(IsFloating(dtype)
                     ? cuda::BitsOf(Scalar(std::numeric_limits<double>::quiet_NaN()), dtype)
                     : 0) {}
  Status Launch(Stream& stream, const Elementwise<3>& g, const GatherAxis& axis,
                const int64_t* index, const void* x, void* y) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_(
          {cuda::ToStrided(g), axis.size, axis.stride, axis.from_end, index, x, missing_, y},
          cuda::LimitsOf(stream), s);
    });
  }

 private:
  cuda::GatherRunLauncher launcher_;
  cuda::ScalarBits missing_;
};

class CudaScatter final : public Scatter {
 public:
  CudaScatter(cuda::ScatterRunLauncher launcher, const Spec& spec)
      : launcher_(launcher), spec_(spec) {
    if (spec.src != spec.dtype) return;
    const auto store = static_cast<cuda::ScatterStore>(spec.mode);
    extremes_ = cuda::FindRowExtremes(spec.dtype, store);
    if (!extremes_) join_ = cuda::FindRowJoin(spec.dtype, store);
  }
  size_t WorkspaceBytes(const Elementwise<3>& columns, const ScatterAxis& axis) const override {
    if (spec_.mode == Mode::kPut) return cuda::ScatterRunWorkspace(columns.numel, DimOf(axis));
    size_t bytes = 0;
    if (join_ && AreLongRows(columns, axis)) {
      static_cast<void>(
          cuda::IndexSumWorkspaceBytes(spec_.dtype, RowsOf(columns.numel, axis), &bytes));
    }
    return bytes;
  }
  Status Launch(Stream& stream, const Elementwise<3>& columns, const ScatterAxis& axis,
                const int64_t* index, const void* src, void* dst, void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      const bool rows = (extremes_ || (join_ && workspace)) && AreLongRows(columns, axis);
      if (rows && extremes_) return extremes_(RowsOf(columns.numel, axis), index, src, dst, s);
      if (rows) {
        return join_({RowsOf(columns.numel, axis), true, 1, -1, index, src, dst, workspace}, s);
      }
      return launcher_({cuda::ToStrided(columns), DimOf(axis), index, src, dst, workspace},
                       cuda::LimitsOf(stream), s);
    });
  }

 private:
  // Whether the columns lie side by side and go by one index, as a repeated one does: then they are
  // rows, as those of index_add, and so many that this takes less time than their columns do.
  static bool AreLongRows(const Elementwise<3>& columns, const ScatterAxis& axis) {
    constexpr int64_t kLongLine = 1 << 15, kLongRows = 1 << 12;
    if (axis.count < (columns.numel == 1 ? kLongLine : kLongRows)) return false;
    if (axis.index_stride != 1 || axis.dst_stride != columns.numel) return false;
    return columns.ndim == 0 || (columns.ndim == 1 && columns.strides[0][0] == 0 &&
                                 columns.strides[1][0] == 1 && columns.strides[2][0] == 1);
  }
  static cuda::RowsProblem RowsOf(int64_t columns, const ScatterAxis& axis) {
    return {1, axis.size, axis.count, columns, 0, axis.src_stride, axis.from_end};
  }
  static cuda::ScatterDim DimOf(const ScatterAxis& axis) {
    return {axis.count,      axis.size,       axis.index_stride,
            axis.src_stride, axis.dst_stride, axis.from_end};
  }

  cuda::ScatterRunLauncher launcher_;
  cuda::RowExtremesLauncher extremes_ = nullptr;
  cuda::IndexSumLauncher join_ = nullptr;
  Spec spec_;
};

StatusOr<std::unique_ptr<Gather>> NewGather(const Gather::Spec& spec) {
  return std::make_unique<CudaGather>(spec.dtype);
}
StatusOr<std::unique_ptr<Scatter>> NewScatter(const Scatter::Spec& spec) {
  const auto store = static_cast<cuda::ScatterStore>(spec.mode);
  const cuda::ScatterRunLauncher launcher = cuda::FindScatterRun(spec.dtype, spec.src, store);
  if (!launcher) return NoPrimitiveFor(Scatter::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaScatter>(launcher, spec);
}

const bool registered = RegisterPrimitive<Gather>(DeviceType::kCUDA, &NewGather) &&
                        RegisterPrimitive<Scatter>(DeviceType::kCUDA, &NewScatter);

}  // namespace
}  // namespace oneflow_lite
