// SPDX-License-Identifier: Apache-2.0
//
// How an op runs on global tensors: for each dim of the grid the signature that moves the fewest
// bytes. Decisions are kept by all that they depend on, so that the second call is one lookup.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/argument_name.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/sharding.h"

namespace oneflow_lite {
namespace {

constexpr double kNeverUnasked = 1e30;  // more than any tensor has bytes

using Specs = absl::InlinedVector<TensorSpec, 4>;
using OutputSpecs = absl::InlinedVector<TensorSpec, 2>;
using Words = absl::InlinedVector<uint64_t, 48>;

struct WordsHash {
  size_t operator()(const Words& words) const {
    uint64_t h = 0x9E3779B97F4A7C15u;
    for (const uint64_t w : words) {
      h = (h ^ w) * 0xD6E8FEB86659FD93u;
      h ^= h >> 32;
    }
    return h;
  }
};

uint64_t WordOf(const NdSbp& sbp) {
  uint64_t word = 0;
  for (const Sbp& s : sbp) {
    word = word << 16 | static_cast<uint64_t>(s.kind) << 8 | static_cast<uint64_t>(s.axis + 1);
  }
  return word;
}
uint64_t WordOf(const void* p) { return reinterpret_cast<uintptr_t>(p); }

struct AttrWords {
  Words* out;
  void operator()(std::monostate) const {}
  void operator()(bool v) const { out->push_back(v); }
  void operator()(int64_t v) const { out->push_back(static_cast<uint64_t>(v)); }
  void operator()(double v) const { out->push_back(std::bit_cast<uint64_t>(v)); }
  void operator()(const Scalar& v) const {
    out->push_back(static_cast<uint64_t>(v.kind()));
    out->push_back(v.is_float() ? std::bit_cast<uint64_t>(v.to<double>())
                                : static_cast<uint64_t>(v.to<int64_t>()));
  }
  void operator()(DType v) const { out->push_back(static_cast<uint64_t>(v)); }
  void operator()(Device v) const {
    out->push_back(static_cast<uint64_t>(v.type) << 16 | static_cast<uint16_t>(v.index));
  }
  void operator()(const Dims& v) const {
    out->push_back(v.size());
    for (const int64_t d : v) out->push_back(static_cast<uint64_t>(d));
  }
  void operator()(const std::string& v) const {
    out->push_back(v.size());
    for (const char c : v) out->push_back(static_cast<unsigned char>(c));
  }
};

// The two attributes that say where in a generator's sequence an op draws; negative where it does
// not. No choice depends on them.
struct PlaceAttrs {
  int seed = -1, offset = -1;

  explicit PlaceAttrs(const OpDef& def) {
    for (size_t i = 0; i < def.attrs.size(); ++i) {
      if (def.attrs[i].type != AttrType::kInt) continue;
      if (def.attrs[i].name == "seed") seed = static_cast<int>(i);
      if (def.attrs[i].name == "offset") offset = static_cast<int>(i);
    }
    if (seed < 0 || offset < 0) seed = offset = -1;
  }
  bool has(size_t i) const { return static_cast<int>(i) == seed || static_cast<int>(i) == offset; }
};

// All that a plan depends on.
Words KeyOf(const OpCall& call, const PlaceAttrs& place) {
  Words key;
  key.push_back(WordOf(&call.op));
  for (size_t i = 0; i < call.attrs.size(); ++i) {
    if (place.has(i)) continue;
    const AttrValue& value = call.attrs[static_cast<int>(i)];
    key.push_back(value.index());
    std::visit(AttrWords{&key}, value);
  }
  for (const Tensor& t : call.inputs) {
    if (!t.defined()) {
      key.push_back(0);
      continue;
    }
    const GlobalSpec* g = GlobalOf(t);
    key.push_back(1 | static_cast<uint64_t>(t.dtype()) << 8 |
                  static_cast<uint64_t>(t.ndim()) << 16 | uint64_t{t.is_contiguous()} << 32);
    key.push_back(WordOf(g ? g->placement : nullptr));
    if (g) key.push_back(WordOf(g->sbp));
    for (const int64_t d : t.shape()) key.push_back(static_cast<uint64_t>(d));
    if (t.is_contiguous()) continue;
    for (const int64_t s : t.strides()) key.push_back(static_cast<uint64_t>(s));
  }
  if (const GlobalScope::Target* scope = GlobalScope::Current(); scope && call.inputs.empty()) {
    key.push_back(WordOf(scope->placement));
    key.push_back(WordOf(scope->sbp));
  }
  return key;
}

// The largest shard of a dim of n that is split, in shares of an even one.
double Unevenness(int64_t n, int parts) {
  if (n == 0) return 1;
  return static_cast<double>(ShardSize(n, 0, parts)) * parts / static_cast<double>(n);
}

// How one candidate compares: fewer bytes, then fewer inputs that move at all, then more of the
// results spread.
struct Score {
  double bytes = 0;
  int moves = 0;
  int whole = 0;  // outputs that are not split, twice those that are no partial sums either

