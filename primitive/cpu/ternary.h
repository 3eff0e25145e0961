// SPDX-License-Identifier: Apache-2.0
//
// Loops over three operands of floats as they lie in memory, and where to find them.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cpu/dense_operand.h"
#include "primitive/op_kinds.h"

namespace oneflow_lite {

// `number`: the one that TernaryNumbers has for the function. out may be an operand.
using DenseTernaryLoop = void (*)(int64_t n, const DenseOperand (&in)[3], double number, void* out);
// Null for functions whose arithmetic outweighs the conversion, and for integers. That of kClamp
// wants bounds other than NaN.
DenseTernaryLoop FindDenseTernary(TernaryOp op, DType dtype);

}  // namespace oneflow_lite
