// SPDX-License-Identifier: Apache-2.0
#include "functional/binary_math.h"
#include "functional/unary.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/output_layout.h"

namespace oneflow_lite {
namespace {

void DefineFrexp(OpDef& op) {
  op.Input("in").Output("mantissa").Output("exponent");
  op.doc =
      "Each element over a power of 2, from 1/2 up to 1 with its sign, and the power's exponent as "
      "int32.";
  op.infer = [](InferContext& c) -> Status {
    if (!IsFloating(c.dtype(0))) {
      return UnsupportedDType(c.op(), "the input", c.dtype(0), kFloatingDTypes);
    }
    c.SetOutput(0, c.shape(0), c.dtype(0));
    c.SetOutput(1, c.shape(0), DType::kInt32);
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) { return SplitAllAxesBut(-1, c, 2); };
  op.sbp_text = "split on any dim";
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(1)}; };
  op.backward = [](GradContext& c) -> Status {
    if (!c.grad(0).defined()) return OkStatus();
    OFL_ASSIGN_OR_RETURN(const Tensor down, functional::Neg(c.output(1).Detach()));
    return c.Set(0, functional::Ldexp(c.grad(0), down));
  };
}

OFL_REGISTER_OP("frexp", DefineFrexp);
const bool frexp_keeps_layout = internal::KeepLayout("frexp");

}  // namespace
}  // namespace oneflow_lite
