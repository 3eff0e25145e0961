// SPDX-License-Identifier: Apache-2.0
//
// The autograd stage of the dispatch chain, and the node it records for an op.
#include "oneflow_lite/framework/autograd.h"

#include <algorithm>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/engine.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/owned.h"

namespace oneflow_lite {
namespace {

thread_local uint64_t next_sequence = 0;

// The node of a recorded op.
class OpNode final : public Node {
 public:
  OpNode(const OpDef& op, const Attrs& attrs, Needs needs, absl::Span<const Tensor> inputs)
      : op_(op), attrs_(attrs), needs_(needs) {
    specs_.reserve(inputs.size());
    for (const Tensor& t : inputs) specs_.push_back(SpecOf(t));
  }

  // Before the op runs: it may change its first input.
  Status SaveInputs(absl::Span<const Tensor> inputs) {
    if (!op_.save) return OkStatus();
    plan_ = op_.save(attrs_, needs_);
    saved_inputs_ = plan_.inputs ? inputs.size() : 0;
    saved_.Resize(saved_inputs_);
    for (size_t i = 0; i < saved_inputs_; ++i) {
      if (!(plan_.inputs >> (i & 63) & 1) || !inputs[i].defined()) continue;
      Tensor t = inputs[i];
      if (plan_.keep_numbers && t.impl()->wrapped_number) {
        saved_.Set(i, SavedTensor::Number(t));
        continue;
      }
      if (i == 0 && op_.mutates()) {
        OFL_ASSIGN_OR_RETURN(t, autograd::CloneTensor(t));
      }
      OFL_ASSIGN_OR_RETURN(SavedTensor saved, SavedTensor::Save(t, false));
      saved_.Set(i, std::move(saved));
    }
    return OkStatus();
  }

  Status SaveOutputs(absl::Span<const Tensor> outputs) {
    if (!plan_.outputs) return OkStatus();
    saved_.Resize(saved_inputs_ + outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!(plan_.outputs >> i & 1)) continue;
      OFL_ASSIGN_OR_RETURN(SavedTensor saved,
                           SavedTensor::Save(outputs[i], true, static_cast<uint32_t>(i)));
      saved_.Set(saved_inputs_ + i, std::move(saved));
    }
    return OkStatus();
  }

  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    if (!op_.backward) {
      return Error(ErrorKind::kNotImplemented, op_.name, "(): the op has no gradient (", op_.file,
                   ":", op_.line, ")");
    }
    OFL_ASSIGN_OR_RETURN(const TensorList saved, saved_.Unpack(this, op_.name));
    const absl::Span<const Tensor> all(saved);
    TensorList result(specs_.size());
    GradContext context(op_, attrs_, needs_, specs_, grads, all.subspan(0, saved_inputs_),
                        all.subspan(std::min(saved_inputs_, all.size())), &result);
    OFL_RETURN_IF_ERROR(op_.backward(context));
    if (overwrites && (needs_ & 1) && !result[0].defined()) {
      OFL_ASSIGN_OR_RETURN(result[0], autograd::ZerosOf(specs_[0]));
    }
    return result;
  }

  void ReleaseSaved() override { saved_.Free(); }
  std::string name() const override { return op_.name + "_backward"; }
  void VisitOwned(OwnedWalk& walk) const override {
    Node::VisitOwned(walk);
    saved_.VisitOwned(walk);
  }

  // The op changed a tensor, not a view: where nothing of the old value remains, its gradient is 0.
  bool overwrites = false;

 private:
  const OpDef& op_;
  Attrs attrs_;
  Needs needs_;
  SavePlan plan_;
  absl::InlinedVector<TensorSpec, 4> specs_;
  SavedTensors saved_;  // of the inputs, then of the outputs
  size_t saved_inputs_ = 0;
};

// An in-place op may not destroy what a leaf's gradient is about. A view that requires grad of a
// base that does not is a leaf, or comes from one.
Status CheckMayMutate(const OpDef& op, const Tensor& self) {
  if (const AutogradMeta* meta = autograd::Find(self); meta && meta->of_function) {
    return Error(ErrorKind::kRuntime, op.name,
                 "(): a view that a Function gave cannot be changed in place: its gradient by the "
                 "Function's backward would be lost; clone it first, or in forward");
  }
  const Tensor base = autograd::Base(self);
  const Tensor& owner = base.defined() ? base : self;
  const bool is_leafs = autograd::RequiresGrad(owner) && autograd::IsLeaf(owner);
  if (is_leafs || (autograd::RequiresGrad(self) && !autograd::RequiresGrad(owner))) {
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
  const AutogradMeta* const of_input = autograd::Find(input);
  AutogradMeta& meta = autograd::MetaOf((*call.outputs)[0]);
  meta.base = of_input && of_input->base.defined() ? of_input->base : input;
  meta.view_version = input.version();
  meta.of_function = of_input && of_input->of_function;
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
    if (!op.lists.empty() && GradEnabled()) OFL_RETURN_IF_ERROR(CheckMayMutateLists(call));
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
  OFL_RETURN_IF_ERROR(autograd::KeepStream(node.get(), (*call.outputs)[0].device()));
  OFL_RETURN_IF_ERROR(node->SaveOutputs(*call.outputs));
  node->overwrites = op.mutates() && !autograd::Base(call.inputs[0]).defined();
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
  if (grad->defined() && grad->device() != specs_[i].device) {
    return DeviceMismatch(op_.name, absl::StrCat("backward: the gradient of ", input_name(i)),
                          grad->device(), absl::StrCat("the input (", op_.file, ":", op_.line, ")"),
                          specs_[i].device);
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

void Node::VisitOwned(OwnedWalk& walk) const {
  for (const Edge& edge : edges) walk.Visit(edge.node);
  walk.Visit(hooks);
}

void Node::ClearOwned() {
  hooks.Clear();
  ReleaseSaved();
  edges.clear();
}

}  // namespace oneflow_lite
