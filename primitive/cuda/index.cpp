// SPDX-License-Identifier: Apache-2.0
#include "primitive/index.h"

#include <limits>

#include "primitive/cuda/host.h"
#include "primitive/cuda/index_launch.h"

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
          {cuda::ToStrided(g), axis.size, axis.stride, axis.from_end, index, x, missing_, y}, s);
    });
  }

 private:
  cuda::GatherRunLauncher launcher_;
  cuda::ScalarBits missing_;
};

class CudaScatter final : public Scatter {
 public:
  CudaScatter(cuda::ScatterRunLauncher launcher, bool add) : launcher_(launcher), add_(add) {}
  size_t WorkspaceBytes(int64_t columns, const ScatterAxis& axis) const override {
    return add_ ? 0 : cuda::ScatterRunWorkspace(columns, DimOf(axis));
  }
  Status Launch(Stream& stream, const Elementwise<3>& columns, const ScatterAxis& axis,
                const int64_t* index, const void* src, void* dst, void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_({cuda::ToStrided(columns), DimOf(axis), index, src, dst, workspace}, s);
    });
  }

 private:
  static cuda::ScatterDim DimOf(const ScatterAxis& axis) {
    return {axis.count,      axis.size,       axis.index_stride,
            axis.src_stride, axis.dst_stride, axis.from_end};
  }

  cuda::ScatterRunLauncher launcher_;
  bool add_;
};

StatusOr<std::unique_ptr<Gather>> NewGather(const Gather::Spec& spec) {
  return std::make_unique<CudaGather>(spec.dtype);
}
StatusOr<std::unique_ptr<Scatter>> NewScatter(const Scatter::Spec& spec) {
  const cuda::ScatterRunLauncher launcher = cuda::FindScatterRun(spec.dtype, spec.add);
  if (!launcher) return NoPrimitiveFor(Scatter::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaScatter>(launcher, spec.add);
}

const bool registered = RegisterPrimitive<Gather>(DeviceType::kCUDA, &NewGather) &&
                        RegisterPrimitive<Scatter>(DeviceType::kCUDA, &NewScatter);

}  // namespace
}  // namespace oneflow_lite
