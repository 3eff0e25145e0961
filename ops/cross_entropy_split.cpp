// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of logits [N, C] whose classes are split over ranks: cross_entropy_parts on each,
// cross_entropy_of_parts on what all of them gave, and the gradient on each again.
#include "functional/cross_entropy.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"
#include "ops/cross_entropy.h"

namespace oneflow_lite {
namespace {

constexpr int kParts = 4;        // the attribute
constexpr int64_t kNumbers = 4;  // of a part's row: kPartNumbers of cross_entropy_split_shape.h

void DefineParts(OpDef& op) {
  op.Input("in").Input("target").Output("parts");
  AddLossAttrs(op);
  AddPartAttrs(op);
  op.Attr("parts", AttrType::kInt, int64_t{1});
  op.differentiable = false;
  op.doc =
      "Of each row of logits and each of so many parts of its classes, as even as can be, the "
      "first "
      "ones larger: the maximum, the sum of exp(x - max), the target's logit or 0 where it is in "
      "another part, and with label smoothing the sum of x - max.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckLogits(c));
    OFL_RETURN_IF_ERROR(CheckPart(c));
    const int64_t parts = c.attr<int64_t>(kParts);
    if (parts < 1) return BadValue(c.op(), "parts", absl::StrCat(parts), "at least 1");
    c.SetOutput(0, Shape{parts, c.shape(0)[0], kNumbers}, ComputeType(c.dtype(0)));
    return OkStatus();
  };
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    const Sbp whole = Sbp::Broadcast(), first = Sbp::Split(0), second = Sbp::Split(1);
    out.push_back({{first, first}, {second}});
    out.push_back({{second, whole}, {first}});
    out.back().divisible = c.attrs.get<int64_t>(kParts);
    return out;
  };
  op.sbp_text = "split by rows, or by classes in as many parts";
  op.infer_physical = [](PhysicalContext& c) -> Status {
    OFL_RETURN_IF_ERROR(PartOfClasses(c));
    if (c.signature.inputs[0] != Sbp::Split(1)) return OkStatus();
    const int64_t parts = c.attrs.get<int64_t>(kParts);
    if (parts != c.parts && c.logical_inputs[0].shape[1] % parts != 0) {  // they begin elsewhere
      return BadValue("cross_entropy_parts", "parts", absl::StrCat(parts),
                      absl::StrCat(c.parts, ", into which the classes are split"));
    }
    c.attrs[kParts] = parts / c.parts;
    return OkStatus();
  };
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) { return CostOfLogits(c, 1); };
  op.cost_text = "the logits are read once; 5 operations per element";
}

void DefineOfParts(OpDef& op) {
  constexpr int kAll = 2;  // the attribute
  op.Input("in").Input("target").Input("parts").Output("loss").Output("stats");
  AddLossAttrs(op);
  op.Attr("classes", AttrType::kInt, int64_t{0});
  op.doc =
      "What cross_entropy gives, from what cross_entropy_parts gave: the logits are not read. "
      "Where "
      "classes is not 0, in has some of so many.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckLogits(c));
    const int64_t rows = c.shape(0)[0], here = c.shape(0)[1], all = c.attr<int64_t>(kAll);
    if (all != 0 && all < here) {
      return BadValue(c.op(), "classes", absl::StrCat(all),
                      absl::StrCat("0 or at least the ", here, " of the logits"));
    }
    const Shape& parts = c.shape(2);
    const int64_t count = parts.ndim() == 0 ? 1 : std::max<int64_t>(1, parts[0]);
    OFL_RETURN_IF_ERROR(CheckNumbers(c, 2, "parts", Shape{count, rows, kNumbers}));
    c.SetOutput(0, Shape{rows}, ComputeType(c.dtype(0)));
    c.SetOutput(1, Shape{rows, 2}, ComputeType(c.dtype(0)));
    return OkStatus();
  };
  op.sbp = [](const SbpContext&) {
    SbpSignatures out;
    const Sbp whole = Sbp::Broadcast(), first = Sbp::Split(0), second = Sbp::Split(1);
    out.push_back({{first, first, second}, {first, first}});
    out.push_back({{second, whole, whole}, {whole, whole}});
    return out;
  };
  op.sbp_text = "split by rows, or the logits by classes with all else whole";
  op.infer_physical = [](PhysicalContext& c) -> Status {
    const bool split = c.signature.inputs[0] == Sbp::Split(1);
    if (split && c.attrs.get<int64_t>(kAll) == 0) c.attrs[kAll] = c.logical_inputs[0].shape[1];
    return OkStatus();
  };
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec> outputs) {
    const double item = SizeOf(c.dtype(2));
    double n = static_cast<double>(c.shape(2).numel());
    const double flops = 2 * n;
    for (const TensorSpec& y : outputs) n += static_cast<double>(y.shape.numel());
    return Cost{.bytes = item * n, .flops = flops};
  };
  op.cost_text = "the parts' numbers are read once, 2 operations each";
  op.save = [](const Attrs&, Needs) {
    return SavePlan{.inputs = Bit(0) | Bit(1), .outputs = Bit(1)};
  };
  op.backward = [](GradContext& c) -> Status {
    if (c.needs(2) || c.grad(1).defined() || c.attr<int64_t>(kAll) != 0) {
      return Error(ErrorKind::kNotImplemented,
                   "cross_entropy_of_parts(): only the losses of all classes have a gradient, and "
                   "only for in");
    }
    if (!c.needs(0) || !c.grad(0).defined()) return OkStatus();
    return c.Set(0, functional::CrossEntropyBackward(c.input(0), c.input(1), c.output(1).Detach(),
                                                     c.grad(0), c.attr<int64_t>(kIgnoreIndex),
                                                     c.attr<double>(kSmoothing)));
  };
}

void DefineGradientInPlace(OpDef& op) {
  op.Input("self", InputDef::Kind::kMutated).Input("target").Input("stats").Input("dloss");
  op.Output("out");
  AddLossAttrs(op);
  AddPartAttrs(op);
  op.doc = "What cross_entropy_backward gives, in the memory of the logits.";
  op.infer = [](InferContext& c) -> Status {
    OFL_RETURN_IF_ERROR(CheckGradient(c));
    c.SetOutput(0, c.shape(0), c.dtype(0));
    return OkStatus();
  };
  DeclareGradient(op);
}

OFL_REGISTER_OP("cross_entropy_parts", DefineParts);
OFL_REGISTER_OP("cross_entropy_of_parts", DefineOfParts);
OFL_REGISTER_OP("cross_entropy_gradient_", DefineGradientInPlace);

}  // namespace
}  // namespace oneflow_lite
