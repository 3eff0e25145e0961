// SPDX-License-Identifier: Apache-2.0
//
// How functors call the ops that reduce: any dims, in any order, of which the ops take neighbours.
#pragma once

#include <optional>
#include <string>

#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {

// Sorted, non-negative dims; all where none are given. IndexError for one that is out of range,
// ValueError for one that is named twice.
StatusOr<Dims> WrapDims(const char* name, const Tensor& x, const std::optional<Dims>& dims);

// The op of that name, whose attributes are dims, keepdim and those of `more`.
const OpExpr& ReduceExpr(const char* op, std::initializer_list<const char*> outputs = {"out"},
                         std::initializer_list<const char*> more = {});

// Calls it; dims that are no neighbours are brought to the end first. `more`: the other attributes.
StatusOr<TensorList> CallReduceAll(const OpExpr& op, const Tensor& x, const Dims& dims,
                                   bool keepdim, std::initializer_list<AttrValue> more = {});
StatusOr<Tensor> CallReduce(const OpExpr& op, const Tensor& x, const Dims& dims, bool keepdim,
                            std::initializer_list<AttrValue> more = {});

}  // namespace oneflow_lite::functional
