// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/autocast.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "oneflow_lite/core/stream.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

// Rows as they are added, and once an op has asked, by op.
struct Table {
  std::vector<AutocastRow> rows;
  std::once_flag built;
  std::unordered_map<const OpDef*, const AutocastRow*> by_op;  // constant once built
};
Table& GetTable() {
  static auto* table = new Table;
  return *table;
}

// A cast of a leaf, or of a view of one. It stands for the tensor as long as all of this is so.
struct CachedCast {
  Tensor leaf;  // kept, so that no other takes its place
  Ref<Storage> storage;
  uint32_t version;
  Shape shape;
  Dims strides;
  int64_t offset;
  bool recorded;       // made while autograd recorded
  Ref<Stream> stream;  // where it was made
  bool in_capture;     // which may have recorded the cast instead of running it
  Tensor result;
};

class Autocaster final : public DispatchMode {
 public:
  Status Run(OpCall& call, const Next& next) override;
};

struct Pushed {
  DeviceType type;
  AutocastOptions before;
  bool rested;
};

constexpr int kTypes = 2;  // CPU and CUDA

struct ThreadState {
  AutocastOptions options[kTypes] = {{.enabled = false}, {.enabled = false}};
  bool rests = false;
  std::vector<Pushed> pushed;
  std::unordered_multimap<const TensorImpl*, CachedCast> casts;  // by the leaf
  std::unique_ptr<ModeGuard> guard;

  // A thread that ends inside frees nothing: the rest of the chain may have gone before.
  ~ThreadState() {
    guard.release();
    if (!casts.empty()) new std::unordered_multimap(std::move(casts));
  }
};

ThreadState& State() {
  thread_local ThreadState state;
  return state;
}

int IndexOf(DeviceType type) { return type == DeviceType::kCUDA ? 1 : 0; }

// What is in force for a tensor of that type; null where nothing is.
const AutocastOptions* OptionsFor(DeviceType type) {
  const ThreadState& state = State();
  if (state.rests || type == DeviceType::kMeta) return nullptr;
  const AutocastOptions& options = state.options[IndexOf(type)];
  return options.enabled ? &options : nullptr;
}

bool IsCastable(const Tensor& t, DeviceType type) {
  return t.defined() && IsFloating(t.dtype()) && t.dtype() != DType::kFloat64 &&
         t.device().type == type;
}

StatusOr<Tensor> RunCast(const Tensor& t, DType dtype) {
  static const OpExpr& op = OpBuilder("cast").Input("in").Output("out").Attr("dtype").Get();
  return Call(op, {t}, {dtype});
}

// The leaf that requires grad which t is, or is a view of; undefined where there is none.
Tensor LeafOf(const Tensor& t) {
  const Tensor base = autograd::Base(t);
  const Tensor& owner = base.defined() ? base : t;
  return autograd::RequiresGrad(owner) && autograd::IsLeaf(owner) ? owner : Tensor();
}

bool StandsFor(const CachedCast& c, const Tensor& t, DType dtype, const Stream& stream) {
  return c.storage == t.storage() && c.version == t.version() && c.offset == t.offset() &&
         c.shape == t.shape() && c.strides == t.strides() && c.result.dtype() == dtype &&
         c.recorded == GradEnabled() && c.stream.get() == &stream &&
         c.in_capture == stream.capturing();
}

StatusOr<Tensor> CachedOrCast(const Tensor& t, DType dtype) {
  const Tensor leaf = LeafOf(t);
  if (!leaf.defined()) return RunCast(t, dtype);
  OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(t.device()));
  auto& casts = State().casts;
  std::vector<CachedCast> stale;  // freed after the loop: freeing a tensor may run code that casts
  const auto [begin, end] = casts.equal_range(leaf.impl());
  for (auto it = begin; it != end;) {
    if (StandsFor(it->second, t, dtype, *stream)) return it->second.result;
    const bool changed = it->second.version != it->second.storage->version();
    if (changed) stale.push_back(std::move(it->second));
    it = changed ? casts.erase(it) : std::next(it);
  }
  OFL_ASSIGN_OR_RETURN(Tensor result, RunCast(t, dtype));
  casts.emplace(leaf.impl(),
                CachedCast{leaf, t.storage(), t.version(), t.shape(), t.strides(), t.offset(),
                           GradEnabled(), Ref<Stream>(stream), stream->capturing(), result});
  return result;
}

StatusOr<Tensor> CastTo(const Tensor& t, DType dtype, bool cache) {
  return cache && SizeOf(dtype) < SizeOf(t.dtype()) ? CachedOrCast(t, dtype) : RunCast(t, dtype);
}

// The attribute that chooses the dtype of an op's result; -1 where there is none.
int ResultDTypeAttr(const OpDef& op) {
  for (size_t i = 0; i < op.attrs.size(); ++i) {
    const AttrDef& attr = op.attrs[i];
    const bool names_result = attr.name == "dtype" || attr.name == "out_dtype";
    if (attr.type == AttrType::kDType && names_result) return static_cast<int>(i);
  }
  return -1;
}

// Where the inputs of a call lie; kMeta where it has none that may be cast.
DeviceType TypeOfCall(const OpCall& call) {
  for (const Tensor& t : call.inputs) {
    if (t.defined() && (t.ndim() > 0 || t.device().type != DeviceType::kCPU)) {
      return t.device().type;
    }
  }
  return call.inputs.empty() || !call.inputs[0].defined() ? DeviceType::kMeta
                                                          : call.inputs[0].device().type;
}

