// SPDX-License-Identifier: Apache-2.0
//
// What ops share that pick elements along the last dim by their order: output 0 has the elements,
// output 1 their places, to which the gradients go back.
#pragma once

#include "functional/creation.h"
#include "functional/index.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

inline Status CheckHasLastDim(const InferContext& c, const char* argument = "input") {
  if (c.shape(0).ndim() > 0) return OkStatus();
  return ShapeMismatch(c.op(), argument, c.shape(0), "at least 1 dim");
}

// Of an op of one input. All outputs keep the dims but the last.
inline void SplitButLast(OpDef& op) {
  op.sbp = [outputs = op.outputs.size()](const SbpContext& c) {
    SbpSignatures out;
    for (int d = 0; d + 1 < c.inputs[0].ndim(); ++d) {
      SbpSignature s{{Sbp::Split(d)}, {}};
      s.outputs.assign(outputs, Sbp::Split(d));
      out.push_back(s);
    }
    return out;
  };
  op.sbp_text = "split on any dim but the last";
}

// The gradient. Where the op keeps no last dim, it is put back.
inline void TakeFromPlaces(OpDef& op, bool keeps_dim) {
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(1)}; };
  op.backward = [keeps_dim](GradContext& c) -> Status {
    if (!c.grad(0).defined()) return OkStatus();
    Tensor dy = c.grad(0), places = c.output(1).Detach();
    if (!keeps_dim) {
      OFL_ASSIGN_OR_RETURN(dy, functional::Unsqueeze(dy, -1));
      OFL_ASSIGN_OR_RETURN(places, functional::Unsqueeze(places, -1));
    }
    OFL_ASSIGN_OR_RETURN(Tensor zeros,
                         functional::Zeros(c.spec(0).shape, dy.dtype(), c.spec(0).device));
    return c.Set(0, functional::ScatterInto(zeros, -1, places, dy));
  };
}

}  // namespace oneflow_lite
