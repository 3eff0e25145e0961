// SPDX-License-Identifier: Apache-2.0
//
// Products of a matrix and a vector, or of two vectors: each element of the matrix is read once, as
// it lies, so that the pace is the memory's.
//
//   const GemvLoops loops = FindGemv(dtype);
//   loops.rows(rows, cols, matrix, ld, v, out);     // out[r] += the sum of matrix[r][c] v[c]
//   loops.columns(rows, cols, matrix, ld, v, out);  // out[c] += the sum of matrix[r][c] v[r]
//   loops.dot(n, x, y, sum);                        // *sum += the sum of x[i] y[i]
#pragma once

#include <cstdint>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {

// The matrix is of the dtype, with rows `ld` elements apart; v and out are of its compute type.
// What an element of the result is does not depend on the others that are computed with it.
using GemvLoop = void (*)(int64_t rows, int64_t cols, const void* matrix, int64_t ld, const void* v,
                          void* out);
// x and y are of the dtype, the sum is of its compute type.
using DotLoop = void (*)(int64_t n, const void* x, const void* y, void* sum);
struct GemvLoops {
  GemvLoop rows, columns;
  DotLoop dot;
};
// Of a floating dtype.
GemvLoops FindGemv(DType dtype);

}  // namespace oneflow_lite
