// SPDX-License-Identifier: Apache-2.0
//
// The autograd stage of the dispatch chain, and the node it records for an op.
#include "oneflow_lite/framework/autograd.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/engine.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

thread_local uint64_t next_sequence = 0;
thread_local std::vector<SavedTensorHooks> saved_hooks;

// Nodes whose last reference went while another is being deleted on this thread wait here.
struct Graveyard {
  std::vector<Node*> waiting;
  bool draining = false;
};
thread_local Graveyard graveyard;

// The node of a recorded op.
class OpNode final : public Node {
 public:
  OpNode(const OpDef& op, const Attrs& attrs, Needs needs, absl::Span<const Tensor> inputs)
      : op_(op), attrs_(attrs), needs_(needs) {
    for (const Tensor& t : inputs) {
      if (t.defined())
        specs_.push_back({t.shape(), t.dtype(), t.device(), true});
      else
        specs_.push_back({{}, DType::kFloat32, {}, false});
    }
  }

  // Before the op runs: it may change its first input.
  Status SaveInputs(absl::Span<const Tensor> inputs) {
    if (!op_.save) return OkStatus();
    plan_ = op_.save(attrs_, needs_);
    saved_inputs_.resize(plan_.inputs ? inputs.size() : 0);
    for (size_t i = 0; i < saved_inputs_.size(); ++i) {
      if (!(plan_.inputs >> (i & 63) & 1) || !inputs[i].defined()) continue;
      Tensor t = inputs[i];
      if (i == 0 && op_.mutates()) {
        OFL_ASSIGN_OR_RETURN(t, autograd::CloneTensor(t));
      }
      OFL_ASSIGN_OR_RETURN(saved_inputs_[i], SavedTensor::Save(t, false));
    }
    return OkStatus();
  }

  Status SaveOutputs(absl::Span<const Tensor> outputs) {
    saved_outputs_.resize(plan_.outputs ? outputs.size() : 0);
    for (size_t i = 0; i < saved_outputs_.size(); ++i) {
      if (!(plan_.outputs >> i & 1)) continue;
      OFL_ASSIGN_OR_RETURN(saved_outputs_[i],
                           SavedTensor::Save(outputs[i], true, static_cast<uint32_t>(i)));
    }
    return OkStatus();
  }

  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    SavedTensors saved_inputs, saved_outputs;
    bool released = false;
    {
      std::lock_guard lock(saved_mutex_);
      released = released_;
      saved_inputs = saved_inputs_;
      saved_outputs = saved_outputs_;
    }
    if (released) {
      return Error(ErrorKind::kRuntime, op_.name,
                   "(): backward through this graph a second time, but its saved tensors were "
                   "freed; pass retain_graph=True the first time");
    }
    if (!op_.backward) {
      return Error(ErrorKind::kNotImplemented, op_.name, "(): the op has no gradient (", op_.file,
                   ":", op_.line, ")");
    }
    OFL_ASSIGN_OR_RETURN(TensorList inputs, Unpack(saved_inputs));
    OFL_ASSIGN_OR_RETURN(TensorList outputs, Unpack(saved_outputs));
    TensorList result(specs_.size());
    GradContext context(op_, attrs_, needs_, specs_, grads, std::move(inputs), std::move(outputs),
                        &result);
    OFL_RETURN_IF_ERROR(op_.backward(context));
    return result;
  }

  void ReleaseSaved() override {
    SavedTensors inputs, outputs;  // go after the lock
    std::lock_guard lock(saved_mutex_);
    released_ = true;
    inputs.swap(saved_inputs_);
    outputs.swap(saved_outputs_);
  }
  std::string name() const override { return op_.name + "_backward"; }

 private:
  using SavedTensors = absl::InlinedVector<SavedTensor, 1>;

  StatusOr<TensorList> Unpack(const SavedTensors& saved) {
    TensorList tensors(saved.size());
    for (size_t i = 0; i < saved.size(); ++i) {
      if (!saved[i].defined()) continue;
      OFL_ASSIGN_OR_RETURN(tensors[i], saved[i].Unpack(this, op_.name));
    }
    return tensors;
  }

  const OpDef& op_;
  Attrs attrs_;
  Needs needs_;
  SavePlan plan_;
  absl::InlinedVector<TensorSpec, 4> specs_;
  // One pass may free what was saved while another one reads it.
  std::mutex saved_mutex_;
  bool released_ = false;
  SavedTensors saved_inputs_, saved_outputs_;
};

