// SPDX-License-Identifier: Apache-2.0
//
// SBP (split, broadcast, partial sum): how a tensor is spread over devices, and which
// combinations of inputs and outputs an op can compute shard by shard. After Yuan et al.,
// "OneFlow: Redesign the Distributed Deep Learning Framework from Scratch" (2021).
//
//   signatures.push_back({{Sbp::Split(0)}, {Sbp::Split(0)}});   // rows in, rows out
#pragma once

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "oneflow_lite/core/shape.h"
#include "oneflow_lite/framework/attr.h"

namespace oneflow_lite {

struct Sbp {
  enum class Kind : uint8_t { kBroadcast, kSplit, kPartialSum };
  Kind kind = Kind::kBroadcast;
  int axis = 0;  // of kSplit

  static Sbp Broadcast() { return {}; }
  static Sbp Split(int axis) { return {Kind::kSplit, axis}; }
  static Sbp PartialSum() { return {Kind::kPartialSum, 0}; }
  bool operator==(const Sbp&) const = default;
  // "B", "S(0)", "P"
  std::string ToString() const {
    return kind == Kind::kBroadcast ? "B"
           : kind == Kind::kSplit   ? "S(" + std::to_string(axis) + ")"
                                    : "P";
  }
};

struct SbpSignature {
  absl::InlinedVector<Sbp, 4> inputs;
  absl::InlinedVector<Sbp, 2> outputs;
  // The size that the number of parts must divide; 0: any number of parts will do.
  int64_t divisible = 0;
  // Whether it holds in so many parts.
  bool FitsParts(int parts) const { return divisible == 0 || divisible % parts == 0; }
  // "(S(0), B) -> (S(0))"
  OFL_API std::string ToString() const;
};

using SbpSignatures = std::vector<SbpSignature>;

// What `sbp` sees: the logical shapes (an absent input has none) and the attributes.
struct SbpContext {
  absl::InlinedVector<Shape, 4> inputs;
  const Attrs& attrs;
};

// The size of one part of n elements: as even as can be, the first parts larger.
inline int64_t ShardSize(int64_t n, int part, int parts) {
  return n / parts + (part < n % parts ? 1 : 0);
}
// The shape of one part of a tensor.
inline Shape ShardShape(Shape whole, const Sbp& sbp, int part, int parts) {
  if (sbp.kind == Sbp::Kind::kSplit) whole[sbp.axis] = ShardSize(whole[sbp.axis], part, parts);
  return whole;
}

// Split every input and output on each axis but `axis` (a non-negative dim); all shapes alike.
inline SbpSignatures SplitAllAxesBut(int axis, const SbpContext& c, int num_outputs = 1) {
  SbpSignatures out;
  for (int d = 0; d < c.inputs[0].ndim(); ++d) {
    if (d == axis) continue;
    SbpSignature s;
    s.inputs.assign(c.inputs.size(), Sbp::Split(d));
    s.outputs.assign(num_outputs, Sbp::Split(d));
    out.push_back(s);
  }
  return out;
}
// Split on any axis: elementwise ops over tensors of one shape.
inline SbpSignatures SplitAllAxes(const SbpContext& c) { return SplitAllAxesBut(-1, c); }

}  // namespace oneflow_lite
