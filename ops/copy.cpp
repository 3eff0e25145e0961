// SPDX-License-Identifier: Apache-2.0
//
// cast (also the contiguous copy), copy_ and to_device.
#include "functional/copy.h"

#include "functional/creation.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

void DefineCast(OpDef& op) {
  op.Input("in").Output("out").Attr("dtype", AttrType::kDType);
  op.doc = "A contiguous copy in the given dtype.";
  op.infer = [](InferContext& c) -> Status {
    c.SetOutput(0, c.shape(0), c.attr<DType>(0));
    return OkStatus();
  };
  op.sbp = SplitAllAxes;
  op.sbp_text = "split on any dim";
  op.backward = [](GradContext& c) -> Status {
    return c.Set(0, functional::Cast(c.grad(0), c.spec(0).dtype));
  };
}

void DefineCopyInto(OpDef& op) {
  op.Input("self", InputDef::Kind::kMutated).Input("src").Output("out");
  op.doc = "Overwrites self with src, of the same shape and dtype.";
  op.infer = [](InferContext& c) -> Status {
    if (c.shape(1) != c.shape(0)) {
      return ShapeMismatch(c.op(), "src", c.shape(1), c.shape(0).ToString());
    }
    if (c.dtype(1) != c.dtype(0)) return DTypeMismatch(c.op(), "src", c.dtype(1), Name(c.dtype(0)));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = SplitAllAxes;
  op.sbp_text = "split on any dim";
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    const double n = static_cast<double>(c.shape(0).numel());
    return Cost{.bytes = 2 * n * SizeOf(c.dtype(0)), .flops = n};
  };
  op.cost_text = "src is read once, self written once; one operation per element";
  op.backward = [](GradContext& c) -> Status {  // nothing of the old value remains
    return c.needs(1) ? c.Set(1, c.grad(0)) : OkStatus();
  };
}

void DefineToDevice(OpDef& op) {
  op.Input("in").Output("out").Attr("device", AttrType::kDevice);
  op.doc = "A copy on another device.";
  op.infer = [](InferContext& c) -> Status {
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.backward = [](GradContext& c) -> Status {
    return c.Set(0, functional::To(c.grad(0), c.spec(0).device, {}));
  };
}

OFL_REGISTER_OP("cast", DefineCast);
OFL_REGISTER_OP("copy_", DefineCopyInto);
OFL_REGISTER_OP("to_device", DefineToDevice);

}  // namespace
}  // namespace oneflow_lite
