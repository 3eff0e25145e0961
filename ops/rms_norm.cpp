// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/op_registry.h"
#include "ops/norm.h"

namespace oneflow_lite {
namespace {

void DefineRmsNorm(OpDef& op) {
  DefineNorm(op, {.centred = false});
  op.doc = "x rstd weight over the dims from axis on; rstd = 1 / sqrt(mean(x^2) + eps).";
}
void DefineAddRmsNorm(OpDef& op) {
  DefineNorm(op, {.centred = false, .residual = true});
  op.doc = "rms_norm of sum = x + residual, and sum.";
}
void DefineRmsNormBackward(OpDef& op) {
  DefineNormBackward(op, {.centred = false});
  op.doc =
      "Gradient of rms_norm, from x or from y; dsum is added to dx. wanted: 1 for dx, 2 for "
      "dweight, or their sum; the other has no elements.";
}

OFL_REGISTER_OP("rms_norm", DefineRmsNorm);
OFL_REGISTER_OP("add_rms_norm", DefineAddRmsNorm);
OFL_REGISTER_OP("rms_norm_backward", DefineRmsNormBackward);

}  // namespace
}  // namespace oneflow_lite
