// SPDX-License-Identifier: Apache-2.0
//
// Activations: y[i] = f(x[i]) over n contiguous elements, and dx[i] = dy[i] f'(x[i]).
#pragma once

#include "primitive/activation_kinds.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Activation {
 public:
  static constexpr char kName[] = "activation";
  struct Spec {
    ActivationOp op = ActivationOp::kSilu;
    DType dtype = DType::kFloat32;  // of x and y; the floats, and integers where the op says so
  };
  virtual ~Activation() = default;
  // x and y may be the same pointer.
  virtual Status Launch(Stream& stream, int64_t n, const ActivationNumbers& numbers, const void* x,
                        void* y) const = 0;
};
using ActivationFactory = PrimitiveFactory<Activation>;

class ActivationBackward {
 public:
  static constexpr char kName[] = "activation_backward";
  struct Spec {
    ActivationOp op = ActivationOp::kSilu;
    DType dtype = DType::kFloat32;  // one of the four floats
    // Of kElu: f' is computed from y instead of x. (Where that of hardtanh, leaky_relu, hardshrink
    // or threshold is the same of both, x may be y without this.)
    bool of_output = false;
  };
  virtual ~ActivationBackward() = default;
  // With `one_dy`, dy is one element that stands for all. dx may be x, or dy where there are n.
  virtual Status Launch(Stream& stream, int64_t n, const ActivationNumbers& numbers, const void* dy,
                        bool one_dy, const void* x, void* dx) const = 0;
};
using ActivationBackwardFactory = PrimitiveFactory<ActivationBackward>;

}  // namespace oneflow_lite
