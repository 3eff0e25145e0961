// SPDX-License-Identifier: Apache-2.0
//
// A step of Adam (Kingma and Ba, 2015) or AdamW (Loshchilov and Hutter, 2019) on many tensors at
// once. For each element, with gradient g (its negative if maximize) at step t:
//
//   Adam    g += weight_decay * p               AdamW   p *= 1 - lr * weight_decay
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g^2           with amsgrad  most = max(most, v), else most = v
//   p -= lr / (1 - beta1^t) * m / (sqrt(most / (1 - beta2^t)) + eps)
#pragma once

#include "primitive/adam_math.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Adam {
 public:
  static constexpr char kName[] = "adam";
  struct Spec {
    DType dtype = DType::kFloat32;  // of the parameters
  };
  virtual ~Adam() = default;
  // The tensors of one call do not overlap, counts included.
  virtual Status Launch(Stream& stream, const AdamProblem& problem,
                        absl::Span<const AdamTensors> tensors) const = 0;
};
using AdamFactory = PrimitiveFactory<Adam>;

}  // namespace oneflow_lite
