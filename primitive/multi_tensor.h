// SPDX-License-Identifier: Apache-2.0
//
// One launch over many tensors: steps of optimizers, and what else is done to all gradients or all
// parameters at once. Adam has a primitive of its own (primitive/adam.h).
//
//   sgd      g += weight_decay p;  a = momentum a + (1 - dampening) g, the first time a = g
//            p -= lr (nesterov ? g + momentum a : momentum ? a : g)
//   rmsprop  g += weight_decay p;  a = alpha a + (1 - alpha) g^2;  with b: b += (1 - alpha)(g - b)
//            d = g / (sqrt(a - b^2) + eps);  with c: c = momentum c + d, d = c;  p -= lr d
//   adadelta g += weight_decay p;  a = rho a + (1 - rho) g^2;  d = g sqrt(b + eps) / sqrt(a + eps)
//            b = rho b + (1 - rho) d^2;  p -= lr d
//   adagrad  g += weight_decay p;  a += g^2;  p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(a) + eps)
//   lion     p *= 1 - lr weight_decay;  p -= lr sign(beta1 a + (1 - beta1) g)
//            a = beta2 a + (1 - beta2) g
//   lerp     p += weight (g - p)
//   scale    p *= factor           clamp  p = min(max(p, least), most)         fill  p = value
//   unscale  p /= grad_scale; where one is not finite, the tensor's flag becomes 1
//   update_scale   p, a 0-dim: after a bad step (g > 0) p *= backoff, a = 0; else a += 1, and at
//            the interval p *= growth, if that is finite, and a = 0
#pragma once

#include "primitive/multi_tensor_math.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class MultiTensor {
 public:
  static constexpr char kName[] = "multi_tensor";
  struct Spec {
    MultiTensorOp op = MultiTensorOp::kSgd;
    DType dtype = DType::kFloat32;  // of the first list
  };
  virtual ~MultiTensor() = default;
  // The tensors of one call do not overlap, counts included; flags may be one.
  virtual Status Launch(Stream& stream, const MultiTensorProblem& problem,
                        absl::Span<const MultiTensors> tensors) const = 0;
};
using MultiTensorFactory = PrimitiveFactory<MultiTensor>;

// The p-norm of each of many tensors. p in (0, inf].
class TensorNorms {
 public:
  static constexpr char kName[] = "tensor_norms";
  struct Spec {
    DType dtype = DType::kFloat32;
  };
  virtual ~TensorNorms() = default;
  virtual size_t WorkspaceBytes(absl::Span<const NormedTensor> tensors) const = 0;
  // norms: one of the compute type for each tensor.
  virtual Status Launch(Stream& stream, double p, absl::Span<const NormedTensor> tensors,
                        void* norms, void* workspace) const = 0;
};
using TensorNormsFactory = PrimitiveFactory<TensorNorms>;

}  // namespace oneflow_lite
