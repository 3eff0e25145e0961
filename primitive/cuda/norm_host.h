// SPDX-License-Identifier: Apache-2.0
//
// What the host sides of layer_norm and rms_norm share.
#pragma once

#include "primitive/cuda/host.h"
#include "primitive/cuda/norm_launch.h"
#include "primitive/norm.h"

namespace oneflow_lite::cuda {

// The launchers of a norm for float16, bfloat16, float32 and float64, in this order.
struct NormLauncherTable {
  const NormLaunchers *float16, *bfloat16, *float32, *float64;

  // Null where there is no code for the spec.
  const NormLaunchers* Find(const NormSpec& spec) const {
    if (spec.weight_dtype != spec.dtype && spec.weight_dtype != DType::kFloat32) return nullptr;
    switch (spec.dtype) {
      case DType::kFloat16:
        return float16;
      case DType::kBFloat16:
        return bfloat16;
      case DType::kFloat32:
        return float32;
      case DType::kFloat64:
        return float64;
      default:
        return nullptr;
    }
  }
};

// P is LayerNorm, RmsNorm, or one of their backwards.
template <class P>
class CudaNormBase : public P {
 public:
  CudaNormBase(const NormLaunchers& launchers, const NormSpec& spec)
      : launchers_(launchers),
        float_weight_(spec.dtype != spec.weight_dtype && spec.weight_dtype == DType::kFloat32) {}

 protected:
  NormProblem ProblemOf(const NormShape& s) const {
    return {s.rows, s.cols, s.stride(), s.eps, float_weight_};
  }
  const NormLaunchers& launchers_;

 private:
  bool float_weight_;
};

// P is LayerNorm or RmsNorm; the latter's Args have no bias and no mean.
template <class P>
class CudaNorm final : public CudaNormBase<P> {
 public:
  using CudaNormBase<P>::CudaNormBase;
  size_t WorkspaceBytes(const Stream& stream, const NormShape& shape) const override {
    return this->launchers_.forward_bytes(this->ProblemOf(shape), LimitsOf(stream));
  }
  Status Launch(Stream& stream, const NormShape& shape, const typename P::Args& a,
                void* workspace) const override {
    NormForwardPointers to{.x = a.x,
                           .residual = a.residual,
                           .weight = a.weight,
                           .y = a.y,
                           .sum = a.sum,
                           .rstd = a.rstd};
    if constexpr (requires { a.bias; }) to.bias = a.bias;
    if constexpr (requires { a.mean; }) to.mean = a.mean;
    return RunOn(stream, P::kName, [&](cudaStream_t s) {
      return this->launchers_.forward(this->ProblemOf(shape), to, workspace, LimitsOf(stream), s);
    });
  }
};

// P is LayerNormBackward or RmsNormBackward.
template <class P>
class CudaNormBackward final : public CudaNormBase<P> {
 public:
  using CudaNormBase<P>::CudaNormBase;
  size_t WorkspaceBytes(const Stream& stream, const NormShape& shape) const override {
    DeviceGuard guard(stream.device().index);  // the driver is asked how many clusters fit
    return this->launchers_.backward_bytes(this->ProblemOf(shape), LimitsOf(stream));
  }
  Status Launch(Stream& stream, const NormShape& shape, const typename P::Args& a,
                void* workspace) const override {
    NormBackwardPointers to{.x = a.x,
                            .y = a.y,
                            .dy = a.dy,
                            .weight = a.weight,
                            .rstd = a.rstd,
                            .dsum = a.dsum,
                            .dx = a.dx,
                            .dweight = a.dweight};
    if constexpr (requires { a.bias; }) to.bias = a.bias;
    if constexpr (requires { a.mean; }) to.mean = a.mean;
    if constexpr (requires { a.dbias; }) to.dbias = a.dbias;
    return RunOn(stream, P::kName, [&](cudaStream_t s) {
      return this->launchers_.backward(this->ProblemOf(shape), to, workspace, LimitsOf(stream), s);
    });
  }
};

// CudaP is CudaNorm<P> or CudaNormBackward<P>.
template <class P, class CudaP, const NormLauncherTable& table>
StatusOr<std::unique_ptr<P>> NewNorm(const NormSpec& spec) {
  const NormLaunchers* launchers = table.Find(spec);
  if (!launchers) return NoPrimitiveFor(P::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaP>(*launchers, spec);
}

// For namespace-scope initialisers, as RegisterPrimitive.
template <class P, class Backward, const NormLauncherTable& table>
bool RegisterNorm() {
  return RegisterPrimitive<P>(DeviceType::kCUDA, &NewNorm<P, CudaNorm<P>, table>) &&
         RegisterPrimitive<Backward>(DeviceType::kCUDA,
                                     &NewNorm<Backward, CudaNormBackward<Backward>, table>);
}

}  // namespace oneflow_lite::cuda
