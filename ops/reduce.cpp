// SPDX-License-Identifier: Apache-2.0
//
// Reductions over a run of neighbouring dims: sum, mean, amax; and along one dim: max with its
// places, argmax.
#include "functional/reduce.h"

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

using functional::Mul;

constexpr int kDims = 0, kKeepDim = 1;  // the attributes
constexpr char kSplitKept[] = "split on a dim that is kept";

Shape ReducedShape(const Shape& in, const Dims& dims, bool keepdim) {
  Shape out;
  for (int d = 0; d < in.ndim(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (!reduced)
      out.dims().push_back(in[d]);
    else if (keepdim)
      out.dims().push_back(1);
  }
  return out;
}

Status CheckDims(const InferContext& c) {
  const Dims& dims = c.attr<Dims>(kDims);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= c.shape(0).ndim() || (i > 0 && dims[i] != dims[i - 1] + 1)) {
      return Error(ErrorKind::kIndex, c.op(), "(): dims ", ToString(dims),
                   " are not neighbouring dims of shape ", c.shape(0).ToString());
    }
  }
  return OkStatus();
}

Status Infer(InferContext& c, DType out) {
  OFL_RETURN_IF_ERROR(CheckDims(c));
  c.SetOutput(0, ReducedShape(c.shape(0), c.attr<Dims>(kDims), c.attr<bool>(kKeepDim)), out);
  return OkStatus();
}

// A kept dim may be split; for sums, a reduced one gives partial sums.
void Signatures(const SbpContext& c, std::vector<SbpSignature>* out, bool partial) {
  const Dims& dims = c.attrs.get<Dims>(kDims);
  int kept = 0;
  for (int d = 0; d < c.inputs[0].ndim(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (!reduced)
      out->push_back({{Sbp::Split(d)}, {Sbp::Split(c.attrs.get<bool>(kKeepDim) ? d : kept)}});
    else if (partial)
      out->push_back({{Sbp::Split(d)}, {Sbp::PartialSum()}});
    kept += !reduced;
  }
}

// g with the reduced dims back as size 1.
StatusOr<Tensor> KeepDims(const GradContext& c, const Tensor& g) {
  return functional::Reshape(g, ReducedShape(c.spec(0).shape, c.attr<Dims>(kDims), true));
}

void DefineReduce(OpDef& op) {
  op.Input("in")
      .Output("out")
      .Attr("dims", AttrType::kInts)
      .Attr("keepdim", AttrType::kBool, false);
}

void DefineSum(OpDef& op) {
  DefineReduce(op);
  op.doc = "Sum over neighbouring dims.";
  op.infer = [](InferContext& c) -> Status {
    return Infer(c, IsFloating(c.dtype(0)) ? c.dtype(0) : DType::kInt64);
  };
  op.sbp = [](const SbpContext& c, std::vector<SbpSignature>* out) { Signatures(c, out, true); };
  op.sbp_text = "split on a dim that is kept; on a reduced one for partial sums";
  op.backward = [](GradContext& c) -> Status {
    OFL_ASSIGN_OR_RETURN(Tensor g, KeepDims(c, c.grad(0)));
    return c.Set(0, functional::Expand(g, c.spec(0).shape));
  };
}

void DefineMean(OpDef& op) {
  DefineReduce(op);
  op.doc = "Mean over neighbouring dims.";
  op.infer = [](InferContext& c) -> Status {
    if (!IsFloating(c.dtype(0))) {
      return UnsupportedDType(c.op(), "the input", c.dtype(0), kFloatingDTypes);
    }
    return Infer(c, c.dtype(0));
  };
  op.sbp = [](const SbpContext& c, std::vector<SbpSignature>* out) { Signatures(c, out, false); };
  op.sbp_text = kSplitKept;
  op.backward = [](GradContext& c) -> Status {
    double n = 1;
    for (int64_t d : c.attr<Dims>(kDims)) n *= static_cast<double>(c.spec(0).shape[d]);
    OFL_ASSIGN_OR_RETURN(Tensor g, KeepDims(c, c.grad(0)));
    OFL_ASSIGN_OR_RETURN(Tensor scaled, functional::Div(g, Scalar(n)));
    return c.Set(0, functional::Expand(scaled, c.spec(0).shape));
  };
}

Status CheckNotEmpty(const InferContext& c, int64_t reduced, int64_t outputs) {
  if (reduced > 0 || outputs == 0) return OkStatus();
  return Error(ErrorKind::kIndex, c.op(), "(): there is no maximum of no elements: shape ",
               c.shape(0).ToString());
}

// The gradient goes to the maxima, in equal parts where there are several.
void DefineAmax(OpDef& op) {
  DefineReduce(op);
  op.doc = "Maximum over neighbouring dims; NaN wins.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(Infer(c, c.dtype(0)));
    int64_t reduced = 1;
    for (int64_t d : c.attr<Dims>(kDims)) reduced *= c.shape(0)[d];
    return CheckNotEmpty(c, reduced, ReducedShape(c.shape(0), c.attr<Dims>(kDims), false).numel());
  };
  op.sbp = [](const SbpContext& c, std::vector<SbpSignature>* out) { Signatures(c, out, false); };
  op.sbp_text = kSplitKept;
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(0), .outputs = Bit(0)}; };
  op.backward = [](GradContext& c) -> Status {
    OFL_ASSIGN_OR_RETURN(Tensor top, KeepDims(c, c.output(0).Detach()));
    OFL_ASSIGN_OR_RETURN(Tensor hit, functional::Eq(c.input(0).Detach(), top));
    OFL_ASSIGN_OR_RETURN(Tensor mask, functional::Cast(hit, c.grad(0).dtype()));
    OFL_ASSIGN_OR_RETURN(Tensor count, functional::Sum(mask, c.attr<Dims>(kDims), true));
    OFL_ASSIGN_OR_RETURN(Tensor g, KeepDims(c, c.grad(0)));
    OFL_ASSIGN_OR_RETURN(Tensor share, functional::Div(g, count));
    return c.Set(0, Mul(mask, share));
  };
}

