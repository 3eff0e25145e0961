// SPDX-License-Identifier: Apache-2.0
//
// Negative log likelihood per row, and its gradient. Element (o, c, i) of logp lies at
// (o * classes + c) * inner + i; target, weights and losses are outer x inner.
//
//   loss[o, i] = -w[t] * logp[o, t, i],  t = target[o, i];  0 where t is ignore_index
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

struct NllLossShape {
  int64_t outer = 0, classes = 0, inner = 1;
  int64_t ignore_index = -100;
};

class NllLoss {
 public:
  static constexpr char kName[] = "nll_loss";
  struct Spec {
    DType dtype = DType::kFloat32;  // of logp, class_weight and the outputs
  };
  virtual ~NllLoss() = default;
  // row_weight[o, i] = w[t], 1 where class_weight is null, 0 where ignored. A target outside
  // [0, classes): IndexError on the CPU; NaN in loss and row_weight on CUDA, which cannot stop.
  virtual Status Launch(Stream& stream, const NllLossShape& shape, const void* logp,
                        const int64_t* target, const void* class_weight, void* loss,
                        void* row_weight) const = 0;
};
using NllLossFactory = PrimitiveFactory<NllLoss>;

class NllLossBackward {
 public:
  static constexpr char kName[] = "nll_loss_backward";
  using Spec = NllLoss::Spec;
  virtual ~NllLossBackward() = default;
  // dlogp (all of it is written) = -w[t] * dloss at the target, else 0; row_weight is the
  // forward's.
  virtual Status Launch(Stream& stream, const NllLossShape& shape, const void* dloss,
                        const int64_t* target, const void* row_weight, void* dlogp) const = 0;
};
using NllLossBackwardFactory = PrimitiveFactory<NllLossBackward>;

}  // namespace oneflow_lite
