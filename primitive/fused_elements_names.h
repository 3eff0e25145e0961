// SPDX-License-Identifier: Apache-2.0
//
// The functions of expressions as they are called on CUDA.
#pragma once

#include <string>
#include <vector>

#include "oneflow_lite/core/expression.h"

namespace oneflow_lite {

// The call of a function of operands that are floats, or integers and bool.
std::string FusedCall(ElementFn fn, bool floating, const std::vector<std::string>& args);

}  // namespace oneflow_lite
