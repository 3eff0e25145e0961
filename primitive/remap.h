// SPDX-License-Identifier: Apache-2.0
//
// Rearrangements dim by dim: flip, roll and pad in one pass, and triangles of matrices.
#pragma once

#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/scalar.h"
#include "primitive/primitive.h"
#include "primitive/remap_kinds.h"

namespace oneflow_lite {

class Remap {
 public:
  static constexpr char kName[] = "remap";
  struct Spec {
    DType dtype = DType::kFloat32;
  };
  virtual ~Remap() = default;
  // y[i][j]... = x[place(i)][place(j)]..., or `fill` where a place is none; y is dense.
  virtual Status Launch(Stream& stream, const RemapShape& shape, Scalar fill, const void* x,
                        void* y) const = 0;
  // dx[p]... = the sum of dy over all indices whose places are p...; both are dense. In the compute
  // type, in the order of the indices, rounded once. Floats.
  virtual Status LaunchBackward(Stream& stream, const RemapShape& shape, const void* dy,
                                void* dx) const = 0;
};
using RemapFactory = PrimitiveFactory<Remap>;

class Triangle {
 public:
  static constexpr char kName[] = "triangle";
  struct Spec {
    DType dtype = DType::kFloat32;
  };
  virtual ~Triangle() = default;
  // Matrices [rows, cols] one after the other: y[r][c] = x[r][c] where c - r <= diagonal (lower),
  // or >= diagonal, else 0. y may be x.
  virtual Status Launch(Stream& stream, int64_t matrices, int64_t rows, int64_t cols,
                        int64_t diagonal, bool lower, const void* x, void* y) const = 0;
};
using TriangleFactory = PrimitiveFactory<Triangle>;

}  // namespace oneflow_lite
