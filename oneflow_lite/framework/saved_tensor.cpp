// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/saved_tensor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/owned.h"

namespace oneflow_lite {
namespace {

thread_local std::vector<std::shared_ptr<const SavedTensorHooks>> hooks_in_force;

}  // namespace

SavedTensorHooksGuard::SavedTensorHooksGuard(SavedTensorHooks hooks) {
  hooks_in_force.push_back(std::make_shared<const SavedTensorHooks>(std::move(hooks)));
}
SavedTensorHooksGuard::~SavedTensorHooksGuard() {
  const auto gone = std::move(hooks_in_force.back());  // its end may run anything
  hooks_in_force.pop_back();
}

StatusOr<SavedTensor> SavedTensor::Save(const Tensor& t, bool is_output, uint32_t output_nr) {
  SavedTensor saved;
  saved.output_nr_ = output_nr;
  saved.is_output_ = is_output;
  saved.version_ = t.version();
  if (hooks_in_force.empty()) {
    saved.data_ = is_output ? t.Detach() : t;
    return saved;
  }
  Packed packed;
  packed.hooks = hooks_in_force.back();
  if (!packed.hooks->pack || !packed.hooks->unpack) {
    return BadValue("saved_tensors_hooks", "one of the hooks", "empty", "a function");
  }
  {
    GradGuard no_grad(false);
    OFL_ASSIGN_OR_RETURN(packed.value, packed.hooks->pack(t.Detach()));
  }
  if (!is_output) packed.edge = autograd::GradientEdge(t);
  saved.packed_ = std::make_shared<const Packed>(std::move(packed));
  return saved;
}

SavedTensor SavedTensor::Number(const Tensor& t) {
  SavedTensor saved;
  saved.data_ = t;
  saved.version_ = t.version();
  saved.is_number_ = true;
  return saved;
}

StatusOr<Tensor> SavedTensor::Unpack(Node* owner, const std::string& op) const {
  Tensor t;
  if (packed_) {
    OFL_ASSIGN_OR_RETURN(t, packed_->hooks->unpack(packed_->value.get()));
    if (!t.defined()) return NotDefined(op, "what the hook unpack gave");
    t = t.Detach();
    if (const Edge& edge = packed_->edge; edge.node) autograd::SetHistory(t, edge.node, edge.slot);
  } else if (data_.version() != version_) {
    return Error(ErrorKind::kRuntime, op, "(): ", Describe(data_),
                 " saved for backward was changed in place since: it is at version ",
                 data_.version(), ", but version ", version_, " was saved");
  } else {
    t = is_output_ ? data_.Detach() : data_;
  }
  if (is_output_ && IsFloating(t.dtype())) autograd::SetHistory(t, Ref<Node>(owner), output_nr_);
  return t;
}

void SavedTensor::VisitOwned(OwnedWalk& walk) const {
  walk.Visit(data_);
  if (!walk.VisitShared(packed_)) return;
  walk.Visit(packed_->edge.node);
  walk.VisitForeign(packed_->value);
  if (!walk.VisitShared(packed_->hooks)) return;
  walk.VisitForeign(packed_->hooks->foreign_pack);
  walk.VisitForeign(packed_->hooks->foreign_unpack);
}

StatusOr<TensorList> SavedTensors::Unpack(Node* owner, const std::string& op) const {
  List saved;
  {
    std::lock_guard lock(mutex_);
    if (freed_) {
      return Error(ErrorKind::kRuntime, op,
                   "(): backward through this graph a second time, but its saved tensors were "
                   "freed; pass retain_graph=True the first time");
    }
    saved = list_;
  }
  TensorList tensors(saved.size());
  for (size_t i = 0; i < saved.size(); ++i) {
    if (!saved[i].defined()) continue;
    OFL_ASSIGN_OR_RETURN(tensors[i], saved[i].Unpack(owner, op));
  }
  return tensors;
}

void SavedTensors::Free() {
  List gone;  // goes after the lock
  std::lock_guard lock(mutex_);
  const auto goes = [](const SavedTensor& saved) { return saved.defined() && !saved.is_number(); };
  if (std::none_of(list_.begin(), list_.end(), goes)) return;  // then nothing will be missed
  gone.swap(list_);
  freed_ = true;
}

void SavedTensors::VisitOwned(OwnedWalk& walk) const {
  for (const SavedTensor& saved : list_) saved.VisitOwned(walk);
}

}  // namespace oneflow_lite
