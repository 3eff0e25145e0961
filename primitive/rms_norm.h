// SPDX-License-Identifier: Apache-2.0
//
// Root-mean-square normalisation over the last axis (Zhang and Sennrich, "Root Mean Square Layer
// Normalization", 2019):
//
//   s = x + residual                         (s = x without a residual)
//   x_hat = s * rstd,  rstd = 1 / sqrt(mean(s^2) + eps)
//   y = x_hat * weight
//
// and its gradient, with g = dy * weight:
//
//   dx = rstd * (g - x_hat * mean(g * x_hat)) + dsum,   dweight = sum over rows of dy * x_hat
#pragma once

#include "primitive/norm.h"

namespace oneflow_lite {

class RmsNorm {
 public:
  static constexpr char kName[] = "rms_norm";
  using Spec = NormSpec;
  // As LayerNorm::Args, without bias and mean.
  struct Args {
    const void* x = nullptr;
    const void* residual = nullptr;
    const void* weight = nullptr;
    void* y = nullptr;
    void* sum = nullptr;
    void* rstd = nullptr;
  };
  virtual ~RmsNorm() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const NormShape& shape) const { return 0; }
  virtual Status Launch(Stream& stream, const NormShape& shape, const Args& args,
                        void* workspace) const = 0;
};
using RmsNormFactory = PrimitiveFactory<RmsNorm>;

class RmsNormBackward {
 public:
  static constexpr char kName[] = "rms_norm_backward";
  using Spec = NormSpec;
  // As LayerNormBackward::Args: either x and rstd, or (memory-efficient) y, weight and rstd.
  struct Args {
    const void* x = nullptr;
    const void* y = nullptr;
    const void* dy = nullptr;
    const void* weight = nullptr;
    const void* rstd = nullptr;
    const void* dsum = nullptr;
    void* dx = nullptr;
    void* dweight = nullptr;
  };
  virtual ~RmsNormBackward() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const NormShape& shape) const { return 0; }
  virtual Status Launch(Stream& stream, const NormShape& shape, const Args& args,
                        void* workspace) const = 0;
};
using RmsNormBackwardFactory = PrimitiveFactory<RmsNormBackward>;

}  // namespace oneflow_lite
