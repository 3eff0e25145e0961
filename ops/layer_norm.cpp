// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/op_registry.h"
#include "ops/norm.h"

namespace oneflow_lite {
namespace {

void DefineLayerNorm(OpDef& op) {
  DefineNorm(op, {.centred = true});
  op.doc = "(x - mean) rstd weight + bias over the dims from axis on; rstd = 1 / sqrt(var + eps).";
}
void DefineAddLayerNorm(OpDef& op) {
  DefineNorm(op, {.centred = true, .residual = true});
  op.doc = "layer_norm of sum = x + residual, and sum.";
}
void DefineLayerNormBackward(OpDef& op) {
  DefineNormBackward(op, {.centred = true});
  op.doc =
      "Gradient of layer_norm, from x and mean or from y; dsum is added to dx. wanted: 1 for dx, 2 "
      "for dweight, 4 for dbias, or their sum; the others have no elements.";
}

OFL_REGISTER_OP("layer_norm", DefineLayerNorm);
OFL_REGISTER_OP("add_layer_norm", DefineAddLayerNorm);
OFL_REGISTER_OP("layer_norm_backward", DefineLayerNormBackward);

}  // namespace
}  // namespace oneflow_lite
