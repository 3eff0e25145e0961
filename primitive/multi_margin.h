// SPDX-License-Identifier: Apache-2.0
//
// What the classes of a row are above its target's less a margin, and the gradient.
//
//   loss[r] = sum over j != t of max(0, margin - x[r][t] + x[r][j])^p / classes,  t = target[r]
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

struct MultiMarginShape {
  int64_t rows = 0, classes = 0;
  double margin = 1;
  bool squared = false;  // p is 2, else 1
};

class MultiMargin {
 public:
  static constexpr char kName[] = "multi_margin";
  struct Spec {
    DType dtype = DType::kFloat32;  // a float
  };
  virtual ~MultiMargin() = default;
  // Computed in the compute type, rounded once. A target outside [0, classes): IndexError on the
  // CPU, NaN on CUDA, which cannot stop.
  virtual Status Launch(Stream& stream, const MultiMarginShape& shape, const void* x,
                        const int64_t* target, void* loss) const = 0;
  // dx = dloss times the slopes, 0 at a margin that is met exactly. Both are dense.
  virtual Status LaunchBackward(Stream& stream, const MultiMarginShape& shape, const void* dloss,
                                const void* x, const int64_t* target, void* dx) const = 0;
};
using MultiMarginFactory = PrimitiveFactory<MultiMargin>;

}  // namespace oneflow_lite