// An in-place op may not destroy what a leaf's gradient is about.
Status CheckMayMutate(const OpDef& op, const Tensor& self) {
  const Tensor base = autograd::Base(self);
  const Tensor& owner = base.defined() ? base : self;
  if (autograd::RequiresGrad(owner) && autograd::IsLeaf(owner)) {
    return Error(ErrorKind::kRuntime, op.name,
                 "(): ", base.defined() ? "a view of a leaf" : "a leaf",
                 " that requires grad cannot be changed in place; use no_grad or detach");
  }
  return OkStatus();
}

// Nobody records what an op over lists does to them.
Status CheckMayMutateLists(const OpCall& call) {
  const OpDef& op = call.op.def();
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!op.MutatesInput(i, call.inputs.size()) || !call.inputs[i].defined() ||
        !autograd::RequiresGrad(call.inputs[i])) {
      continue;
    }
    return Error(ErrorKind::kRuntime, op.name, "(): a tensor of ",
                 op.ListOf(i, call.inputs.size())->name,
                 " requires grad, and its change cannot be recorded; use no_grad or detach");
  }
  return OkStatus();
}

void RememberBase(const OpCall& call) {
  const Tensor& input = call.inputs[0];
  const Tensor base = autograd::Base(input);
  AutogradMeta& meta = autograd::MetaOf((*call.outputs)[0]);
  meta.base = base.defined() ? base : input;
  meta.view_version = input.version();
}

}  // namespace

Status internal::DispatchAutograd(OpCall& call) {
  const OpDef& op = call.op.def();
  Needs needs = 0;
  if (GradEnabled() && op.differentiable) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.inputs[i].defined() && autograd::RequiresGrad(call.inputs[i])) needs |= Bit(i & 63);
    }
  }
  if (needs == 0) {
    if (GradEnabled() && !op.lists.empty()) OFL_RETURN_IF_ERROR(CheckMayMutateLists(call));
    OFL_RETURN_IF_ERROR(DispatchBackend(call));
    if (op.views()) RememberBase(call);
    return OkStatus();
  }

  if (op.mutates()) OFL_RETURN_IF_ERROR(CheckMayMutate(op, call.inputs[0]));
  auto node = MakeRef<OpNode>(op, call.attrs, needs, call.inputs);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const bool need = call.inputs[i].defined() && (needs >> (i & 63) & 1);
    if (need) OFL_RETURN_IF_ERROR(autograd::RefreshView(call.inputs[i]));
    node->edges.push_back(need ? autograd::GradientEdge(call.inputs[i]) : Edge{});
  }
  OFL_RETURN_IF_ERROR(node->SaveInputs(call.inputs));
  OFL_RETURN_IF_ERROR(DispatchBackend(call));
  node->num_outputs = static_cast<uint32_t>(call.outputs->size());
  const Device device = (*call.outputs)[0].device();
  if (device.type == DeviceType::kCUDA) {
    OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(device));
    node->stream = Ref<Stream>(stream);
  }
  OFL_RETURN_IF_ERROR(node->SaveOutputs(*call.outputs));
  if (op.mutates()) return autograd::RebaseHistory(call.inputs[0], std::move(node));
  for (size_t i = 0; i < call.outputs->size(); ++i) {
    if (!IsFloating((*call.outputs)[i].dtype())) continue;
    autograd::SetHistory((*call.outputs)[i], node, static_cast<uint32_t>(i));
  }
  if (op.views()) RememberBase(call);
  return OkStatus();
}

