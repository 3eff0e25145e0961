// SPDX-License-Identifier: Apache-2.0
//
// The node of autograd.Function: a step of backward that Python wrote (autograd/function.py has the
// comfortable side).
#include <algorithm>

#include "functional/binary.h"
#include "functional/copy.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/owned.h"
#include "python/bindings/arguments.h"
#include "python/bindings/backward.h"
#include "python/bindings/classes.h"
#include "python/bindings/collector.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

// Whether a tensor of `shape` can be broadcast to `to`.
bool BroadcastsTo(const Shape& shape, const Shape& to) {
  const int extra = to.ndim() - shape.ndim();
  if (extra < 0) return false;
  for (int d = 0; d < shape.ndim(); ++d) {
    if (shape[d] != 1 && shape[d] != to[d + extra]) return false;
  }
  return true;
}

class FunctionNode final : public Node {
 public:
  FunctionNode(std::string name, const TensorList& inputs, SharedObject backward)
      : name_(std::move(name)), backward_(std::move(backward)) {
    for (const Tensor& t : inputs) {
      specs_.push_back(SpecOf(t));
      edges.push_back(autograd::RequiresGrad(t) ? autograd::GradientEdge(t) : Edge{});
    }
  }

  Status Save(const TensorList& tensors, const TensorList& outputs) {
    saved_.Resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& t = tensors[i];
      if (!t.defined()) continue;
      size_t nr = 0;
      while (nr < outputs.size() && !outputs[nr].IsSame(t)) ++nr;
      OFL_ASSIGN_OR_RETURN(SavedTensor saved,
                           SavedTensor::Save(t, nr < outputs.size(), static_cast<uint32_t>(nr)));
      saved_.Set(i, std::move(saved));
    }
    return OkStatus();
  }

  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    OFL_ASSIGN_OR_RETURN(TensorList saved, saved_.Unpack(this, name_));
    TensorList results;
    OFL_RETURN_IF_ERROR(Run(std::move(saved), {grads.begin(), grads.end()}, &results));
    for (size_t i = 0; i < results.size(); ++i) {
      OFL_RETURN_IF_ERROR(Fit(i, &results[i]));
    }
    return results;
  }

  void ReleaseSaved() override { saved_.Free(); }
  std::string name() const override { return name_; }
  void VisitOwned(OwnedWalk& walk) const override {
    Node::VisitOwned(walk);
    saved_.VisitOwned(walk);
    walk.VisitForeign(backward_);
  }
  void ClearOwned() override {
    Node::ClearOwned();
    backward_.reset();
  }

 private:
  Status Run(TensorList saved, TensorList grads, TensorList* results) const {
    GilAcquire locked;
    if (!backward_) {
      return Error(ErrorKind::kRuntime, name_, "(): its context was garbage and is gone");
    }
    PyRef a(WrapTensors(std::move(saved))), b(WrapTensors(std::move(grads)));
    PyRef given(a && b ? PyObject_CallFunctionObjArgs(static_cast<PyObject*>(backward_.get()),
                                                      a.get(), b.get(), nullptr)
                       : nullptr);
    if (!given || !ReadTensorList(name_.c_str(), "backward", given.get(), results)) {
      return TakeRaised();
    }
    if (results->size() == specs_.size()) return OkStatus();
    return Error(ErrorKind::kValue, name_, "(): backward gave ", results->size(), " gradients for ",
                 specs_.size(), " tensors");
  }

  // Makes what backward gave the gradient of input i: a broadcast one is summed. Nothing is asked
  // of the gradient of an input that needs none.
  Status Fit(size_t i, Tensor* grad) const {
    if (!edges[i].node) *grad = Tensor();
    if (!grad->defined()) return OkStatus();
    const TensorSpec& spec = specs_[i];
    if (!IsFloating(grad->dtype())) {
      return DTypeMismatch(name_, absl::StrCat("backward: the gradient of tensor ", i),
                           grad->dtype(), "a floating dtype");
    }
    if (!BroadcastsTo(spec.shape, grad->shape())) {
      return ShapeMismatch(name_, absl::StrCat("backward: the gradient of tensor ", i),
                           grad->shape(), spec.shape.ToString());
    }
    if (grad->device() != spec.device) {
      return DeviceMismatch(name_, absl::StrCat("backward: the gradient of tensor ", i),
                            grad->device(), "the tensor", spec.device);
    }
    OFL_ASSIGN_OR_RETURN(*grad, functional::SumToShape(*grad, spec.shape));
    OFL_ASSIGN_OR_RETURN(*grad, functional::Cast(*grad, spec.dtype));
    return OkStatus();
  }

  std::string name_;
  std::shared_ptr<void> backward_;  // a callable
  std::vector<TensorSpec> specs_;   // of the inputs
  SavedTensors saved_;
};

TensorList ReadOrThrow(const char* argument, const py::object& o) {
  TensorList list;
  if (!ReadTensorList("record_function", argument, o.ptr(), &list)) throw py::error_already_set();
  return list;
}

// Whether others see the memory of an output that is a view: an input, another output, or what
// requires grad.
bool IsShared(const Tensor& view, const TensorList& in, const TensorList& out) {
  const auto shares = [&](const Tensor& t) {
    return t.defined() && !t.IsSame(view) && t.storage()->Overlaps(*view.storage());
  };
  return autograd::RequiresGrad(autograd::Base(view)) ||
         std::any_of(in.begin(), in.end(), shares) || std::any_of(out.begin(), out.end(), shares);
}

void RecordFunction(const std::string& name, const py::object& inputs, const py::object& outputs,
                    const py::object& saved, const py::object& backward) {
  const TensorList in = ReadOrThrow("inputs", inputs), out = ReadOrThrow("outputs", outputs);
  auto node = MakeRef<FunctionNode>(name, in, ShareInGraph(backward.ptr()));
  node->num_outputs = static_cast<uint32_t>(out.size());
  for (const Tensor& t : out) {
    if (t.defined() && !node->stream) ThrowIfError(autograd::KeepStream(node.get(), t.device()));
  }
  ThrowIfError(node->Save(ReadOrThrow("saved", saved), out));
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].defined()) continue;
    // An input that was changed in place: what was cut from the same memory would miss it.
    if (autograd::Base(out[i]).defined() &&
        std::any_of(in.begin(), in.end(), [&](const Tensor& t) { return t.IsSame(out[i]); })) {
      ThrowIfError(Error(ErrorKind::kRuntime, name,
                         "(): a view cannot be changed in place by a Function; clone it first"));
    }
    autograd::SetHistory(out[i], node, static_cast<uint32_t>(i));
    if (autograd::Base(out[i]).defined()) {
      autograd::KeepViewOfFunction(out[i], IsShared(out[i], in, out));
    }
  }
}

}  // namespace

void AddAutogradFunction(py::module_& m) {
  m.def("record_function", &RecordFunction, py::arg("name"), py::arg("inputs"), py::arg("outputs"),
        py::arg("saved"), py::arg("backward"),
        "Makes a node the producer of the outputs (None: not differentiable). "
        "backward(saved, grads) gives a gradient, or None, per input.");
}

}  // namespace oneflow_lite::python
