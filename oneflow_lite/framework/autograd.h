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

#include "oneflow_lite/framework/op_def.h"
#include "oneflow_lite/framework/saved_tensor.h"

namespace oneflow_lite {

// Hangs on a tensor that takes part in autograd.
class OFL_API AutogradMeta : public AutogradMetaBase {
 public:
  bool requires_grad = false;  // asked for by the user: a leaf
  Ref<Node> grad_fn;
  uint32_t output_nr = 0;
  Tensor grad;                       // of a leaf
  std::shared_ptr<Tensor> retained;  // of a non-leaf that retains its gradient
  Node* accumulator = nullptr;       // weak; guarded by the accumulators' mutex (history.cpp)
  HookList hooks;                    // of a leaf
  HookList post_hooks;               // of a leaf: get the tensor, once its .grad is there
  // A view: its base, and the storage version its grad_fn speaks of.
  Tensor base;
  uint32_t view_version = 0;
  bool of_function = false;  // a view that a Function gave, or was cut from one: KeepViewOfFunction

  // Names to the walk each reference that is counted here.
  void VisitOwned(OwnedWalk& walk) const;
};

// What an op's backward sees.
class OFL_API GradContext {
 public:
  GradContext(const OpDef& op, const Attrs& attrs, Needs needs,
              const absl::InlinedVector<TensorSpec, 4>& specs, absl::Span<const Tensor> grads,
              absl::Span<const Tensor> saved_inputs, absl::Span<const Tensor> saved_outputs,
              TensorList* result)
      : op_(op),
        attrs_(attrs),
        needs_(needs),
        specs_(specs),
        grads_(grads),
        inputs_(saved_inputs),
        outputs_(saved_outputs),
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
  // Gives the gradient of input i; ShapeError, DTypeError or RuntimeError where it is not of the
  // input's shape, dtype or device.
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
  absl::Span<const Tensor> grads_, inputs_, outputs_;
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
// What the binding left in py_object of t's .grad, if nothing else holds that tensor; else null.
// Safe while other threads use t.
OFL_API void* SlotOfOwnedGrad(const TensorImpl& t);
// ShapeError / DTypeError / RuntimeError where grad does not go with t; undefined clears it.
OFL_API Status SetGrad(const Tensor& t, Tensor grad);
OFL_API Ref<Node> GradFn(const Tensor& t);
OFL_API Status RetainGrad(const Tensor& t);
// `foreign`: what the hook keeps of another language (hooks.h).
OFL_API StatusOr<HookHandle> AddHook(const Tensor& t, GradHook hook,
                                     std::shared_ptr<void> foreign = nullptr);
// On a leaf: gets the tensor after each pass that added into its .grad; what it gives is ignored.
OFL_API StatusOr<HookHandle> AddPostHook(const Tensor& leaf, GradHook hook,
                                         std::shared_ptr<void> foreign = nullptr);
// The base of a view, undefined for others.
OFL_API Tensor Base(const Tensor& t);
// Where t's gradient flows: (null, 0) where none is wanted.
OFL_API Edge GradientEdge(const Tensor& t);
// After SetHistory of what forward of a Function gave and is a view. Where others see its memory
// with a history of their own (`shared`), an in-place change by it is refused, and its use after
// one by them; else it is no view any more, but a tensor of its own.
OFL_API void KeepViewOfFunction(const Tensor& view, bool shared);
// Makes `node` the producer of t's value.
OFL_API void SetHistory(const Tensor& t, Ref<Node> node, uint32_t output_nr);
// Lets `node` go backward on the stream that is current now, where work on the device has one.
OFL_API Status KeepStream(Node* node, Device device);
OFL_API AutogradMeta& MetaOf(const Tensor& t);  // created at need

// Adds the gradients of the leaves into their .grad. `grads` gives the gradient of each output, or
// is empty for ones (scalar outputs only). RuntimeError where an output has no history, the graph
// was freed, or a saved tensor was changed. Where `inputs` are given, only those get gradients, and
// need not be leaves.
OFL_API Status Backward(absl::Span<const Tensor> outputs, absl::Span<const Tensor> grads,
                        bool retain_graph = false, bool create_graph = false,
                        absl::Span<const Tensor> inputs = {});
// Gives the gradients of `inputs` and leaves every .grad alone. An input that no output depends on
// is an error unless allow_unused (then undefined).
OFL_API StatusOr<TensorList> Gradients(absl::Span<const Tensor> outputs,
                                       absl::Span<const Tensor> inputs,
                                       absl::Span<const Tensor> grads, bool retain_graph = false,
                                       bool create_graph = false, bool allow_unused = false);

// What follows a pass: told whether the pass went well. Its error is the pass's, where that has
// none of its own.
using PassEnd = std::function<Status(bool ok)>;
// Lets `end` run once after the pass of this thread that is under way; where passes are inside each
// other, after the outermost. From hooks and backward functions: RuntimeError where no pass is.
OFL_API Status AddPassEnd(PassEnd end);

}  // namespace autograd
}  // namespace oneflow_lite
