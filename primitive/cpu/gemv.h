// SPDX-License-Identifier: Apache-2.0
//
// Products of a matrix and a vector: each element of the matrix is read once, as it lies, so that
// the pace is the memory's.
//
//   const GemvLoops loops = FindGemv(dtype);
//   loops.rows(rows, cols, matrix, ld, v, out);     // out[r] += the sum of matrix[r][c] v[c]
//   loops.columns(rows, cols, matrix, ld, v, out);  // out[c] += the sum of matrix[r][c] v[r]
#pragma once

#include <cstdint>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {

// The matrix is of the dtype, with rows `ld` elements apart; v and out are of its compute type.
// What an element of the result is does not depend on the others that are computed with it.
using GemvLoop = void (*)(int64_t rows, int64_t cols, const void* matrix, int64_t ld, const void* v,
                          void* out);
struct GemvLoops {
  GemvLoop rows, columns;
  GemvLoop one_row;  // of a matrix that has no other
};
// Of a floating dtype.
GemvLoops FindGemv(DType dtype);

}  // namespace oneflow_lite
