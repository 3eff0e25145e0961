// SPDX-License-Identifier: Apache-2.0
#include "primitive/layer_norm.h"

#include "primitive/cuda/norm_host.h"

namespace oneflow_lite {
namespace {

constexpr cuda::NormLauncherTable kTable = {&cuda::kLayerNormFloat16, &cuda::kLayerNormBFloat16,
                                            &cuda::kLayerNormFloat32, &cuda::kLayerNormFloat64};

class CudaLayerNorm final : public cuda::CudaNormBase<LayerNorm> {
 public:
  using CudaNormBase::CudaNormBase;
  size_t WorkspaceBytes(const Stream& stream, const NormShape& shape) const override {
    return launchers_.forward_bytes(ProblemOf(shape), cuda::LimitsOf(stream));
  }
  Status Launch(Stream& stream, const NormShape& shape, const Args& a,
                void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.forward(ProblemOf(shape),
                                {a.x, a.residual, a.weight, a.bias, a.y, a.sum, a.mean, a.rstd},
                                workspace, cuda::LimitsOf(stream), s);
    });
  }
};

class CudaLayerNormBackward final : public cuda::CudaNormBase<LayerNormBackward> {
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
          {a.x, a.y, a.dy, a.weight, a.bias, a.mean, a.rstd, a.dsum, a.dx, a.dweight, a.dbias},
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

const bool registered =
    RegisterPrimitive<LayerNorm>(DeviceType::kCUDA, &New<LayerNorm, CudaLayerNorm>) &&
    RegisterPrimitive<LayerNormBackward>(DeviceType::kCUDA,
                                         &New<LayerNormBackward, CudaLayerNormBackward>);

}  // namespace
}  // namespace oneflow_lite
