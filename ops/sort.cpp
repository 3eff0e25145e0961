// SPDX-License-Identifier: Apache-2.0
//
// sort: along the last dim, with the places the elements came from.
#include "functional/sort.h"

#include "functional/creation.h"
#include "functional/index.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

void DefineSort(OpDef& op) {
  op.Input("in").Output("values").Output("indices");
  op.Attr("descending", AttrType::kBool, false);
  op.doc = "The elements in order along the last dim, and their places; equal ones keep theirs.";
  op.infer = [](InferContext& c) -> Status {
    if (c.shape(0).ndim() == 0) return ShapeMismatch(c.op(), "input", c.shape(0), "at least 1 dim");
    c.SetOutput(0, c.shape(0), c.dtype(0));
    c.SetOutput(1, c.shape(0), DType::kInt64);
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c, std::vector<SbpSignature>* out) {
    for (int d = 0; d + 1 < c.inputs[0].ndim(); ++d) {
      out->push_back({{Sbp::Split(d)}, {Sbp::Split(d), Sbp::Split(d)}});
    }
  };
  op.sbp_text = "split on any dim but the last";
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(1)}; };
  op.backward = [](GradContext& c) -> Status {
    if (!c.grad(0).defined()) return OkStatus();
    OFL_ASSIGN_OR_RETURN(Tensor zeros,
                         functional::Zeros(c.spec(0).shape, c.grad(0).dtype(), c.spec(0).device));
    return c.Set(0, functional::ScatterInto(zeros, -1, c.output(1).Detach(), c.grad(0)));
  };
}

OFL_REGISTER_OP("sort", DefineSort);

}  // namespace
}  // namespace oneflow_lite
