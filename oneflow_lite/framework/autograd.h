// SPDX-License-Identifier: Apache-2.0
//
// Autograd: what a tensor knows of its history, and the graph of nodes that backward walks.
//
//   autograd::SetRequiresGrad(w, true);
//   OFL_ASSIGN_OR_RETURN(Tensor loss, functional::Sum(y));
//   OFL_RETURN_IF_ERROR(autograd::Backward({loss}, {}));
//   Tensor dw = autograd::Grad(w);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "oneflow_lite/core/stream.h"
#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/op_def.h"

namespace oneflow_lite {

class Node;

// Where a gradient goes: input `slot` of a node. A null node ends the path.
struct Edge {
  Ref<Node> node;
  uint32_t slot = 0;
};

using GradHook = std::function<StatusOr<Tensor>(const Tensor& grad)>;

// A step of backward. Created by the autograd stage for each recorded op; freed without recursion,
// however long the chain.
class OFL_API Node : public RefCounted {
 public:
  // Takes gradients of the forward's outputs (undefined: zero), gives those of its inputs, one per
  // edge. Called with GradEnabled() as create_graph says and on the forward's stream.
  virtual StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) = 0;
  // Frees what was saved; a later Backward is a RuntimeError.
  virtual void ReleaseSaved() {}
  // "softmax_backward"
  virtual std::string name() const = 0;

  absl::InlinedVector<Edge, 2> edges;
  uint32_t num_outputs = 1;  // of the forward: how many gradients come in
  uint64_t sequence = 0;     // later forward, larger number: runs earlier in backward
  Ref<Stream> stream;        // the forward's; null on the CPU
  // Hooks on the gradient of forward output `first`, in the order of registration.
  std::vector<std::pair<uint32_t, GradHook>> hooks;

 protected:
  Node();
  ~Node() override = default;
  void Destroy() override;
};

// Hangs on a tensor that takes part in autograd.
class OFL_API AutogradMeta : public AutogradMetaBase {
 public:
  bool requires_grad = false;  // asked for by the user: a leaf
  Ref<Node> grad_fn;
  uint32_t output_nr = 0;
  Tensor grad;                       // of a leaf
  std::shared_ptr<Tensor> retained;  // of a non-leaf that retains its gradient
  Node* accumulator = nullptr;       // weak; guarded by the accumulators' mutex (history.cpp)
  std::vector<GradHook> hooks;       // of a leaf
  // A view: its base, and the storage version its grad_fn speaks of.
  Tensor base;
  uint32_t view_version = 0;
};

// A tensor kept for backward: remembers the version, and an output without its node, so that the
// node does not own itself.
class OFL_API SavedTensor {
 public:
  SavedTensor() = default;
  // is_output: t is output output_nr of the node that saves it.
  static StatusOr<SavedTensor> Save(const Tensor& t, bool is_output, uint32_t output_nr = 0);
  // The tensor with its history; `owner` is the saving node. RuntimeError where it was changed in
  // place since.
  StatusOr<Tensor> Unpack(Node* owner, const std::string& op) const;
  bool defined() const { return data_.defined() || unpack_; }

 private:
  Tensor data_;
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  bool is_output_ = false;
  // Under hooks, instead of data_: what pack gave, and where the tensor's gradient flows.
  std::shared_ptr<void> packed_;
  std::function<StatusOr<Tensor>(void*)> unpack_;
  Edge edge_;
};

// Hooks on saving (offloading to the host, recomputing): pack turns a tensor into anything, unpack
// turns it back. Per thread; the innermost pair counts.
struct SavedTensorHooks {
  std::function<StatusOr<std::shared_ptr<void>>(const Tensor&)> pack;
  std::function<StatusOr<Tensor>(void*)> unpack;
};
class OFL_API SavedTensorHooksGuard {
 public:
  explicit SavedTensorHooksGuard(SavedTensorHooks hooks);
  ~SavedTensorHooksGuard();
  SavedTensorHooksGuard(const SavedTensorHooksGuard&) = delete;
};

