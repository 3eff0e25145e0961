// SPDX-License-Identifier: Apache-2.0
//
// Activations: y = f(x) of each element, and dx = dy f'(x). Strides of geometries are in elements.
#pragma once

#include <optional>

#include "oneflow_lite/core/elementwise.h"
#include "primitive/activation_kinds.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Activation {
 public:
  static constexpr char kName[] = "activation";
  struct Spec {
    ActivationOp op = ActivationOp::kSilu;
    DType dtype = DType::kFloat32;  // of y; the floats, and integers where the op says so
    std::optional<DType> in = {};   // of x, which is converted; `dtype` unless given
  };
  virtual ~Activation() = default;
  // Operands in the order x, y. y may be x where geometry and dtype are the same.
  virtual Status Launch(Stream& stream, const Elementwise<2>& g, const ActivationNumbers& numbers,
                        const void* x, void* y) const = 0;
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
  // Operands in the order dy, x, dx. dx may be dy or x where their geometry is the same.
  virtual Status Launch(Stream& stream, const Elementwise<3>& g, const ActivationNumbers& numbers,
                        const void* dy, const void* x, void* dx) const = 0;
};
using ActivationBackwardFactory = PrimitiveFactory<ActivationBackward>;

}  // namespace oneflow_lite
