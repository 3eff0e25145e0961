// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) over the last dim, and its gradient as an op of its own.
#include "functional/scale_mask_softmax.h"

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/softmax.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"
#include "ops/term.h"

namespace oneflow_lite {
namespace {

using functional::Mul;
using functional::ScaleMaskSoftmaxBackward;

constexpr int kScale = 0, kCausal = 1;  // the attributes of both ops

Status CheckInput(const InferContext& c) {
  if (!IsFloating(c.dtype(0))) {
    return UnsupportedDType(c.op(), "input", c.dtype(0), kFloatingDTypes);
  }
  if (c.shape(0).ndim() == 0) {
    return ShapeMismatch(c.op(), "input", c.shape(0), "at least 1 dim");
  }
  return OkStatus();
}

Status CheckMask(const InferContext& c) {
  const Shape &x = c.shape(0), &mask = c.shape(1);
  const DType dtype = c.dtype(1);
  const bool wide = dtype == DType::kFloat32 && SizeOf(c.dtype(0)) == 2;
  if (dtype != DType::kBool && dtype != c.dtype(0) && !wide) {
    return DTypeMismatch(
        c.op(), "mask", dtype,
        absl::StrCat("bool or ", Name(c.dtype(0)), SizeOf(c.dtype(0)) == 2 ? " or float32" : ""));
  }
  const int missing = x.ndim() - mask.ndim();
  bool fits = missing >= 0;
  for (int d = 0; fits && d < mask.ndim(); ++d) fits = mask[d] == 1 || mask[d] == x[missing + d];
  if (fits) return OkStatus();
  return ShapeMismatch(c.op(), "mask", mask, "one that broadcasts to " + x.ToString());
}

constexpr char kScaleMaskSbpText[] =
    "split on any dim but the last (causal: the last two), with it a mask that has the dim";

// Any dim but the last, and but the queries where the diagonal counts. A mask is split where it has
// the dim.
SbpSignatures ScaleMaskSignatures(const SbpContext& c) {
  SbpSignatures out;
  const Shape& x = c.inputs[0];
  const int last = c.attrs.get<bool>(kCausal) ? x.ndim() - 2 : x.ndim() - 1;
  for (int d = 0; d < last; ++d) {
    SbpSignature s{{Sbp::Split(d)}, {Sbp::Split(d)}};
    if (c.inputs.size() > 1) {
      const Shape& mask = c.inputs[1];
      const int at = d - (x.ndim() - mask.ndim());
      s.inputs.push_back(at >= 0 && mask[at] > 1 ? Sbp::Split(at) : Sbp::Broadcast());
    }
    out.push_back(s);
  }
  return out;
}

double SizeOfTensor(const InferContext& c, int i) {
  return static_cast<double>(c.shape(i).numel()) * static_cast<double>(SizeOf(c.dtype(i)));
}
// The share of x that a causal op reads.
double VisibleShare(const InferContext& c) {
  const Shape& x = c.shape(0);
  if (!c.attr<bool>(kCausal) || x.ndim() < 2 || x.numel() == 0) return 1;
  const double queries = static_cast<double>(x[x.ndim() - 2]);
  const double keys = static_cast<double>(x[x.ndim() - 1]);
  const double first = std::max(0.0, keys - queries + 1), rows = std::min(queries, keys);
  return rows * (first + keys) / 2 / (queries * keys);
}

void DefineScaleMask(OpDef& op) {
  op.Input("in").Input("mask", InputDef::Kind::kOptional).Output("out");
  op.Attr("scale", AttrType::kFloat, 1.0).Attr("causal", AttrType::kBool, false);
  op.Attr("zero_masked_rows", AttrType::kBool, false);
  op.doc =
      "softmax(scale in + mask) over the last dim; a boolean mask keeps where it is true, causal "
      "hides what lies above the diagonal that ends in the lower right corner.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckInput(c));
    if (c.has_input(1)) OFL_RETURN_IF_ERROR(CheckMask(c));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = ScaleMaskSignatures;
  op.sbp_text = kScaleMaskSbpText;
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    const double mask = c.has_input(1) ? SizeOfTensor(c, 1) : 0;
    const double n = static_cast<double>(c.shape(0).numel());
    return Cost{.bytes = (1 + VisibleShare(c)) * SizeOfTensor(c, 0) + mask, .flops = 7 * n};
  };
  op.cost_text =
      "what causal shows of in and the mask are read once, out written once; 7 operations per "
      "element";
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(0)}; };
  op.backward = [](GradContext& c) -> Status {
    const Tensor &y = c.output(0), &dy = c.grad(0);
    const double scale = c.attr<double>(kScale);
    const bool causal = c.attr<bool>(kCausal);
    if (!c.needs(1)) return c.Set(0, ScaleMaskSoftmaxBackward(y, dy, scale, causal));
    // The gradient of the scores is that of an additive mask before it is summed to its shape.
    OFL_ASSIGN_OR_RETURN(Tensor scores, ScaleMaskSoftmaxBackward(y, dy, 1.0, causal));
    if (c.needs(0)) OFL_RETURN_IF_ERROR(c.Set(0, Mul(scores, Scalar(scale))));
    OFL_ASSIGN_OR_RETURN(Tensor wide, functional::Cast(scores, c.spec(1).dtype));
    return c.Set(1, functional::SumToShape(wide, c.spec(1).shape));
  };
}

