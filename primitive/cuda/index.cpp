// SPDX-License-Identifier: Apache-2.0
#include "primitive/index.h"

#include <limits>

#include "primitive/cuda/host.h"

namespace oneflow_lite {
namespace {

class CudaGather final : public Gather {
 public:
  explicit CudaGather(DType dtype)
      : launcher_(cuda::FindGather(dtype)),
        missing_(IsFloating(dtype)
                     ? cuda::BitsOf(Scalar(std::numeric_limits<double>::quiet_NaN()), dtype)
                     : 0) {}
  Status Launch(Stream& stream, const Elementwise<3>& g, int64_t size, int64_t stride,
                const int64_t* index, const void* x, void* y) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_(cuda::ToStrided(g), size, stride, index, x, missing_, y, s);
    });
  }

 private:
  cuda::GatherLauncher launcher_;
  cuda::ScalarBits missing_;
};

class CudaScatter final : public Scatter {
 public:
  CudaScatter(cuda::ScatterLauncher launcher, bool add) : launcher_(launcher), add_(add) {}
  size_t WorkspaceBytes(int64_t columns, const ScatterAxis& axis) const override {
    return add_ ? 0 : cuda::ScatterWorkspace(columns, ProblemOf(axis));
  }
  Status Launch(Stream& stream, const Elementwise<3>& columns, const ScatterAxis& axis,
                const int64_t* index, const void* src, void* dst, void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launcher_(cuda::ToStrided(columns), ProblemOf(axis), index, src, dst, workspace, s);
    });
  }

 private:
  static cuda::ScatterProblem ProblemOf(const ScatterAxis& axis) {
    return {axis.count, axis.size, axis.index_stride, axis.src_stride, axis.dst_stride};
  }

  cuda::ScatterLauncher launcher_;
  bool add_;
};

StatusOr<std::unique_ptr<Gather>> NewGather(const Gather::Spec& spec) {
  return std::make_unique<CudaGather>(spec.dtype);
}
StatusOr<std::unique_ptr<Scatter>> NewScatter(const Scatter::Spec& spec) {
  const cuda::ScatterLauncher launcher = cuda::FindScatter(spec.dtype, spec.add);
  if (!launcher) return NoPrimitiveFor(Scatter::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaScatter>(launcher, spec.add);
}

const bool registered = RegisterPrimitive<Gather>(DeviceType::kCUDA, &NewGather) &&
                        RegisterPrimitive<Scatter>(DeviceType::kCUDA, &NewScatter);

}  // namespace
}  // namespace oneflow_lite