// The dtype that the castable inputs are to have; nothing where they stay as they are.
std::optional<DType> WantedDType(const OpCall& call, DeviceType type, AutocastPolicy policy,
                                 const AutocastOptions& options) {
  std::optional<DType> widest;
  for (const Tensor& t : call.inputs) {
    if (!t.defined() || !IsFloating(t.dtype())) continue;
    if (t.dtype() == DType::kFloat64 && t.ndim() > 0) return std::nullopt;
    if (policy == AutocastPolicy::kWidest && t.ndim() == 0) continue;  // it may be a number
    if (IsCastable(t, type)) widest = widest ? PromoteTypes(*widest, t.dtype()) : t.dtype();
  }
  if (!widest || policy == AutocastPolicy::kWidest) return widest;
  return policy == AutocastPolicy::kLower ? options.dtype : DType::kFloat32;
}

Status Autocaster::Run(OpCall& call, const Next& next) {
  const OpDef& def = call.op.def();
  const AutocastRow* row = AutocastRowOf(def);
  if (!row) return next(call);
  const DeviceType type = TypeOfCall(call);
  const AutocastOptions* options = OptionsFor(type);
  if (!options) return next(call);
  const AutocastPolicy policy = !options->torch             ? row->own
                                : type == DeviceType::kCUDA ? row->torch_cuda
                                                            : row->torch_cpu;
  if (policy == AutocastPolicy::kAsIs || def.mutates() || !def.lists.empty()) return next(call);
  const std::optional<DType> dtype = WantedDType(call, type, policy, *options);
  if (!dtype) return next(call);
  const int attr = policy == AutocastPolicy::kFloat32 ? ResultDTypeAttr(def) : -1;
  if (attr >= 0) {
    Attrs attrs = call.attrs;
    if (!attrs.has(attr) || attrs.get<DType>(attr) == call.inputs[0].dtype()) attrs[attr] = *dtype;
    OpCall changed{call.op, call.inputs, attrs, call.outputs};
    return next(changed);
  }
  const auto differs = [&](const Tensor& t) { return IsCastable(t, type) && t.dtype() != *dtype; };
  if (std::none_of(call.inputs.begin(), call.inputs.end(), differs)) return next(call);
  TensorList inputs(call.inputs.begin(), call.inputs.end());
  for (Tensor& t : inputs) {
    if (!differs(t)) continue;
    OFL_ASSIGN_OR_RETURN(t, CastTo(t, *dtype, options->cache));
  }
  OpCall changed{call.op, inputs, call.attrs, call.outputs};
  return next(changed);
}

// The mode is in the chain while any options are enabled.
void UpdateMode(ThreadState& state) {
  const bool any = std::any_of(std::begin(state.options), std::end(state.options),
                               [](const AutocastOptions& o) { return o.enabled; });
  if (any == static_cast<bool>(state.guard)) return;
  static Autocaster mode;  // what it knows is the thread's
  state.guard = any ? std::make_unique<ModeGuard>(DispatchStage::kAutocast, &mode) : nullptr;
}

}  // namespace

bool AddAutocastRows(absl::Span<const AutocastRow> rows) {
  Table& table = GetTable();
  table.rows.insert(table.rows.end(), rows.begin(), rows.end());
  return true;
}

absl::Span<const AutocastRow> AutocastRows() { return GetTable().rows; }

const AutocastRow* AutocastRowOf(const OpDef& op) {
  Table& table = GetTable();
  std::call_once(table.built, [&] {
    for (const AutocastRow& row : table.rows) {
      const StatusOr<const OpExpr*> expr = FindOp(row.op);
      OFL_CHECK(expr.ok());
      table.by_op.emplace(&(*expr)->def(), &row);
    }
  });
  const auto it = table.by_op.find(&op);
  return it == table.by_op.end() ? nullptr : it->second;
}

void PushAutocast(DeviceType type, const AutocastOptions& options) {
  ThreadState& state = State();
  AutocastOptions& now = state.options[IndexOf(type)];
  state.pushed.push_back({type, now, state.rests});
  now = options;
  state.rests = false;
  UpdateMode(state);
}

bool PopAutocast() {
  ThreadState& state = State();
  if (state.pushed.empty()) return false;
  const Pushed last = state.pushed.back();
  state.pushed.pop_back();
  state.options[IndexOf(last.type)] = last.before;
  state.rests = last.rested;
  UpdateMode(state);
  if (state.pushed.empty()) DropAutocastCache();
  return true;
}

AutocastOptions CurrentAutocast(DeviceType type) {
  const ThreadState& state = State();
  AutocastOptions options = state.options[IndexOf(type)];
  options.enabled = options.enabled && !state.rests;
  return options;
}

void DropAutocastCache() {
  // Taken out first: freeing a tensor may run code that casts.
  const auto casts = std::exchange(State().casts, {});
}

AutocastPause::AutocastPause() : before_(State().rests) { State().rests = true; }
AutocastPause::~AutocastPause() { State().rests = before_; }

DType AutocastLossDType(const Tensor& x) {
  const bool narrow = IsFloating(x.dtype()) && SizeOf(x.dtype()) == 2;
  return narrow && OptionsFor(x.device().type) ? DType::kFloat32 : x.dtype();
}

StatusOr<Tensor> AutocastLowered(const Tensor& t) {
  const AutocastOptions* options = t.defined() ? OptionsFor(t.device().type) : nullptr;
  if (!options || !IsCastable(t, t.device().type) || t.dtype() == options->dtype) return t;
  return CastTo(t, options->dtype, options->cache);
}

}  // namespace oneflow_lite
