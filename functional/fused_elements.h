// SPDX-License-Identifier: Apache-2.0
//
// An expression of one element over tensors, in one pass over memory.
//
//   OFL_ASSIGN_OR_RETURN(TensorList y, FuseElements("x, y: x * sigmoid(y)", {x, y}));
#pragma once

#include "absl/strings/string_view.h"
#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

// The results of an expression, whose text is the body of a Python lambda (core/expression.h):
// parameters, a colon, assignments that end in semicolons, one result or more. The operands, for
// each parameter one, broadcast against each other, and every result has the shape of all; dtypes
// are promoted as by the functions one after the other, but what is computed is rounded to 16-bit
// floats at the end only. CUDA compiles the expression with NVRTC when it is first called.
// OverflowError for an integer of the text that does not fit the integers beside it.
OFL_API StatusOr<TensorList> FuseElements(absl::string_view expression,
                                          absl::Span<const Operand> operands);
// The same of tensors, of which those whose bits are in `numbers` are 0-dim and stand for numbers:
// they change a dtype only where their kind is higher.
OFL_API StatusOr<TensorList> FuseElementsOf(absl::string_view expression,
                                            absl::Span<const Tensor> tensors, int64_t numbers = 0);

}  // namespace oneflow_lite::functional
