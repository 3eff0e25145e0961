// SPDX-License-Identifier: Apache-2.0
//
// What is declared of ops besides their signatures, by name, from which further ones follow: in
// which inputs an op is linear (partial sums go through it), and which ops give partial sums only
// once each shard's result has been weighted (a mean of means).
//
//   const bool declared = DeclareLinear("mul", {Bit(0), Bit(1)});    // in a, and in b
//   const bool both = DeclareLinear("add", {Bit(0) | Bit(1)});       // in both at once
#pragma once

#include <initializer_list>
#include <vector>

#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

// Sets of inputs: with those of a set as partial sums, and the others whole, the outputs are
// partial sums. A variadic op's last bits stand for all its tensors. All tensors of the set and the
// outputs are floats, or all are integers.
OFL_API bool DeclareLinear(const char* op, std::initializer_list<uint64_t> sets);
// The signatures that follow for a call.
void AppendLinearSignatures(const OpDef& op, absl::Span<const TensorSpec> inputs,
                            absl::Span<const TensorSpec> outputs, SbpSignatures* out);

// Further signatures of an op, under which each output that is a partial sum is the shard's result
// times weight(). Ops of no elements count nothing, whatever they give.
struct WeightedRule {
  StatusOr<SbpSignatures> (*signatures)(const SbpContext& c);
  double (*weight)(const PhysicalContext& c);
};
OFL_API bool DeclareWeighted(const char* op, WeightedRule rule);
// Null for an op without.
OFL_API const WeightedRule* WeightedRuleOf(const OpDef& op);
// The weight of a shard; 1 where its signature is not one of the rule's.
OFL_API double WeightOf(const OpDef& op, const PhysicalContext& c);

}  // namespace oneflow_lite
