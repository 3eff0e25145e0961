// SPDX-License-Identifier: Apache-2.0
//
// What the ops of linear algebra share: inference and sharding over batches of matrices, and the
// products and triangles that their gradients are written in.
#pragma once

#include <algorithm>

#include "functional/linalg.h"
#include "functional/matmul.h"
#include "functional/triangle.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"
#include "ops/term.h"

namespace oneflow_lite {

// The shape of what each matrix of `like` becomes: the batch dims and then these.
inline Shape PerMatrix(const Shape& like, std::initializer_list<int64_t> dims) {
  Shape shape(absl::MakeConstSpan(like.begin(), like.end() - 2));
  shape.dims().insert(shape.dims().end(), dims);
  return shape;
}
inline int64_t Rows(const Shape& s) { return s[s.ndim() - 2]; }
inline int64_t Columns(const Shape& s) { return s[s.ndim() - 1]; }

// Refuses an input that is no batch of matrices of float32 or float64, or, where square, of others.
Status CheckMatrices(const InferContext& c, int i, bool square = false);
// The same of A, square, and B with as many rows, of one dtype and batch.
Status CheckSystem(const InferContext& c, int a, int b, bool square = true);

// Sharding by the dims of the batch, and a cost of `factor` m n min(m, n) for a factorization and
// two triangles for each right side. `absent` gives the bits of the outputs that were not asked
// for: they have one dim, of size 0, and no batch.
void DefineCubic(OpDef& op, double factor, uint64_t (*absent)(const Attrs&) = nullptr);

// A term for each matrix: its transpose, products, triangles with those diagonals, diagonal.
Term Mt(const Term& a);
Term Times(const Term& a, const Term& b);
Term LowerOf(const Term& a, int64_t diagonal = 0);
Term UpperOf(const Term& a, int64_t diagonal = 0);
Term Embedded(const Term& diagonal);
Term DiagonalOf(const Term& a);
Term First(const Term& a, int64_t dim, int64_t count);
Term Unsqueezed(const Term& a, int64_t dim);
// X of A X = B, or of X A = B, for a triangular A.
Term Solved(const Term& a, const Term& b, bool upper, bool left = true, bool unit = false);
// X with A^T X = B: by the factors, or, where it is to be differentiated, from A.
Term SolvedAdjoint(const Tensor& a, const Tensor& lu, const Tensor& pivots, const Term& b);
// The gradient of A [m, n] = P L U from that of L and U within LU.
Term LuGradient(const Tensor& lu, const Tensor& pivots, const Tensor& dlu, int64_t m, int64_t n);
// f of the tensor, where there is one.
template <class F>
Term With(const Term& a, F f) {
  return !a.ok() || a.nothing() ? a : Term{f(*a.value)};
}

}  // namespace oneflow_lite
