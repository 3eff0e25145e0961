// SPDX-License-Identifier: Apache-2.0
//
// Both gradients of an op of two operands in one pass: a map that sums as well. Where b is repeated
// along dims of a, db is summed as it is computed, so that its terms are never written.
#pragma once

#include "absl/strings/string_view.h"
#include "oneflow_lite/framework/autograd.h"

namespace oneflow_lite {

// Sets both gradients of "mul" or "prelu" and says so, where one pass takes the operands: both
// gradients are wanted and not differentiated in turn; tensors are local, of one dtype, contiguous
// and not empty; one operand has the result's shape, the other too, or some neighbouring dims of
// it. Else sets nothing.
StatusOr<bool> SetBothGradients(absl::string_view op, GradContext& c);

}  // namespace oneflow_lite
