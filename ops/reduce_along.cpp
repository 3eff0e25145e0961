// SPDX-License-Identifier: Apache-2.0
//
// Extremes along one dim with their places: max, min, argmax, argmin.
#include "functional/creation.h"
#include "functional/index.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "ops/reduce.h"

namespace oneflow_lite {
namespace {

constexpr int kDim = 0;  // the other attribute is kKeepDim

Status CheckDim(const InferContext& c, const char* what) {
  const int64_t dim = c.attr<int64_t>(kDim), ndim = std::max(1, c.shape(0).ndim());
  if (dim < 0 || dim >= ndim) {
    return Error(ErrorKind::kIndex, c.op(), "(): dim ", dim, " is out of range [0, ", ndim - 1,
                 "] for shape ", c.shape(0).ToString());
  }
  const AxisSplit s = SplitAt(c.shape(0), dim);
  return CheckNotEmpty(c, s.axis, s.outer * s.inner, what);
}

Shape ShapeWithoutDim(const InferContext& c) {
  return ReducedShape(c.shape(0), {c.attr<int64_t>(kDim)}, c.attr<bool>(kKeepDim));
}

SbpSignatures SbpAlong(const SbpContext& c, int outputs) {
  SbpSignatures out;
  const int64_t dim = c.attrs.get<int64_t>(kDim);
  for (int d = 0; d < c.inputs[0].ndim(); ++d) {
    if (d == dim) continue;
    SbpSignature s{{Sbp::Split(d)}, {}};
    s.outputs.assign(outputs, Sbp::Split(c.attrs.get<bool>(kKeepDim) || d < dim ? d : d - 1));
    out.push_back(s);
  }
  return out;
}

// g goes to the place of the extreme.
Status PlaceGrad(GradContext& c) {
  if (!c.grad(0).defined()) return OkStatus();
  const Shape& shape = c.spec(0).shape;
  const int64_t dim = c.attr<int64_t>(kDim);
  if (shape.ndim() == 0) return c.Set(0, c.grad(0));
  const Shape kept = ReducedShape(shape, {dim}, true);
  OFL_ASSIGN_OR_RETURN(Tensor indices, functional::Reshape(c.output(1), kept));
  OFL_ASSIGN_OR_RETURN(Tensor g, functional::Reshape(c.grad(0), kept));
  OFL_ASSIGN_OR_RETURN(Tensor zeros, functional::Zeros(shape, g.dtype(), c.spec(0).device));
  return c.Set(0, functional::ScatterInto(zeros, dim, indices.Detach(), g));
}

template <bool kMin>
void DefineExtreme(OpDef& op) {
  op.Input("in").Output("values").Output("indices");
  op.Attr("dim", AttrType::kInt).Attr("keepdim", AttrType::kBool, false);
  op.doc = kMin ? "Minimum along one dim, and the first place where it is."
                : "Maximum along one dim, and the first place where it is.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckDim(c, kMin ? "minimum" : "maximum"));
    c.SetOutput(0, ShapeWithoutDim(c), c.dtype(0));
    c.SetOutput(1, ShapeWithoutDim(c), DType::kInt64);
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) { return SbpAlong(c, 2); };
  op.sbp_text = kSplitKept;
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(1)}; };
  op.backward = PlaceGrad;
}

template <bool kMin>
void DefinePlace(OpDef& op) {
  op.Input("in").Output("indices");
  op.Attr("dim", AttrType::kInt).Attr("keepdim", AttrType::kBool, false);
  op.doc = kMin ? "The first place of the minimum along one dim."
                : "The first place of the maximum along one dim.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckDim(c, kMin ? "minimum" : "maximum"));
    c.SetOutput(0, ShapeWithoutDim(c), DType::kInt64);
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) { return SbpAlong(c, 1); };
  op.sbp_text = kSplitKept;
}

OFL_REGISTER_OP("max", DefineExtreme<false>);
OFL_REGISTER_OP("min", DefineExtreme<true>);
OFL_REGISTER_OP("argmax", DefinePlace<false>);
OFL_REGISTER_OP("argmin", DefinePlace<true>);

}  // namespace
}  // namespace oneflow_lite
