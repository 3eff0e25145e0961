// SPDX-License-Identifier: Apache-2.0
//
// Layer normalisation over the last axis (Ba, Kiros and Hinton, "Layer Normalization", 2016):
//
//   s = x + residual                         (s = x without a residual)
//   x_hat = (s - mean) * rstd,  rstd = 1 / sqrt(mean((s - mean)^2) + eps)
//   y = x_hat * weight + bias
//
// and its gradient, with g = dy * weight:
//
//   dx = rstd * (g - mean(g) - x_hat * mean(g * x_hat)) + dsum
//   dweight = sum over rows of dy * x_hat,  dbias = sum over rows of dy
#pragma once

#include "primitive/norm.h"

namespace oneflow_lite {

class LayerNorm {
 public:
  static constexpr char kName[] = "layer_norm";
  using Spec = NormSpec;
  // Only x and y are required. `sum` receives s and is given where residual is; mean and rstd have
  // one value per row, in the statistics' type. y may be x, sum may be x or residual; otherwise no
  // two may overlap.
  struct Args {
    const void* x = nullptr;
    const void* residual = nullptr;
    const void* weight = nullptr;
    const void* bias = nullptr;
    void* y = nullptr;
    void* sum = nullptr;
    void* mean = nullptr;
    void* rstd = nullptr;
  };
  virtual ~LayerNorm() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const NormShape& shape) const { return 0; }
  virtual Status Launch(Stream& stream, const NormShape& shape, const Args& args,
                        void* workspace) const = 0;
};
using LayerNormFactory = PrimitiveFactory<LayerNorm>;

class LayerNormBackward {
 public:
  static constexpr char kName[] = "layer_norm_backward";
  using Spec = NormSpec;
  // Either x (the forward's s), mean and rstd, or (memory-efficient) y, weight, bias and rstd, from
  // which x_hat = (y - bias) / weight. mean is a point to centre on: its rounding is corrected.
  // Only the gradients that are given are computed. dx may be dy; otherwise no two may overlap.
  struct Args {
    const void* x = nullptr;
    const void* y = nullptr;
    const void* dy = nullptr;
    const void* weight = nullptr;
    const void* bias = nullptr;
    const void* mean = nullptr;
    const void* rstd = nullptr;
    const void* dsum = nullptr;  // the gradient of `sum`, added to dx
    void* dx = nullptr;
    void* dweight = nullptr;
    void* dbias = nullptr;
  };
  virtual ~LayerNormBackward() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const NormShape& shape) const { return 0; }
  virtual Status Launch(Stream& stream, const NormShape& shape, const Args& args,
                        void* workspace) const = 0;
};
using LayerNormBackwardFactory = PrimitiveFactory<LayerNormBackward>;

}  // namespace oneflow_lite
