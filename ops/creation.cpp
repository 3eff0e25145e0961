// SPDX-License-Identifier: Apache-2.0
//
// full, arange, linspace and fill_.
#include "functional/creation.h"

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

Status CheckSize(const InferContext& c, const Dims& shape) {
  for (int64_t d : shape) {
    if (d < 0) return BadValue(c.op(), "the size", ToString(shape), "a list of non-negative dims");
  }
  if (shape.size() > 16) {
    return BadValue(c.op(), "the size", ToString(shape), "a list of at most 16 dims");
  }
  return OkStatus();
}

void DefineFull(OpDef& op) {
  op.Output("out").Attr("shape", AttrType::kInts).Attr("value", AttrType::kScalar);
  op.Attr("dtype", AttrType::kDType).Attr("device", AttrType::kDevice, Device{});
  op.doc = "A tensor filled with a number.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckSize(c, c.attr<Dims>(0)));
    c.SetOutput(0, Shape(c.attr<Dims>(0)), c.attr<DType>(2));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    for (size_t d = 0; d < c.attrs.get<Dims>(0).size(); ++d) {
      out.emplace_back().outputs.push_back(Sbp::Split(static_cast<int>(d)));
    }
    return out;
  };
  op.sbp_text = "the result split on any dim";
  op.infer_physical = [](PhysicalContext& c) -> Status {
    c.attrs[0] = c.OutputShape(0).dims();
    return OkStatus();
  };
}

// Of so many numbers (attribute 0) of a dtype (attribute 3).
Status InferSequence(InferContext& c) {
  OFL_RETURN_IF_ERROR(CheckSize(c, {c.attr<int64_t>(0)}));
  if (c.attr<DType>(3) == DType::kBool) {
    return UnsupportedDType(c.op(), "the result", DType::kBool, "an integer or a floating dtype");
  }
  c.SetOutput(0, Shape{c.attr<int64_t>(0)}, c.attr<DType>(3));
  return OkStatus();
}

void DefineArange(OpDef& op) {
  op.Output("out").Attr("count", AttrType::kInt).Attr("start", AttrType::kScalar);
  op.Attr("step", AttrType::kScalar).Attr("dtype", AttrType::kDType);
  op.Attr("device", AttrType::kDevice, Device{});
  op.doc = "start + i * step for i in 0 .. count - 1.";
  op.infer = InferSequence;
}

void DefineLinspace(OpDef& op) {
  op.Output("out").Attr("count", AttrType::kInt).Attr("start", AttrType::kFloat);
  op.Attr("end", AttrType::kFloat).Attr("dtype", AttrType::kDType);
  op.Attr("device", AttrType::kDevice, Device{});
  op.doc = "count numbers from start to end, both included, equally far apart.";
  op.infer = InferSequence;
}

void DefineFillInto(OpDef& op) {
  op.Input("self", InputDef::Kind::kMutated).Output("out").Attr("value", AttrType::kScalar);
  op.doc = "Overwrites every element with a number.";
  op.infer = [](InferContext& c) -> Status {
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = SplitAllAxes;
  op.sbp_text = "split on any dim";
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    const double n = static_cast<double>(c.shape(0).numel());
    return Cost{.bytes = n * SizeOf(c.dtype(0)), .flops = n};
  };
  op.cost_text = "self is written once; one operation per element";
  op.backward = [](GradContext&) -> Status { return OkStatus(); };  // nothing of self remains
}

OFL_REGISTER_OP("full", DefineFull);
OFL_REGISTER_OP("arange", DefineArange);
OFL_REGISTER_OP("linspace", DefineLinspace);
OFL_REGISTER_OP("fill_", DefineFillInto);

}  // namespace
}  // namespace oneflow_lite