std::string GradContext::input_name(int i) const {
  const int last = static_cast<int>(op_.inputs.size()) - 1;
  if (!op_.variadic() || i < last) return op_.inputs[i].name;
  return absl::StrCat(op_.inputs[last].name, "[", i - last, "]");
}

Status GradContext::Set(int i, StatusOr<Tensor> grad) {
  OFL_RETURN_IF_ERROR(grad.status());
  if (i < 0 || i >= num_inputs()) {
    return Error(ErrorKind::kIndex, op_.name, "(): backward set the gradient of input ", i,
                 ", but the op has ", num_inputs());
  }
  const bool shape = grad->defined() && grad->shape() != specs_[i].shape;
  if (shape || (grad->defined() && grad->dtype() != specs_[i].dtype)) {
    const std::string argument = absl::StrCat("backward: the gradient of ", input_name(i));
    const std::string place = absl::StrCat(" (", op_.file, ":", op_.line, ")");
    return shape ? ShapeMismatch(op_.name, argument, grad->shape(),
                                 specs_[i].shape.ToString() + place)
                 : DTypeMismatch(op_.name, argument, grad->dtype(), Name(specs_[i].dtype) + place);
  }
  result_[i] = *std::move(grad);
  return OkStatus();
}

Status GradContext::CheckAnySet(bool zeros_stand_in) const {
  const auto defined = [](const Tensor& t) { return t.defined(); };
  if (!zeros_stand_in && !std::all_of(grads_.begin(), grads_.end(), defined)) return OkStatus();
  int first = -1;
  for (int i = num_inputs() - 1; i >= 0; --i) {
    if (!needs(i)) continue;
    if (defined(result_[i])) return OkStatus();
    first = i;
  }
  if (first < 0) return OkStatus();
  return Error(ErrorKind::kValue, op_.name, "(): backward gave no gradient, though ",
               input_name(first), " needs one; where it is zero, give zeros (", op_.file, ":",
               op_.line, ")");
}

Node::Node() : sequence(next_sequence++) {}

void Node::Destroy() {
  graveyard.waiting.push_back(this);
  if (graveyard.draining) return;
  graveyard.draining = true;
  while (!graveyard.waiting.empty()) {
    Node* node = graveyard.waiting.back();
    graveyard.waiting.pop_back();
    delete node;  // may bring more nodes here
  }
  graveyard.draining = false;
}

StatusOr<SavedTensor> SavedTensor::Save(const Tensor& t, bool is_output, uint32_t output_nr) {
  SavedTensor saved;
  saved.output_nr_ = output_nr;
  saved.is_output_ = is_output;
  saved.version_ = t.version();
  if (saved_hooks.empty()) {
    saved.data_ = is_output ? t.Detach() : t;
    return saved;
  }
  OFL_ASSIGN_OR_RETURN(saved.packed_, saved_hooks.back().pack(t.Detach()));
  saved.unpack_ = saved_hooks.back().unpack;
  if (!is_output) saved.edge_ = autograd::GradientEdge(t);
  return saved;
}

StatusOr<Tensor> SavedTensor::Unpack(Node* owner, const std::string& op) const {
  Tensor t;
  if (unpack_) {
    OFL_ASSIGN_OR_RETURN(t, unpack_(packed_.get()));
    t = t.Detach();
    if (edge_.node) autograd::SetHistory(t, edge_.node, edge_.slot);
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

SavedTensorHooksGuard::SavedTensorHooksGuard(SavedTensorHooks hooks) {
  saved_hooks.push_back(std::move(hooks));
}
SavedTensorHooksGuard::~SavedTensorHooksGuard() { saved_hooks.pop_back(); }

}  // namespace oneflow_lite
