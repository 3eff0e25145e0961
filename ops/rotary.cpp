// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding. Its gradient is itself, turned the other way.
#include "functional/rotary.h"

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

constexpr int kRotated = 0, kInverse = 1;  // the attributes

Status InferRotary(InferContext& c) {
  const Shape &x = c.shape(0), &cos = c.shape(1);
  if (!IsFloating(c.dtype(0))) {
    return UnsupportedDType(c.op(), "input", c.dtype(0), kFloatingDTypes);
  }
  if (x.ndim() < 2) return ShapeMismatch(c.op(), "input", x, "at least 2 dims");
  const int64_t length = x[x.ndim() - 2], features = x[x.ndim() - 1];
  if (cos.ndim() != 2 || cos[0] != length || cos[1] < 1) {
    return ShapeMismatch(c.op(), "cos", cos,
                         absl::StrCat("[", length, ", half a head], a row for each place"));
  }
  if (c.shape(2) != cos) return ShapeMismatch(c.op(), "sin", c.shape(2), cos.ToString());
  const DType wide = ComputeType(c.dtype(0));
  if (c.dtype(1) != wide) return DTypeMismatch(c.op(), "cos", c.dtype(1), Name(wide));
  if (c.dtype(2) != wide) return DTypeMismatch(c.op(), "sin", c.dtype(2), Name(wide));
  const int64_t head = 2 * cos[1], rotated = c.attr<int64_t>(kRotated);
  if (features % head != 0) {
    return ShapeMismatch(c.op(), "input", x,
                         absl::StrCat("a last dim of whole heads of ", head, " features"));
  }
  if (rotated < 0 || rotated > features || rotated % head != 0) {
    return BadValue(c.op(), "rotated", absl::StrCat(rotated),
                    absl::StrCat("a multiple of ", head, " in [0, ", features, "]"));
  }
  c.SetOutput(0, x, c.dtype(0));
  return OkStatus();
}

void DefineRotary(OpDef& op) {
  op.Input("input").Input("cos").Input("sin").Output("out");
  op.Attr("rotated", AttrType::kInt).Attr("inverse", AttrType::kBool, false);
  op.doc =
      "Turns the features i and size/2 + i of each of the first heads [..., length, heads * size] "
      "by the angle whose cosine and sine are cos[place, i] and sin[place, i].";
  op.infer = InferRotary;
  op.sbp = [](const SbpContext& c) {
    SbpSignatures out;
    const Sbp B = Sbp::Broadcast(), S0 = Sbp::Split(0);
    const int place = c.inputs[0].ndim() - 2;
    for (int d = 0; d < place; ++d) out.push_back({{Sbp::Split(d), B, B}, {Sbp::Split(d)}});
    out.push_back({{Sbp::Split(place), S0, S0}, {Sbp::Split(place)}});
    return out;
  };
  op.sbp_text = "split by any dim but the last, the tables by the places";
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) {
    const double n = static_cast<double>(c.shape(0).numel());
    const double tables = 2 * static_cast<double>(c.shape(1).numel());
    return Cost{.bytes = 2 * n * SizeOf(c.dtype(0)) + tables * SizeOf(c.dtype(1)), .flops = 3 * n};
  };
  op.cost_text = "the inputs are read once, the result is written once; 3 operations per element";
  op.save = [](const Attrs&, Needs) { return SavePlan{.inputs = Bit(1) | Bit(2)}; };
  op.backward = [](GradContext& c) -> Status {
    if (c.needs(1) || c.needs(2)) {
      return Error(ErrorKind::kNotImplemented,
                   "rotary_embedding(): cos and sin have no gradient; detach them");
    }
    if (!c.needs(0)) return OkStatus();
    return c.Set(0, functional::Rotated(c.grad(0), c.input(1), c.input(2),
                                        c.attr<int64_t>(kRotated), !c.attr<bool>(kInverse)));
  };
}

OFL_REGISTER_OP("rotary", DefineRotary);

}  // namespace
}  // namespace oneflow_lite