// x where causality shows it, else 0.
StatusOr<Tensor> Shown(const Tensor& x) {
  const int ndim = x.ndim();
  const Dims matrix =
      ndim > 1 ? Dims{x.shape()[ndim - 2], x.shape()[ndim - 1]} : Dims{x.shape()[ndim - 1]};
  OFL_ASSIGN_OR_RETURN(Tensor zeros, functional::Zeros(matrix, x.dtype(), x.device()));
  OFL_ASSIGN_OR_RETURN(Tensor p, functional::FusedScaleMaskSoftmax(zeros, {}, 1.0, "zero", true));
  OFL_ASSIGN_OR_RETURN(Tensor shown, functional::Gt(p, Scalar(0)));
  return Mul(x, shown);
}

// dx = scale y (dy - s), s = sum y dy. With an incoming g:
//   for dy: scale y (g - sum y g), the same op;   for y: scale (g (dy - s) - dy sum y g).
// What causality hides takes no part: there y, dy and g are 0.
Status DifferentiateScaleMask(GradContext& c) {
  const double scale = c.attr<double>(kScale);
  const bool causal = c.attr<bool>(kCausal);
  if (c.needs(1)) {
    OFL_RETURN_IF_ERROR(c.Set(1, ScaleMaskSoftmaxBackward(c.input(0), c.grad(0), scale, causal)));
  }
  if (!c.needs(0)) return OkStatus();
  const auto shown = [&](const Tensor& t) { return causal ? Apply(Shown, {t}) : Term{t}; };
  const Term y = shown(c.input(0)), dy = shown(c.input(1)), g = shown(c.grad(0));
  const int last = c.input(0).ndim() - 1;
  return c.Set(0, ((g * (dy - SumOver(y * dy, last)) - dy * SumOver(y * g, last)) * scale).value);
}

void DefineScaleMaskBackward(OpDef& op) {
  op.Input("y").Input("dy").Output("dx");
  op.Attr("scale", AttrType::kFloat, 1.0).Attr("causal", AttrType::kBool, false);
  op.doc = "Gradient of scale_mask_softmax: scale y (dy - sum(y dy)), 0 where causal hides.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckInput(c));
    if (c.shape(1) != c.shape(0)) {
      return ShapeMismatch(c.op(), "dy", c.shape(1), c.shape(0).ToString());
    }
    if (c.dtype(1) != c.dtype(0)) {
      return DTypeMismatch(c.op(), "dy", c.dtype(1), Name(c.dtype(0)));
    }
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = ScaleMaskSignatures;
  op.sbp_text = kScaleMaskSbpText;
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    const double n = static_cast<double>(c.shape(0).numel());
    return Cost{.bytes = (1 + 2 * VisibleShare(c)) * SizeOfTensor(c, 0), .flops = 5 * n};
  };
  op.cost_text =
      "what causal shows of y and dy is read once, dx written once; 5 operations per element";
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(0) | Bit(1)}; };
  op.backward = DifferentiateScaleMask;
}

OFL_REGISTER_OP("scale_mask_softmax", DefineScaleMask);
OFL_REGISTER_OP("scale_mask_softmax_backward", DefineScaleMaskBackward);

}  // namespace
}  // namespace oneflow_lite
