// SPDX-License-Identifier: Apache-2.0
//
// What layer_norm and rms_norm have in common: rows x cols elements, normalised along cols.
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

// Rows of x lie x_stride elements apart (0: cols); every other tensor is dense. All pointers are
// aligned to their element only. Nothing happens where rows is 0.
struct NormShape {
  int64_t rows = 0;
  int64_t cols = 0;
  double eps = 0;
  int64_t x_stride = 0;

  int64_t stride() const { return x_stride > 0 ? x_stride : cols; }
};

// float16, bfloat16 and float32 compute in float32 (the statistics' type), float64 in float64.
struct NormSpec {
  DType dtype = DType::kFloat32;         // of x, residual, y and their gradients; a float
  DType weight_dtype = DType::kFloat32;  // of weight, bias and their gradients: dtype or float32
};

// The smallest magnitude by which a memory-efficient backward divides: a weight nearer to zero is
// replaced by it, with the weight's sign, so that gradients stay finite.
inline constexpr double kWeightClamp = 1e-5;

}  // namespace oneflow_lite