// What an op's backward sees.
class OFL_API GradContext {
 public:
  GradContext(const OpDef& op, const Attrs& attrs, Needs needs,
              const absl::InlinedVector<TensorSpec, 4>& specs, absl::Span<const Tensor> grads,
              TensorList saved_inputs, TensorList saved_outputs, TensorList* result)
      : op_(op),
        attrs_(attrs),
        needs_(needs),
        specs_(specs),
        grads_(grads),
        inputs_(std::move(saved_inputs)),
        outputs_(std::move(saved_outputs)),
        result_(*result) {}

  const OpDef& op() const { return op_; }
  bool needs(int i) const { return needs_ >> (i & 63) & 1; }
  int num_inputs() const { return static_cast<int>(specs_.size()); }
  std::string input_name(int i) const;  // "weight", and "xs[2]" where the last input is a list
  // Gradient of output i; undefined where nothing flowed back to it.
  const Tensor& grad(int i) const { return At(grads_, i); }
  // What the save plan named; undefined otherwise.
  const Tensor& input(int i) const { return At(inputs_, i); }
  const Tensor& output(int i) const { return At(outputs_, i); }
  const TensorSpec& spec(int i) const { return specs_[i]; }
  const Attrs& attrs() const { return attrs_; }
  template <class T>
  const T& attr(int i) const {
    return attrs_.get<T>(i);
  }
  // Gives the gradient of input i; ShapeError or DTypeError where it is not of the input's.
  Status Set(int i, StatusOr<Tensor> grad);
  // ValueError where no input that needs a gradient was given one, though there is one of every
  // output (or zeros, where those stand in for it): a backward that forgot to. One of several may
  // be left out, which is zero.
  Status CheckAnySet(bool zeros_stand_in = false) const;

 private:
  static const Tensor& At(absl::Span<const Tensor> list, int i) {
    static const Tensor undefined;
    return i >= 0 && i < static_cast<int>(list.size()) ? list[i] : undefined;
  }

  const OpDef& op_;
  const Attrs& attrs_;
  Needs needs_;
  const absl::InlinedVector<TensorSpec, 4>& specs_;
  absl::Span<const Tensor> grads_;
  TensorList inputs_, outputs_;
  TensorList& result_;
};

namespace autograd {

// Of an undefined tensor nothing is known: false, undefined or null where a question is asked, a
// TypeError where something is to be done. SetHistory and MetaOf want a defined one.

// A leaf that asked for it, or the result of a recorded op.
OFL_API bool RequiresGrad(const Tensor& t);
// RuntimeError for an integer tensor, and for clearing the flag of a non-leaf.
OFL_API Status SetRequiresGrad(const Tensor& t, bool value);
OFL_API bool IsLeaf(const Tensor& t);
OFL_API Tensor Grad(const Tensor& t);
// ShapeError / DTypeError / RuntimeError where grad does not go with t; undefined clears it.
OFL_API Status SetGrad(const Tensor& t, Tensor grad);
OFL_API Ref<Node> GradFn(const Tensor& t);
OFL_API Status RetainGrad(const Tensor& t);
OFL_API Status AddHook(const Tensor& t, GradHook hook);
// The base of a view, undefined for others.
OFL_API Tensor Base(const Tensor& t);
// Where t's gradient flows: (null, 0) where none is wanted.
OFL_API Edge GradientEdge(const Tensor& t);
// Makes `node` the producer of t's value.
OFL_API void SetHistory(const Tensor& t, Ref<Node> node, uint32_t output_nr);
OFL_API AutogradMeta& MetaOf(const Tensor& t);  // created at need

// Adds the gradients of the leaves into their .grad. `grads` gives the gradient of each output, or
// is empty for ones (scalar outputs only). RuntimeError where an output has no history, the graph
// was freed, or a saved tensor was changed.
OFL_API Status Backward(absl::Span<const Tensor> outputs, absl::Span<const Tensor> grads,
                        bool retain_graph = false, bool create_graph = false);
// Gives the gradients of `inputs` and leaves every .grad alone. An input that no output depends on
// is an error unless allow_unused (then undefined).
OFL_API StatusOr<TensorList> Gradients(absl::Span<const Tensor> outputs,
                                       absl::Span<const Tensor> inputs,
                                       absl::Span<const Tensor> grads, bool retain_graph = false,
                                       bool create_graph = false, bool allow_unused = false);

}  // namespace autograd
}  // namespace oneflow_lite
