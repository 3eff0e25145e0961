// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/dispatch.h"

#include <vector>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/destination.h"

namespace oneflow_lite {
namespace {

constexpr int kNumStages = 2;

// A mode in the chain; null once its guard has gone while modes behind it stay.
struct Entry {
  DispatchMode* mode;
  const ModeGuard* guard;
};

struct ThreadState {
  std::vector<Entry> modes[kNumStages];
  bool any_mode = false;
  bool grad_enabled = true;
};
// Each op asks several times, so without a call of __tls_get_addr.
[[gnu::tls_model("initial-exec")]] thread_local ThreadState state;

void UpdateAnyMode() { state.any_mode = !state.modes[0].empty() || !state.modes[1].empty(); }

// Runs mode `index` of `stage`, or whatever comes after it.
Status RunFrom(DispatchStage stage, size_t index, OpCall& call) {
  for (int s = static_cast<int>(stage); s < kNumStages; ++s, index = 0) {
    const auto& modes = state.modes[s];
    while (index < modes.size() && !modes[index].mode) ++index;
    if (index < modes.size()) {
      return modes[index].mode->Run(call, {static_cast<DispatchStage>(s), index + 1});
    }
  }
  return internal::DispatchAutograd(call);
}

bool Fits(const OpDef& def, const OpCall& call) {
  const size_t given = call.inputs.size(), declared = def.inputs.size();
  if (call.attrs.size() != def.attrs.size()) return false;
  if (!def.variadic()) return given == declared;
  return given >= declared && (def.lists.empty() || (given - declared + 1) % def.lists.size() == 0);
}

Status DoesNotFit(const OpDef& def, const OpCall& call) {
  return Error(ErrorKind::kType, def.name, "(): called with ", call.inputs.size(), " inputs and ",
               call.attrs.size(), " attributes, but the op is ", def.Schema(),
               def.variadic() ? ", where a list has at least one tensor" : "");
}

// A mode may be anyone's.
Status DispatchThroughModes(OpCall& call) {
  const OpDef& def = call.op.def();
  OFL_RETURN_IF_ERROR(RunFrom(DispatchStage::kObserver, 0, call));
  if (call.outputs->size() == def.outputs.size()) return OkStatus();
  return Error(ErrorKind::kRuntime, def.name, "(): a dispatch mode gave ", call.outputs->size(),
               " outputs, but the op has ", def.outputs.size());
}

Status Dispatch(OpCall& call) {
  const OpDef& def = call.op.def();
  if (!Fits(def, call)) return DoesNotFit(def, call);
  return state.any_mode ? DispatchThroughModes(call) : internal::DispatchAutograd(call);
}

}  // namespace

Status DispatchMode::Next::operator()(OpCall& call) const {
  const OpDef& def = call.op.def();
  return Fits(def, call) ? RunFrom(stage_, index_, call) : DoesNotFit(def, call);
}

ModeGuard::ModeGuard(DispatchStage stage, DispatchMode* mode) : stage_(stage) {
  state.modes[static_cast<int>(stage)].push_back({mode, this});
  UpdateAnyMode();
}
// Of two guards that do not nest either may go first.
ModeGuard::~ModeGuard() {
  auto& modes = state.modes[static_cast<int>(stage_)];
  for (Entry& entry : modes) {
    if (entry.guard == this) entry = {};
  }
  while (!modes.empty() && !modes.back().mode) modes.pop_back();
  UpdateAnyMode();
}

bool internal::AnyMode() { return state.any_mode; }

bool GradEnabled() { return state.grad_enabled; }
void SetGradEnabled(bool enabled) { state.grad_enabled = enabled; }

StatusOr<TensorList> CallAll(const OpExpr& op, absl::Span<const Tensor> inputs,
                             const Attrs& attrs) {
  TensorList outputs;
  OpCall call{op, inputs, attrs, &outputs};
  OFL_RETURN_IF_ERROR(Dispatch(call));
  return outputs;
}

StatusOr<Tensor> Call(const OpExpr& op, absl::Span<const Tensor> inputs, const Attrs& attrs) {
  TensorList outputs;
  OpCall call{op, inputs, attrs, &outputs};
  OFL_RETURN_IF_ERROR(Dispatch(call));
  return std::move(outputs[0]);
}

StatusOr<Tensor> CallOver(const OpExpr& op, const Tensor& x, const Attrs& attrs) {
  TensorList outputs;
  OpCall call{op, absl::MakeConstSpan(&x, 1), attrs, &outputs, /*overwrites=*/true};
  OFL_RETURN_IF_ERROR(Dispatch(call));
  return std::move(outputs[0]);
}

}  // namespace oneflow_lite
