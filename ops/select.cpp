// SPDX-License-Identifier: Apache-2.0
//
// where: one of two elements, by a condition.
#include "functional/select.h"

#include "functional/binary.h"
#include "functional/copy.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/output_layout.h"
#include "ops/broadcast.h"

namespace oneflow_lite {
namespace {

Status InferWhere(InferContext& c) {
  if (c.dtype(0) != DType::kBool) return DTypeMismatch(c.op(), "condition", c.dtype(0), "bool");
  if (c.dtype(1) != c.dtype(2)) return DTypeMismatch(c.op(), "other", c.dtype(2), Name(c.dtype(1)));
  OFL_ASSIGN_OR_RETURN(Shape out, Broadcast(c, c.shape(0), 1, "input"));
  OFL_ASSIGN_OR_RETURN(out, Broadcast(c, out, 2, "other"));
  c.SetOutput(0, out, c.dtype(1));
  return OkStatus();
}

// The gradient where the operand was chosen, else 0.
Status WhereBackward(GradContext& c) {
  const Tensor &condition = c.input(0), &g = c.grad(0);
  for (const int i : {1, 2}) {
    if (!c.needs(i)) continue;
    OFL_ASSIGN_OR_RETURN(Tensor share, i == 1 ? functional::Where(condition, g, Scalar(0))
                                              : functional::Where(condition, Scalar(0), g));
    OFL_ASSIGN_OR_RETURN(share, functional::SumToShape(share, c.spec(i).shape));
    OFL_RETURN_IF_ERROR(c.Set(i, functional::To(share, c.spec(i).device, {})));
  }
  return OkStatus();
}

void DefineWhere(OpDef& op) {
  op.Input("condition").Input("input").Input("other").Output("out");
  op.doc = "input where the condition (bool) holds, else other.";
  op.scalar_operands = true;
  op.infer = InferWhere;
  op.sbp = BroadcastSignatures;
  op.sbp_text = kBroadcastSbpText;
  op.save = [](const Attrs&, Needs) -> SavePlan { return {.inputs = Bit(0)}; };
  op.backward = WhereBackward;
}

OFL_REGISTER_OP("where", DefineWhere);
const bool keeps_layout = internal::KeepLayout("where");

}  // namespace
}  // namespace oneflow_lite
