// SPDX-License-Identifier: Apache-2.0
//
// cumsum: running sums along the last dim, from either end.
#include "functional/scan.h"

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_expr.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

void DefineCumSum(OpDef& op) {
  op.Input("in").Output("out").Attr("reverse", AttrType::kBool, false);
  op.doc = "Running sums along the last dim, from its end where reverse.";
  op.infer = [](InferContext& c) -> Status {
    if (c.shape(0).ndim() == 0) return ShapeMismatch(c.op(), "input", c.shape(0), "at least 1 dim");
    if (c.dtype(0) == DType::kBool) {
      return UnsupportedDType(c.op(), "input", DType::kBool, "an integer or a floating dtype");
    }
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c, std::vector<SbpSignature>* out) {
    for (int d = 0; d + 1 < c.inputs[0].ndim(); ++d) {
      out->push_back({{Sbp::Split(d)}, {Sbp::Split(d)}});
    }
  };
  op.sbp_text = "split on any dim but the last";
  // An element has its part in all sums from it on.
  op.backward = [](GradContext& c) -> Status {
    static const OpExpr& cumsum =
        OpBuilder("cumsum").Input("in").Output("out").Attr("reverse").Get();
    return c.Set(0, Call(cumsum, {c.grad(0)}, {!c.attr<bool>(0)}));
  };
}

OFL_REGISTER_OP("cumsum", DefineCumSum);

}  // namespace
}  // namespace oneflow_lite
