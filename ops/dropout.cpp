// SPDX-License-Identifier: Apache-2.0
//
// dropout in all its forms, and its gradient, which draws the same numbers again: all that is kept
// is where they began, `drawn` (seed and offset as a captured graph's replay has moved them).
#include "functional/dropout.h"

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

Status CheckFloat(const InferContext& c, const char* argument) {
  if (IsFloating(c.dtype(0))) return OkStatus();
  return UnsupportedDType(c.op(), argument, c.dtype(0), kFloatingDTypes);
}
constexpr int64_t kMostInner = int64_t{1} << 40;
Status CheckNumbers(const InferContext& c, double p, int64_t inner) {
  if (!(p >= 0 && p <= 1)) {
    return Error(ErrorKind::kValue, c.op(), "(): p is ", p, ", but it must be in [0, 1]");
  }
  if (inner >= 1 && inner <= kMostInner) return OkStatus();
  return BadValue(c.op(), "inner", absl::StrCat(inner), "from 1 to 2^40");
}

Cost CostOf(const InferContext& c, absl::Span<const TensorSpec>) {
  const double n = static_cast<double>(c.shape(0).numel());
  return Cost{.bytes = 2 * n * SizeOf(c.dtype(0)) + 16, .flops = 2 * n};
}
constexpr char kCostText[] =
    "the input is read once, the result written once, and 16 bytes; two operations per element";

// Each element draws by its place in the whole: a part needs the place of its first element, and
// the whole's strides. `drawn` is the same for all parts. Even ones alone: a part of no elements
// would not say where it drew.
SbpSignatures SplitEvenly(const SbpContext& c, bool forward) {
  SbpSignatures out;
  const Shape& in = c.inputs[0];
  for (int d = 0; d < in.ndim() && in.numel() > 0; ++d) {
    SbpSignature s{{Sbp::Split(d)}, {Sbp::Split(d)}, in[d]};
    (forward ? s.outputs.push_back(Sbp::Broadcast()) : s.inputs.push_back(Sbp::Broadcast()));
    out.push_back(std::move(s));
  }
  return out;
}
template <int kPlaces>
Status PlacesOfPart(PhysicalContext& c) {
  const Sbp& sbp = c.signature.inputs[0];
  if (sbp.kind != Sbp::Kind::kSplit) return OkStatus();
  const Shape& whole = c.logical_inputs[0].shape;
  Dims places = c.attrs.get<Dims>(kPlaces);
  if (places.empty()) {
    places = ContiguousStrides(whole);
    places.insert(places.begin(), 0);
  }
  places[0] += c.part * (whole[sbp.axis] / c.parts) * places[sbp.axis + 1];
  c.attrs[kPlaces] = std::move(places);
  return OkStatus();
}
Status CheckPlaces(const InferContext& c, const Dims& places) {
  if (places.empty()) return OkStatus();
  bool valid = static_cast<int>(places.size()) == c.shape(0).ndim() + 1;
  for (const int64_t n : places) valid = valid && n >= 0;
  if (valid) return OkStatus();
  return BadValue(c.op(), "places", ToString(places), "empty, or a place and a stride per dim");
}
constexpr char kSbpText[] = "split on any dim, in even parts";

void DefineDropout(OpDef& op) {
  op.Input("in").Output("out").Output("drawn");
  op.Attr("p", AttrType::kFloat)
      .Attr("scale", AttrType::kFloat)
      .Attr("kept", AttrType::kFloat, 0.0);
  op.Attr("dropped", AttrType::kFloat, 0.0).Attr("inner", AttrType::kInt, int64_t{1});
  op.Attr("seed", AttrType::kInt).Attr("offset", AttrType::kInt);
  // Of a part of a larger tensor: the place of its first element there, and the strides there.
  op.Attr("places", AttrType::kInts, AttrValue(std::in_place_type<Dims>));
  op.doc =
      "in * scale + kept, or with probability p `dropped`; `inner` elements in a row share a draw.";
  op.random = true;
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckFloat(c, "input"));
    OFL_RETURN_IF_ERROR(CheckNumbers(c, c.attr<double>(0), c.attr<int64_t>(4)));
    OFL_RETURN_IF_ERROR(CheckPlaces(c, c.attr<Dims>(7)));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    c.SetOutput(1, Shape{c.shape(0).numel() > 0 ? 2 : 0}, DType::kInt64);
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) { return SplitEvenly(c, true); };
  op.sbp_text = kSbpText;
  op.infer_physical = PlacesOfPart<7>;
  op.cost = CostOf;
  op.cost_text = kCostText;
  op.save = [](const Attrs&, Needs) { return SavePlan{.outputs = Bit(1)}; };
  op.backward = [](GradContext& c) -> Status {
    if (!c.grad(0).defined()) return OkStatus();
    return c.Set(0, functional::DropoutBackward(c.grad(0), c.output(1).Detach(), c.attr<double>(0),
                                                c.attr<double>(1), c.attr<int64_t>(4)));
  };
}

void DefineDropoutBackward(OpDef& op) {
  op.Input("dy").Input("drawn").Output("dx");
  op.Attr("p", AttrType::kFloat).Attr("scale", AttrType::kFloat);
  op.Attr("inner", AttrType::kInt, int64_t{1});
  op.Attr("places", AttrType::kInts, AttrValue(std::in_place_type<Dims>));  // as in dropout
  op.doc = "dy * scale where dropout kept the element, else 0.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckFloat(c, "dy"));
    OFL_RETURN_IF_ERROR(CheckNumbers(c, c.attr<double>(0), c.attr<int64_t>(2)));
    OFL_RETURN_IF_ERROR(CheckPlaces(c, c.attr<Dims>(3)));
    if (c.dtype(1) != DType::kInt64) return DTypeMismatch(c.op(), "drawn", c.dtype(1), "int64");
    const int64_t expected = c.shape(0).numel() > 0 ? 2 : 0;
    if (c.shape(1) != Shape{expected}) {
      return ShapeMismatch(c.op(), "drawn", c.shape(1), Shape{expected}.ToString());
    }
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) { return SplitEvenly(c, false); };
  op.sbp_text = kSbpText;
  op.infer_physical = PlacesOfPart<3>;
  op.cost = CostOf;
  op.cost_text = kCostText;
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(1)}; };
  op.backward = [](GradContext& c) -> Status {
    return c.Set(0, functional::DropoutBackward(c.grad(0), c.input(1), c.attr<double>(0),
                                                c.attr<double>(1), c.attr<int64_t>(2)));
  };
}

OFL_REGISTER_OP("dropout", DefineDropout);
OFL_REGISTER_OP("dropout_backward", DefineDropoutBackward);

}  // namespace
}  // namespace oneflow_lite
