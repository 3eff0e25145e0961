// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/sharding.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

namespace oneflow_lite {
namespace {

// Filled by static initialisers, read at every first call of an op with these shapes.
struct Rules {
  std::mutex mutex;
  std::map<std::string, std::vector<uint64_t>, std::less<>> linear;
  std::map<std::string, WeightedRule, std::less<>> weighted;
};
Rules& GetRules() {
  static auto* const rules = new Rules;
  return *rules;
}

enum class Kind : uint8_t { kBool, kInteger, kFloat };
Kind KindOf(const TensorSpec& t) {
  if (t.dtype == DType::kBool) return Kind::kBool;
  return IsFloating(t.dtype) ? Kind::kFloat : Kind::kInteger;
}

}  // namespace

bool DeclareLinear(const char* op, std::initializer_list<uint64_t> sets) {
  Rules& r = GetRules();
  std::lock_guard lock(r.mutex);
  r.linear[op] = sets;
  return true;
}

void AppendLinearSignatures(const OpDef& op, absl::Span<const TensorSpec> inputs,
                            absl::Span<const TensorSpec> outputs, SbpSignatures* out) {
  std::vector<uint64_t> sets;
  {
    Rules& r = GetRules();
    std::lock_guard lock(r.mutex);
    const auto found = r.linear.find(op.name);
    if (found == r.linear.end()) return;
    sets = found->second;
  }
  for (const uint64_t set : sets) {
    SbpSignature s;
    bool any = false, fits = !outputs.empty();
    const Kind kind = outputs.empty() ? Kind::kBool : KindOf(outputs[0]);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool partial = (set >> std::min<size_t>(i, 63) & 1) && inputs[i].defined;
      s.inputs.push_back(partial ? Sbp::PartialSum() : Sbp::Broadcast());
      any = any || partial;
      if (partial) fits = fits && KindOf(inputs[i]) == kind;
    }
    for (const TensorSpec& y : outputs) fits = fits && KindOf(y) == kind;
    s.outputs.assign(outputs.size(), Sbp::PartialSum());
    if (any && fits && kind != Kind::kBool) out->push_back(std::move(s));
  }
}

bool DeclareWeighted(const char* op, WeightedRule rule) {
  Rules& r = GetRules();
  std::lock_guard lock(r.mutex);
  r.weighted[op] = rule;
  return true;
}

const WeightedRule* WeightedRuleOf(const OpDef& op) {
  Rules& r = GetRules();
  std::lock_guard lock(r.mutex);
  const auto found = r.weighted.find(op.name);
  return found == r.weighted.end() ? nullptr : &found->second;
}

double WeightOf(const OpDef& op, const PhysicalContext& c) {
  const WeightedRule* rule = WeightedRuleOf(op);
  const auto split = [](const Sbp& s) { return s.kind == Sbp::Kind::kSplit; };
  const auto partial = [](const Sbp& s) { return s.kind == Sbp::Kind::kPartialSum; };
  const SbpSignature& s = c.signature;
  const bool sums = std::any_of(s.inputs.begin(), s.inputs.end(), split) &&
                    std::any_of(s.outputs.begin(), s.outputs.end(), partial);
  return rule && sums ? rule->weight(c) : 1.0;
}

}  // namespace oneflow_lite
