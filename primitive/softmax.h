// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax over the middle axis of outer x axis x inner, and their gradients.
//
//   softmax:      y = exp(x - max) / sum exp(x - max)
//   log_softmax:  y = (x - max) - log sum exp(x - max), in this order
//   backward:     dx = y * (dy - sum(y * dy))              for softmax
//                 dx = dy - exp(y) * sum(dy)               for log_softmax
//
// A row that holds +inf or NaN, or only -inf, becomes NaN; other rows are untouched by it.
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

// rows = outer * inner independent softmaxes of `cols` elements each. With inner = 1 the elements
// of a row are neighbours, and the rows of an input may lie apart; else everything is dense and
// element (o, a, i) lies at (o * cols + a) * inner + i. Outputs are dense. All pointers are aligned
// to the element only. Nothing happens where rows or cols is 0.
struct SoftmaxShape {
  int64_t rows = 0;  // outer, where inner > 1
  int64_t cols = 0;  // the softmax axis
  int64_t inner = 1;
  int64_t strides[2] = {0, 0};  // of the inputs' rows, in elements, where inner = 1; 0: cols

  int64_t stride(int input) const { return strides[input] > 0 ? strides[input] : cols; }
};

class Softmax {
 public:
  static constexpr char kName[] = "softmax";
  struct Spec {
    DType dtype = DType::kFloat32;  // of x and y; one of the four floats
    bool log = false;
    bool to_float32 = false;  // of x, which has 16 bits; y is float32, and inner is 1. Few have it.
  };
  virtual ~Softmax() = default;
  // Bytes of device workspace a launch needs; most need none.
  virtual size_t WorkspaceBytes(const Stream& stream, const SoftmaxShape& shape) const { return 0; }
  // x may be y where its rows are dense; otherwise they must not overlap.
  virtual Status Launch(Stream& stream, const SoftmaxShape& shape, const void* x, void* y,
                        void* workspace) const = 0;
};
using SoftmaxFactory = PrimitiveFactory<Softmax>;

class SoftmaxBackward {
 public:
  static constexpr char kName[] = "softmax_backward";
  using Spec = Softmax::Spec;
  virtual ~SoftmaxBackward() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const SoftmaxShape& shape) const { return 0; }
  // y is the forward's output. dx may be dy where that is dense; otherwise dx must not overlap
  // them.
  virtual Status Launch(Stream& stream, const SoftmaxShape& shape, const void* y, const void* dy,
                        void* dx, void* workspace) const = 0;
};
using SoftmaxBackwardFactory = PrimitiveFactory<SoftmaxBackward>;

}  // namespace oneflow_lite
