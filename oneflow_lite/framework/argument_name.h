// SPDX-License-Identifier: Apache-2.0
//
// What error messages call the inputs of an op.
#pragma once

#include <string>

#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

// Input i as the user knows it: by the function of the op's name, where there is one.
std::string ArgumentName(const OpDef& op, size_t i);

}  // namespace oneflow_lite