  bool operator<(const Score& o) const {
    if (bytes != o.bytes) return bytes < o.bytes;
    return moves != o.moves ? moves < o.moves : whole < o.whole;
  }
};

class Planner {
 public:
  Planner(const OpCall& call, GlobalPlan* plan) : call_(call), def_(call.op.def()), plan_(*plan) {}

  Status Run() {
    OFL_RETURN_IF_ERROR(ReadInputs());
    OFL_RETURN_IF_ERROR(InferLogical());
    OFL_ASSIGN_OR_RETURN(candidates_, SignaturesOf(def_, inputs_, call_.attrs, plan_.specs));
    if (def_.data_dependent_shape) candidates_.clear();
    plan_.inputs.assign(inputs_.size(), NdSbp());
    plan_.outputs.assign(plan_.specs.size(), NdSbp());
    for (int d = 0; d < plan_.placement->ndim(); ++d) {
      chosen_.push_back(Choose(d));
      for (size_t i = 0; i < inputs_.size(); ++i) {
        plan_.inputs[i].push_back(chosen_[d].inputs[i]);
      }
      for (size_t i = 0; i < plan_.specs.size(); ++i) {
        plan_.outputs[i].push_back(chosen_[d].outputs[i]);
      }
    }
    plan_.attrs = call_.attrs;
    if (def_.device_attr >= 0) plan_.attrs[def_.device_attr] = plan_.placement->device();
    return plan_.placement->Here().empty() ? OkStatus() : InferHere();
  }

 private:
  Status ReadInputs() {
    const Tensor* first = nullptr;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const Tensor& t = call_.inputs[i];
      const GlobalSpec* g = GlobalOf(t);
      if (!t.defined()) {
        if (i < def_.inputs.size() && def_.inputs[i].kind == InputDef::Kind::kOptional) {
          inputs_.push_back(SpecOf(t));
          continue;
        }
        return NotDefined(def_.name, ArgumentName(def_, i));
      }
      if (t.ndim() > kMaxDims) {
        return Error(ErrorKind::kShape, def_.name, "(): ", ArgumentName(def_, i), " has ", t.ndim(),
                     " dims, but at most ", kMaxDims, " are supported");
      }
      inputs_.push_back(SpecOf(t));
      if (!g) continue;
      if (first && g->placement != GlobalOf(*first)->placement) {
        return Error(ErrorKind::kRuntime, def_.name, "(): ", ArgumentName(def_, i), " lies on ",
                     g->placement->ToString(), ", but another input on ",
                     GlobalOf(*first)->placement->ToString(),
                     "; bring them together with to_global()");
      }
      if (!first) first = &t;
    }
    return first ? CheckLocalOnes(*first) : TakeScope();
  }

  // A local tensor may be another one on each rank; a number is the same.
  Status CheckLocalOnes(const Tensor& first) {
    plan_.placement = GlobalOf(first)->placement;
    if (def_.device_attr >= 0) {
      return Error(ErrorKind::kRuntime, def_.name, "(): ", Describe(first), " lies on ",
                   plan_.placement->ToString(), "; to_global() moves it to another placement");
    }
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const Tensor& t = call_.inputs[i];
      if (!t.defined() || GlobalOf(t)) continue;
      if (t.ndim() == 0 && t.device().type == DeviceType::kCPU &&
          !def_.MutatesInput(i, inputs_.size()))
        continue;
      return Error(ErrorKind::kRuntime, def_.name, "(): ", ArgumentName(def_, i),
                   " is a local tensor (", Describe(t), "), but another input is global, on ",
                   plan_.placement->ToString(), "; make it global with to_global()");
    }
    return OkStatus();
  }

