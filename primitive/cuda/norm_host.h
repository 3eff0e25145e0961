// SPDX-License-Identifier: Apache-2.0
//
// What the host sides of layer_norm and rms_norm share.
#pragma once

#include "primitive/cuda/host.h"
#include "primitive/cuda/norms/launch.h"
#include "primitive/norm.h"

namespace oneflow_lite::cuda {

// What a norm's Args are to its launchers. rms_norm's have no bias and no mean.
template <class Args>
auto PointersOf(const Args& a) {
  constexpr bool kBackward = requires { a.dy; };
  std::conditional_t<kBackward, NormBackwardPointers, NormForwardPointers> to;
  to.x = a.x, to.weight = a.weight, to.y = a.y, to.rstd = a.rstd;
  if constexpr (requires { a.bias; }) to.bias = a.bias;
  if constexpr (requires { a.mean; }) to.mean = a.mean;
  if constexpr (kBackward) {
    to.dy = a.dy, to.dsum = a.dsum, to.dx = a.dx, to.dweight = a.dweight;
    if constexpr (requires { a.dbias; }) to.dbias = a.dbias;
  } else {
    to.residual = a.residual, to.sum = a.sum;
  }
  return to;
}

// P is LayerNorm, RmsNorm, or one of their backwards.
template <class P>
class CudaNorm final : public P {
 public:
  CudaNorm(const NormLaunchers& launchers, const NormSpec& spec)
      : launchers_(launchers),
        float_weight_(spec.dtype != spec.weight_dtype && spec.weight_dtype == DType::kFloat32) {}

  size_t WorkspaceBytes(const Stream& stream, const NormShape& shape) const override {
    const auto bytes = kBackward ? launchers_.backward_bytes : launchers_.forward_bytes;
    return bytes(shape.rows, shape.cols, LimitsOf(stream));
  }
  Status Launch(Stream& stream, const NormShape& shape, const typename P::Args& a,
                void* workspace) const override {
    return RunOn(stream, P::kName, [&](cudaStream_t s) {
      const NormProblem problem = ProblemOf(shape);
      if constexpr (kBackward) {
        return launchers_.backward(problem, PointersOf(a), workspace, LimitsOf(stream), s);
      } else {
        return launchers_.forward(problem, PointersOf(a), workspace, LimitsOf(stream), s);
      }
    });
  }

 private:
  static constexpr bool kBackward = requires(typename P::Args a) { a.dy; };
  NormProblem ProblemOf(const NormShape& s) const {
    return {s.rows, s.cols, s.stride(), s.eps, float_weight_};
  }
  const NormLaunchers& launchers_;
  bool float_weight_;
};

template <class P, const FloatingLaunchers<NormLaunchers>& table>
StatusOr<std::unique_ptr<P>> NewNorm(const NormSpec& spec) {
  const bool is_served = spec.weight_dtype == spec.dtype || spec.weight_dtype == DType::kFloat32;
  const NormLaunchers* launchers = is_served ? table.Find(spec.dtype) : nullptr;
  if (!launchers) return NoPrimitiveFor(P::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaNorm<P>>(*launchers, spec);
}

// For namespace-scope initialisers, as RegisterPrimitive.
template <class P, class Backward, const FloatingLaunchers<NormLaunchers>& table>
bool RegisterNorm() {
  return RegisterPrimitive<P>(DeviceType::kCUDA, &NewNorm<P, table>) &&
         RegisterPrimitive<Backward>(DeviceType::kCUDA, &NewNorm<Backward, table>);
}

}  // namespace oneflow_lite::cuda
