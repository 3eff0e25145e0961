// SPDX-License-Identifier: Apache-2.0
//
// What the functors of linear algebra share: checks under the user's name of the function, and
// LAPACK's info as an error.
#pragma once

#include "oneflow_lite/core/linalg_error.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite::functional {

inline constexpr char kWideDTypes[] = "float32 or float64";

// ShapeError for less than 2 dims, and, where square, for other matrices; DTypeError for dtypes
// other than float32 and float64.
Status CheckMatrix(const char* name, const char* argument, const Tensor& a, bool square = false);
// Of two operands: one dtype.
Status CheckSameDType(const char* name, const Tensor& a, const char* argument, const Tensor& b);
// The batch dims, without the matrix.
Dims BatchOf(const Tensor& a);
// a and b with one batch.
Status BroadcastBatches(const char* name, Tensor* a, Tensor* b);

// kLinAlgError for the first matrix whose info is not 0: "linalg.inv(): (Batch element 1): " and
// `problem`, in which "{}" stands for info. Nothing on meta and on ranks without a.
Status CheckInfo(const char* name, const Tensor& info, absl::string_view problem);

}  // namespace oneflow_lite::functional
