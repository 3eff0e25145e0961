// SPDX-License-Identifier: Apache-2.0
//
// The form of an op that overwrites its first input.
//
//   OFL_REGISTER_OP("triangle", DefineTriangle);
//   OFL_REGISTER_OP("triangle_", DefineInPlace<DefineTriangle>);
#pragma once

#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

// Makes an op overwrite its first input, which is called `self` then.
inline void Overwrite(OpDef& op) { op.inputs[0] = {"self", InputDef::Kind::kMutated}; }

template <void (*kDefine)(OpDef&)>
void DefineInPlace(OpDef& op) {
  kDefine(op);
  Overwrite(op);
}

}  // namespace oneflow_lite