  Status TakeScope() {
    const GlobalScope::Target* scope = GlobalScope::Current();
    OFL_CHECK(scope != nullptr);
    plan_.placement = scope->placement;
    wanted_ = scope->sbp;
    return OkStatus();
  }

  Status InferLogical() {
    plan_.specs.resize(def_.outputs.size());
    if (def_.views()) {  // by the logical strides, which may be any
      OFL_ASSIGN_OR_RETURN(Geometry g, def_.view(call_.inputs[0], call_.attrs));
      plan_.specs[0].shape = std::move(g.shape);
      plan_.specs[0].dtype = inputs_[0].dtype;
      if (def_.sbp || call_.inputs[0].is_contiguous()) return OkStatus();
      return Error(ErrorKind::kNotImplemented, def_.name, "(): ", Describe(call_.inputs[0]),
                   " is global and not contiguous");
    }
    OFL_RETURN_IF_ERROR(InferOutputs(def_, inputs_, call_.attrs, &plan_.specs));
    const Tensor* self = def_.mutates() ? &call_.inputs[0] : nullptr;
    if (!self || (plan_.specs[0].shape == self->shape() && plan_.specs[0].dtype == self->dtype())) {
      return OkStatus();
    }
    return Error(ErrorKind::kShape, def_.name, "(): the result of shape ",
                 plan_.specs[0].shape.ToString(), " (", Name(plan_.specs[0].dtype),
                 ") cannot be written into ", Describe(*self));
  }

  Sbp CurrentOf(size_t i, int d) const {
    const GlobalSpec* g = GlobalOf(call_.inputs[i]);
    return g ? g->sbp[d] : Sbp::Broadcast();
  }

  Score ScoreOf(const SbpSignature& s, int d) const {
    const int parts = plan_.placement->grid()[d];
    const bool splits = std::any_of(s.inputs.begin(), s.inputs.end(),
                                    [](const Sbp& in) { return in.kind == Sbp::Kind::kSplit; });
    Score score;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const TensorSpec& t = inputs_[i];
      const Sbp current = CurrentOf(i, d);
      if (!t.defined || current == s.inputs[i]) continue;
      // A bias that only one rank adds.
      const bool once = splits && current.kind == Sbp::Kind::kBroadcast &&
                        s.inputs[i].kind == Sbp::Kind::kPartialSum;
      const double bytes = static_cast<double>(t.shape.numel()) * SizeOf(t.dtype);
      score.bytes += once ? 0 : BoxingBytes(t.shape, bytes, current, s.inputs[i], parts);
      ++score.moves;
      // A number goes whole, but where the tensor that changes is a sum: there it counts once.
      if (!GlobalOf(call_.inputs[i])) score.bytes += kNeverUnasked;
    }
    for (const Sbp& out : s.outputs) {
      score.whole += out.kind == Sbp::Kind::kBroadcast ? 2 : out.kind == Sbp::Kind::kPartialSum;
    }
    return score;
  }

  // What must come out even does so in the parts of parts as well.
  bool FitsGrid(const SbpSignature& s, int d) const {
    int64_t parts = plan_.placement->grid()[d];
    for (int outer = 0; outer < d; ++outer) {
      if (chosen_[outer].inputs == s.inputs) parts *= plan_.placement->grid()[outer];
    }
    return s.FitsParts(static_cast<int>(parts));
  }

  // The tensor that changes keeps its SBP; what nothing goes into comes out as asked.
  bool Allowed(const SbpSignature& s, int d) const {
    if (!FitsGrid(s, d)) return false;
    if (def_.mutates()) return s.inputs[0] == CurrentOf(0, d) && s.outputs[0] == CurrentOf(0, d);
    if (!wanted_.empty() && !s.outputs.empty()) return s.outputs[0] == wanted_[d];
    return true;
  }

  SbpSignature Choose(int d) {
    SbpSignature whole;
    whole.inputs.assign(inputs_.size(), Sbp::Broadcast());
    whole.outputs.assign(plan_.specs.size(), Sbp::Broadcast());
    const SbpSignature* best = Allowed(whole, d) ? &whole : nullptr;
    Score least = ScoreOf(whole, d);
    for (const SbpSignature& s : candidates_) {
      if (!Allowed(s, d)) continue;
      const Score score = ScoreOf(s, d);
      if (best && !(score < least)) continue;
      best = &s;
      least = score;
    }
    if (!best) {
      best = &whole;
      least = ScoreOf(whole, d);
      plan_.aside = plan_.aside || def_.mutates();
    }
    plan_.bytes += least.bytes < kNeverUnasked ? least.bytes : 0;
    return *best;
  }

  // The attributes of this process's shard, by one dim of the grid after the other.
  Status InferHere() {
    Specs inputs = inputs_;
    OutputSpecs outputs = plan_.specs;
    for (int d = 0; d < plan_.placement->ndim(); ++d) {
      const SbpSignature& s = chosen_[d];
      const auto is_whole = [](const Sbp& x) { return x.kind == Sbp::Kind::kBroadcast; };
      if (std::all_of(s.inputs.begin(), s.inputs.end(), is_whole) &&
          std::all_of(s.outputs.begin(), s.outputs.end(), is_whole)) {
        continue;
      }
      const int part = plan_.placement->Here()[d], parts = plan_.placement->grid()[d];
      Specs shards = inputs;
      for (size_t i = 0; i < shards.size(); ++i) {
        if (!shards[i].defined) continue;
        shards[i].shape = ShardShape(shards[i].shape, s.inputs[i], part, parts);
      }
      PhysicalContext c{.signature = s,
                        .logical_inputs = inputs,
                        .logical_outputs = outputs,
                        .inputs = shards,
                        .part = part,
                        .parts = parts,
                        .attrs = plan_.attrs};
      OutputSpecs inner = outputs;
      OFL_RETURN_IF_ERROR(InferPhysical(def_, c, &inner));
      plan_.weight *= WeightOf(def_, c);
      plan_.attrs = std::move(c.attrs);
      inputs = std::move(shards);
      outputs = std::move(inner);
    }
    return OkStatus();
  }

  const OpCall& call_;
  const OpDef& def_;
  GlobalPlan& plan_;
  Specs inputs_;
  NdSbp wanted_;  // by the scope; empty where there are inputs
  SbpSignatures candidates_;
  SbpSignatures chosen_;  // per dim of the grid
};

}  // namespace

