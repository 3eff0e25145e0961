// SPDX-License-Identifier: Apache-2.0
//
// What the definitions of cross entropy have in common: of whole rows (cross_entropy.cpp), and of
// classes in parts (cross_entropy_split.cpp).
#pragma once

#include <algorithm>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

// The attributes: of all of them, and of those that know parts.
constexpr int kIgnoreIndex = 0, kSmoothing = 1, kFirst = 2, kClasses = 3;

inline void AddLossAttrs(OpDef& op) {
  op.Attr("ignore_index", AttrType::kInt, int64_t{-100});
  op.Attr("label_smoothing", AttrType::kFloat, 0.0);
}
// The logits are those of classes [first, first + C) of so many; 0 classes: of C.
inline void AddPartAttrs(OpDef& op) {
  op.Attr("first", AttrType::kInt, int64_t{0});
  op.Attr("classes", AttrType::kInt, int64_t{0});
}

// Logits [N, C] and targets [N], and the attributes that all have.
inline Status CheckLogits(const InferContext& c) {
  const Shape& logits = c.shape(0);
  if (!IsFloating(c.dtype(0))) {
    return UnsupportedDType(c.op(), "input", c.dtype(0), kFloatingDTypes);
  }
  if (logits.ndim() != 2) return ShapeMismatch(c.op(), "input", logits, "2 dims");
  if (c.dtype(1) != DType::kInt64) return DTypeMismatch(c.op(), "target", c.dtype(1), "int64");
  const Shape rows{logits[0]};
  if (c.shape(1) != rows) return ShapeMismatch(c.op(), "target", c.shape(1), rows.ToString());
  const double smoothing = c.attr<double>(kSmoothing);
  if (!(smoothing >= 0 && smoothing <= 1)) {
    return BadValue(c.op(), "label_smoothing", absl::StrCat(smoothing), "in [0, 1]");
  }
  return OkStatus();
}

// The attributes of AddPartAttrs.
inline Status CheckPart(const InferContext& c) {
  const int64_t here = c.shape(0)[1], classes = c.attr<int64_t>(kClasses);
  const int64_t first = c.attr<int64_t>(kFirst), most = (classes == 0 ? here : classes) - here;
  if (most < 0) {
    return BadValue(c.op(), "classes", absl::StrCat(classes),
                    absl::StrCat("0 or at least the ", here, " of the logits"));
  }
  if (first < 0 || first > most) {
    return BadValue(c.op(), "first", absl::StrCat(first), absl::StrCat("in [0, ", most, "]"));
  }
  return OkStatus();
}

// An input of the compute type and a given shape.
inline Status CheckNumbers(const InferContext& c, int i, const char* name, const Shape& shape) {
  const DType want = ComputeType(c.dtype(0));
  if (c.shape(i) != shape) return ShapeMismatch(c.op(), name, c.shape(i), shape.ToString());
  if (c.dtype(i) != want) return DTypeMismatch(c.op(), name, c.dtype(i), Name(want));
  return OkStatus();
}

// Every input and output by rows, with `whole` the input that is not.
inline SbpSignatures SplitRows(const SbpContext& c, int num_outputs, int whole) {
  SbpSignatures out;
  SbpSignature s;
  s.inputs.assign(c.inputs.size(), Sbp::Split(0));
  s.outputs.assign(num_outputs, Sbp::Split(0));
  if (whole >= 0 && whole < static_cast<int>(c.inputs.size())) s.inputs[whole] = Sbp::Broadcast();
  out.push_back(s);
  return out;
}

// Makes the attributes of AddPartAttrs those of a shard, where the classes are split.
inline Status PartOfClasses(PhysicalContext& c) {
  if (c.signature.inputs[0] != Sbp::Split(1)) return OkStatus();
  const int64_t here = c.logical_inputs[0].shape[1];
  const int64_t start = c.part * (here / c.parts) + std::min<int64_t>(c.part, here % c.parts);
  c.attrs[kFirst] = c.attrs.get<int64_t>(kFirst) + start;
  if (c.attrs.get<int64_t>(kClasses) == 0) c.attrs[kClasses] = here;
  return OkStatus();
}

// The logits are moved `times`; the rest is small. About 5 operations per element.
inline Cost CostOfLogits(const InferContext& c, int times) {
  const double n = static_cast<double>(c.shape(0).numel());
  return {.bytes = times * n * SizeOf(c.dtype(0)), .flops = 5 * n};
}

// Of the gradient's ops, whose inputs are logits, targets, stats [N, 2] and dloss [N].
inline Status CheckGradient(const InferContext& c) {
  OFL_RETURN_IF_ERROR(CheckLogits(c));
  OFL_RETURN_IF_ERROR(CheckPart(c));
  const int64_t rows = c.shape(0)[0];
  OFL_RETURN_IF_ERROR(CheckNumbers(c, 2, "stats", Shape{rows, 2}));
  return CheckNumbers(c, 3, "dloss", Shape{rows});
}
inline void DeclareGradient(OpDef& op) {
  op.sbp = [](const SbpContext& c) {
    const Sbp whole = Sbp::Broadcast(), classes = Sbp::Split(1);
    SbpSignatures out = SplitRows(c, 1, -1);
    out.push_back({{classes, whole, whole, whole}, {classes}});
    return out;
  };
  op.sbp_text = "split by rows, or by classes with all else whole";
  op.infer_physical = PartOfClasses;
  op.cost = [](const InferContext& c, absl::Span<const TensorSpec>) { return CostOfLogits(c, 2); };
  op.cost_text =
      "the logits are read once, their gradient is written once; 5 operations per element";
}

}  // namespace oneflow_lite
