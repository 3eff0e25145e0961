// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax over one axis, and their gradients as ops of their own, so that the
// gradient can be differentiated again.
#include "functional/softmax.h"

#include "functional/copy.h"
#include "functional/unary.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"
#include "ops/term.h"

namespace oneflow_lite {
namespace {

using functional::LogSoftmaxBackward;
using functional::SoftmaxBackward;

constexpr int kAxis = 0, kOutDType = 1;  // the attributes

// Every input alike in shape and dtype, floating; the axis within the dims.
Status InferLikeInput(InferContext& c) {
  const Shape& shape = c.shape(0);
  if (!IsFloating(c.dtype(0))) {
    return UnsupportedDType(c.op(), "the input", c.dtype(0), kFloatingDTypes);
  }
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.shape(i) != shape) return ShapeMismatch(c.op(), "dy", c.shape(i), shape.ToString());
    if (c.dtype(i) != c.dtype(0)) return DTypeMismatch(c.op(), "dy", c.dtype(i), Name(c.dtype(0)));
  }
  const int64_t axis = c.attr<int64_t>(kAxis);
  const int64_t ndim = std::max(1, shape.ndim());
  if (axis < 0 || axis >= ndim) {
    return Error(ErrorKind::kIndex, c.op(), "(): axis ", axis, " is out of range [0, ", ndim - 1,
                 "] for shape ", shape.ToString());
  }
  c.SetOutput(0, shape, c.dtype(0));
  return OkStatus();
}

constexpr char kSoftmaxSbpText[] = "every tensor split on any dim but the axis";
SbpSignatures SoftmaxSignatures(const SbpContext& c) {
  return SplitAllAxesBut(static_cast<int>(c.attrs.get<int64_t>(kAxis)), c);
}

// As InferLikeInput, in out_dtype where that is given: float32 for a float of 16 bits.
Status InferSoftmax(InferContext& c) {
  OFL_RETURN_IF_ERROR(InferLikeInput(c));
  if (!c.attrs().has(kOutDType)) return OkStatus();
  const DType from = c.dtype(0), to = c.attr<DType>(kOutDType);
  if (to != from && (to != DType::kFloat32 || ComputeType(from) != to)) {
    return Error(ErrorKind::kDType, c.op(), "(): out_dtype is ", Name(to), " beside an input of ",
                 Name(from), ", but only a result of 16-bit floats has another dtype: float32");
  }
  c.SetOutput(0, c.shape(0), to);
  return OkStatus();
}

// Forward: one read, one write; subtract, exp, add, scale: about 5 operations per element.
Cost ForwardCost(const InferContext& c, absl::Span<const TensorSpec> outputs) {
  const double n = static_cast<double>(c.shape(0).numel());
  return {.bytes = n * (SizeOf(c.dtype(0)) + SizeOf(outputs[0].dtype)), .flops = 5 * n};
}
Cost BackwardCost(const InferContext& c, absl::Span<const TensorSpec>) {
  const double n = static_cast<double>(c.shape(0).numel());
  return {.bytes = 3 * n * SizeOf(c.dtype(0)), .flops = 4 * n};
}

// The gradient is in the result's dtype, and is cast to the input's.
template <StatusOr<Tensor> (*kBackward)(const Tensor&, const Tensor&, int64_t)>
void DefineSoftmaxForward(OpDef& op) {
  op.Input("in").Output("out").Attr("axis", AttrType::kInt);
  op.OptionalAttr("out_dtype", AttrType::kDType);
  op.infer = InferSoftmax;
  op.sbp = SoftmaxSignatures;
  op.sbp_text = kSoftmaxSbpText;
  op.cost = ForwardCost;
  op.cost_text = "in is read once, out written once; 5 operations per element";
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(0)}; };
  op.backward = [](GradContext& c) -> Status {
    OFL_ASSIGN_OR_RETURN(Tensor dx, kBackward(c.output(0), c.grad(0), c.attr<int64_t>(kAxis)));
    if (dx.dtype() == c.spec(0).dtype) return c.Set(0, std::move(dx));
    return c.Set(0, functional::Cast(dx, c.spec(0).dtype));
  };
}

void DefineLikeSoftmaxBackward(OpDef& op) {
  op.Input("y").Input("dy").Output("dx").Attr("axis", AttrType::kInt);
  op.infer = InferLikeInput;
  op.sbp = SoftmaxSignatures;
  op.sbp_text = kSoftmaxSbpText;
  op.cost = BackwardCost;
  op.cost_text = "y and dy are read once, dx written once; 4 operations per element";
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(0) | Bit(1)}; };
}

void DefineSoftmax(OpDef& op) {
  DefineSoftmaxForward<SoftmaxBackward>(op);
  op.doc =
      "Softmax over one axis: exp(x - max) / sum exp(x - max). Of 16-bit floats also as float32.";
}

void DefineLogSoftmax(OpDef& op) {
  DefineSoftmaxForward<LogSoftmaxBackward>(op);
  op.doc =
      "Logarithm of the softmax over one axis: (x - max) - log sum exp(x - max). Of 16-bit floats "
      "also as float32.";
}

// dx = y (dy - s), s = sum y dy. With an incoming g:
//   for dy: y (g - sum y g), the same op;   for y: g (dy - s) - dy sum y g.
void DefineSoftmaxBackward(OpDef& op) {
  DefineLikeSoftmaxBackward(op);
  op.doc = "Gradient of softmax: y (dy - sum(y dy)).";
  op.backward = [](GradContext& c) -> Status {
    const int64_t axis = c.attr<int64_t>(kAxis);
    if (c.needs(1)) OFL_RETURN_IF_ERROR(c.Set(1, SoftmaxBackward(c.input(0), c.grad(0), axis)));
    if (!c.needs(0)) return OkStatus();
    const Term y{c.input(0)}, dy{c.input(1)}, g{c.grad(0)};
    return c.Set(0, (g * (dy - SumOver(y * dy, axis)) - dy * SumOver(y * g, axis)).value);
  };
}

// dx = dy - exp(y) sum dy. With an incoming g:
//   for dy: g - sum exp(y) g;   for y: -g exp(y) sum dy.
void DefineLogSoftmaxBackward(OpDef& op) {
  DefineLikeSoftmaxBackward(op);
  op.doc = "Gradient of log_softmax: dy - exp(y) sum(dy).";
  op.backward = [](GradContext& c) -> Status {
    const int64_t axis = c.attr<int64_t>(kAxis);
    const Term y{c.input(0)}, dy{c.input(1)}, g{c.grad(0)};
    const Term p_g = Apply(functional::Exp, y) * g;
    if (c.needs(1)) OFL_RETURN_IF_ERROR(c.Set(1, (g - SumOver(p_g, axis)).value));
    if (!c.needs(0)) return OkStatus();
    return c.Set(0, (-(p_g * SumOver(dy, axis))).value);
  };
}

OFL_REGISTER_OP("softmax", DefineSoftmax);
OFL_REGISTER_OP("log_softmax", DefineLogSoftmax);
OFL_REGISTER_OP("softmax_backward", DefineSoftmaxBackward);
OFL_REGISTER_OP("log_softmax_backward", DefineLogSoftmaxBackward);

}  // namespace
}  // namespace oneflow_lite
