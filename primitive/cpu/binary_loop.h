// SPDX-License-Identifier: Apache-2.0
//
// Loops over two operands of the compute type, and where to find them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cpu/dense_operand.h"
#include "primitive/op_kinds.h"

namespace oneflow_lite {

// out may be a or b.
using BinaryLoop = void (*)(int64_t n, const void* a, const void* b, void* out);

// An operand in which arithmetic wraps around instead of overflowing: unsigned, and at least as
// wide as int, to which C++ would promote it.
template <class T>
constexpr auto Raw(T v) {
  if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T>)
    return v;
  else if constexpr (sizeof(T) == 8)
    return static_cast<uint64_t>(v);
  else
    return static_cast<uint32_t>(v);
}

// The loop over the compute type of `dtype`, of the families that have files of their own; null
// where the op is of another family, or has no code for the dtype.
BinaryLoop FindDivision(BinaryOp op, DType dtype);
BinaryLoop FindBinaryMath(BinaryOp op, DType dtype);

// Rows of `cols` elements; those of out lie `out_row` apart. out may be an operand.
using DenseBinaryLoop = void (*)(int64_t rows, int64_t cols, const DenseOperand& a,
                                 const DenseOperand& b, void* out, int64_t out_row);
// The loop over floats as they lie; null for other dtypes, and for functions whose arithmetic
// outweighs the conversion.
DenseBinaryLoop FindDenseBinary(BinaryOp op, DType dtype);

}  // namespace oneflow_lite
