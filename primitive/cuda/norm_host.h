// SPDX-License-Identifier: Apache-2.0
//
// What the host sides of layer_norm and rms_norm share.
#pragma once

#include "primitive/cuda/host.h"
#include "primitive/cuda/norm_launch.h"
#include "primitive/norm.h"

namespace oneflow_lite::cuda {

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

}  // namespace oneflow_lite::cuda
