// SPDX-License-Identifier: Apache-2.0
//
// What error messages call the inputs of an op, and the arguments of a function.
#pragma once

#include <string>

#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

struct FunctionSchema;

// Input i as the user knows it: by the function of the op's name, where there is one.
std::string ArgumentName(const OpDef& op, size_t i);

// The error in the words of the function that was called: under its name, and of an argument that
// another function of the same functor calls otherwise, "A" of linalg_det, by the name it has here.
OFL_API Status InWordsOf(const FunctionSchema& function, const Status& s);

}  // namespace oneflow_lite