constexpr int kExtremeDim = 0;  // of max and argmax

Status CheckDim(const InferContext& c) {
  const int64_t dim = c.attr<int64_t>(kExtremeDim), ndim = std::max(1, c.shape(0).ndim());
  if (dim < 0 || dim >= ndim) {
    return Error(ErrorKind::kIndex, c.op(), "(): dim ", dim, " is out of range [0, ", ndim - 1,
                 "] for shape ", c.shape(0).ToString());
  }
  const AxisSplit s = SplitAt(c.shape(0), dim);
  return CheckNotEmpty(c, s.axis, s.outer * s.inner);
}

Shape ShapeWithoutDim(const InferContext& c) {
  return ReducedShape(c.shape(0), {c.attr<int64_t>(kExtremeDim)}, c.attr<bool>(kKeepDim));
}

void SbpAlong(const SbpContext& c, std::vector<SbpSignature>* out, int outputs) {
  const int64_t dim = c.attrs.get<int64_t>(kExtremeDim);
  for (int d = 0; d < c.inputs[0].ndim(); ++d) {
    if (d == dim) continue;
    SbpSignature s{{Sbp::Split(d)}, {}};
    s.outputs.assign(outputs, Sbp::Split(c.attrs.get<bool>(kKeepDim) || d < dim ? d : d - 1));
    out->push_back(s);
  }
}

void DefineMax(OpDef& op) {
  op.Input("in").Output("values").Output("indices");
  op.Attr("dim", AttrType::kInt).Attr("keepdim", AttrType::kBool, false);
  op.doc = "Maximum along one dim, and the first place where it is.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckDim(c));
    c.SetOutput(0, ShapeWithoutDim(c), c.dtype(0));
    c.SetOutput(1, ShapeWithoutDim(c), DType::kInt64);
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c, std::vector<SbpSignature>* out) { SbpAlong(c, out, 2); };
  op.sbp_text = kSplitKept;
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(1)}; };
  // g goes to the place of the maximum: where a count along the dim equals the index.
  op.backward = [](GradContext& c) -> Status {
    if (!c.grad(0).defined()) return OkStatus();
    const Shape& shape = c.spec(0).shape;
    const int64_t dim = c.attr<int64_t>(kExtremeDim);
    if (shape.ndim() == 0) return c.Set(0, c.grad(0));
    const Shape kept = ReducedShape(shape, {dim}, true);
    OFL_ASSIGN_OR_RETURN(Tensor indices, functional::Reshape(c.output(1), kept));
    OFL_ASSIGN_OR_RETURN(Tensor g, functional::Reshape(c.grad(0), kept));
    Shape along(Dims(shape.ndim(), 1));
    along[dim] = shape[dim];
    OFL_ASSIGN_OR_RETURN(Tensor count, functional::Arange(Scalar(0), Scalar(shape[dim]), {},
                                                          DType::kInt64, c.spec(0).device));
    OFL_ASSIGN_OR_RETURN(count, functional::Reshape(count, along));
    OFL_ASSIGN_OR_RETURN(Tensor hit, functional::Eq(count, indices));
    OFL_ASSIGN_OR_RETURN(Tensor mask, functional::Cast(hit, g.dtype()));
    return c.Set(0, Mul(mask, g));
  };
}

void DefineArgMax(OpDef& op) {
  op.Input("in").Output("indices");
  op.Attr("dim", AttrType::kInt).Attr("keepdim", AttrType::kBool, false);
  op.doc = "The first place of the maximum along one dim.";
  op.differentiable = false;
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckDim(c));
    c.SetOutput(0, ShapeWithoutDim(c), DType::kInt64);
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c, std::vector<SbpSignature>* out) { SbpAlong(c, out, 1); };
  op.sbp_text = kSplitKept;
}

OFL_REGISTER_OP("sum", DefineSum);
OFL_REGISTER_OP("mean", DefineMean);
OFL_REGISTER_OP("amax", DefineAmax);
OFL_REGISTER_OP("max", DefineMax);
OFL_REGISTER_OP("argmax", DefineArgMax);

}  // namespace
}  // namespace oneflow_lite
