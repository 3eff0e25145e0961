// SPDX-License-Identifier: Apache-2.0
#include "primitive/rms_norm.h"

#include "primitive/cuda/norm_host.h"

namespace oneflow_lite {
namespace {

constexpr cuda::NormLauncherTable kTable = {&cuda::kRmsNormFloat16, &cuda::kRmsNormBFloat16,
                                            &cuda::kRmsNormFloat32, &cuda::kRmsNormFloat64};

class CudaRmsNorm final : public cuda::CudaNormBase<RmsNorm> {
 public:
  using CudaNormBase::CudaNormBase;
  size_t WorkspaceBytes(const Stream& stream, const NormShape& shape) const override {
    return launchers_.forward_bytes(ProblemOf(shape), cuda::LimitsOf(stream));
  }
  Status Launch(Stream& stream, const NormShape& shape, const Args& a,
                void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.forward(ProblemOf(shape),
                                {a.x, a.residual, a.weight, nullptr, a.y, a.sum, nullptr, a.rstd},
                                workspace, cuda::LimitsOf(stream), s);
    });
  }
};

class CudaRmsNormBackward final : public cuda::CudaNormBase<RmsNormBackward> {
 public:
  using CudaNormBase::CudaNormBase;
  size_t WorkspaceBytes(const Stream& stream, const NormShape& shape) const override {
    return launchers_.backward_bytes(ProblemOf(shape), cuda::LimitsOf(stream));
  }
  Status Launch(Stream& stream, const NormShape& shape, const Args& a,
                void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.backward(
          ProblemOf(shape),
          {a.x, a.y, a.dy, a.weight, nullptr, nullptr, a.rstd, a.dsum, a.dx, a.dweight, nullptr},
          workspace, cuda::LimitsOf(stream), s);
    });
  }
};

template <class P, class CudaP>
StatusOr<std::unique_ptr<P>> New(const NormSpec& spec) {
  const cuda::NormLaunchers* launchers = kTable.Find(spec);
  if (!launchers) return NoPrimitiveFor(P::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaP>(*launchers, spec);
}

const bool registered = RegisterPrimitive<RmsNorm>(DeviceType::kCUDA, &New<RmsNorm, CudaRmsNorm>) &&
                        RegisterPrimitive<RmsNormBackward>(
                            DeviceType::kCUDA, &New<RmsNormBackward, CudaRmsNormBackward>);

}  // namespace
}  // namespace oneflow_lite