double BoxingBytes(const Shape& shape, double bytes, const Sbp& from, const Sbp& to, int parts) {
  if (from == to || parts == 1) return 0;
  const double share = bytes * (parts - 1) / parts;
  using Kind = Sbp::Kind;
  if (to.kind == Kind::kPartialSum) return kNeverUnasked;
  if (from.kind == Kind::kBroadcast) return 0;
  double uneven = 1;
  if (from.kind == Kind::kSplit) uneven = Unevenness(shape[from.axis], parts);
  if (to.kind == Kind::kSplit) uneven *= Unevenness(shape[to.axis], parts);
  if (from.kind == Kind::kSplit) return share * uneven / (to.kind == Kind::kSplit ? parts : 1);
  return to.kind == Kind::kSplit ? share * uneven : 2 * share;
}

StatusOr<std::shared_ptr<const GlobalPlan>> PlanOf(const OpCall& call) {
  constexpr size_t kMost = 1 << 14;  // then attributes that differ from call to call have filled it
  thread_local std::unordered_map<Words, std::shared_ptr<const GlobalPlan>, WordsHash> plans;
  const OpDef& def = call.op.def();
  const PlaceAttrs place(def);
  Words key = KeyOf(call, place);
  if (const auto found = plans.find(key); found != plans.end()) {
    if (place.seed < 0) return found->second;
    auto plan = std::make_shared<GlobalPlan>(*found->second);
    for (const int i : {place.seed, place.offset}) plan->attrs[i] = call.attrs[i];
    return plan;
  }
  auto plan = std::make_shared<GlobalPlan>();
  OFL_RETURN_IF_ERROR(Planner(call, plan.get()).Run());
  if (def.random && place.seed < 0) return plan;  // whatever makes each call another
  if (plans.size() >= kMost) plans.clear();
  plans.emplace(std::move(key), plan);
  return plan;
}

}  // namespace oneflow_lite
