// SPDX-License-Identifier: Apache-2.0
//
// An op as a function: its inputs, then its attributes, as arguments. flow.ops.<namespace>.<name>
// is made of this, in tree or out of it.
#pragma once

#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite {

// Built at the first call and kept with the op; lives forever.
OFL_API const FunctionSchema& FunctionOf(const OpExpr& op);

// The arguments of that function as the op takes them; an absent input is undefined.
struct OpArguments {
  absl::InlinedVector<Tensor, 4> inputs;
  Attrs attrs;
};
OFL_API OpArguments SplitArguments(const OpExpr& op, absl::Span<Value> args);
OFL_API Value ToValue(const AttrValue& attr);

}  // namespace oneflow_lite
