// SPDX-License-Identifier: Apache-2.0
//
// What a tensor knows of its history: flags, gradient, edges; leaves and their accumulators.
#include <algorithm>
#include <mutex>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/engine.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/owned.h"

namespace oneflow_lite::autograd {
namespace {

std::mutex accumulators_mutex;     // guards AutogradMeta::accumulator
std::recursive_mutex grads_mutex;  // guards the adding into .grad
std::mutex slots_mutex;            // guards .grad itself and where it is; is held for no call

void ReplaceSlot(Tensor* slot, Tensor grad) {
  std::lock_guard lock(slots_mutex);
  std::swap(*slot, grad);  // what was there goes after the lock
}

class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor leaf) : leaf_(std::move(leaf)) { sequence = kAccumulates; }

  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    Tensor grad = grads[0];
    if (!grad.defined() || !RequiresGrad(leaf_)) return TensorList{};  // it may be frozen since
    OFL_RETURN_IF_ERROR(CheckOnePlacement("backward", grad, leaf_));
    AutogradMeta& meta = MetaOf(leaf_);
    std::lock_guard lock(grads_mutex);
    if (const Tensor sum = ReadSlot(meta.grad); sum.defined()) {
      OFL_RETURN_IF_ERROR(AddInto(meta, sum, grad));
    } else {
      OFL_ASSIGN_OR_RETURN(Tensor own, Own(std::move(grad)));
      ReplaceSlot(&meta.grad, std::move(own));
    }
    return TensorList{};
  }
  std::string name() const override { return "accumulate_grad"; }
  void VisitOwned(OwnedWalk& walk) const override {
    Node::VisitOwned(walk);
    walk.Visit(leaf_);
  }
  void ClearOwned() override {
    Node::ClearOwned();
    AutogradMeta& meta = MetaOf(leaf_);
    if (leaf_.impl()->use_count() > 1) return;
    meta.hooks.Clear();
    meta.post_hooks.Clear();
    ReplaceSlot(&meta.grad, Tensor());
  }
  const Tensor& leaf() const { return leaf_; }

 private:
  void Destroy() override {
    {
      std::lock_guard lock(accumulators_mutex);
      AutogradMeta& meta = MetaOf(leaf_);
      if (meta.accumulator == this) meta.accumulator = nullptr;
    }
    Node::Destroy();
  }

  // .grad is contiguous and no view, and must not share memory with a tensor that others hold: it
  // will be changed in place.
  static StatusOr<Tensor> Own(Tensor grad) {
    const GlobalSpec* g = GlobalOf(grad);
    const Tensor& memory = g ? g->local : grad;  // undefined: this rank has no part of it
    const bool alone = !memory.defined() ||
                       (memory.storage()->use_count() == 1 && memory.storage()->owns_memory());
    if (grad.is_contiguous() && alone && grad.impl()->use_count() <= 2 &&
        grad.storage()->use_count() == 1) {
      return grad;
    }
    return CloneTensor(grad);
  }

  static Status AddInto(AutogradMeta& meta, const Tensor& sum, const Tensor& grad) {
    static const OpExpr& add = OpBuilder("add_").Input("self").Input("other").Output("out").Get();
    if (!GradEnabled()) return Call(add, {sum, grad}).status();
    OFL_ASSIGN_OR_RETURN(Tensor more, AddTensors(sum, grad));
    ReplaceSlot(&meta.grad, std::move(more));
    return OkStatus();
  }

  Tensor leaf_;
};

Status NotLeafFloat(const char* what, const Tensor& t) {
  return Error(ErrorKind::kRuntime, what,
               "(): only floating tensors can require grad, but this is ", Describe(t));
}

// Leaves the gradient of a non-leaf in its slot: the one after all hooks, those to come too.
void Retain(AutogradMeta* meta, Tensor so_far) {
  auto retained = std::make_shared<Tensor>(std::move(so_far));
  Hook hook;
  hook.tensor = retained;
  hook.slot = meta->output_nr;
  hook.last = true;
  hook.call = [slot = retained.get()](const Tensor& g) -> StatusOr<Tensor> {
    Tensor sum = ReadSlot(*slot);
    if (sum.defined()) {
      OFL_ASSIGN_OR_RETURN(sum, AddTensors(sum, g));
    } else {
      sum = g;
    }
    ReplaceSlot(slot, std::move(sum));
    return Tensor();
  };
  {
    std::lock_guard lock(slots_mutex);
    std::swap(meta->retained, retained);
  }
  meta->grad_fn->hooks.Add(std::move(hook));
}

}  // namespace

Tensor ReadSlot(const Tensor& slot) {
  std::lock_guard lock(slots_mutex);
  return slot;
}

AutogradMeta& MetaOf(const Tensor& t) {
  if (!t.impl()->autograd) t.impl()->autograd = std::make_unique<AutogradMeta>();
  return *Find(t);
}

bool RequiresGrad(const Tensor& t) {
  const AutogradMeta* meta = Find(t);
  if (!meta) return false;
  if (meta->requires_grad || meta->grad_fn) return true;
  // A view of a base that got a history after the view was cut.
  return meta->base.defined() && meta->view_version != t.version() && GradFn(meta->base) &&
         IsFloating(t.dtype());
}

Status SetRequiresGrad(const Tensor& t, bool value) {
  if (!t.defined()) return NotDefined("requires_grad", "the tensor");
  if (value && !IsFloating(t.dtype())) return NotLeafFloat("requires_grad", t);
  AutogradMeta* meta = Find(t);
  if (!IsLeaf(t)) {
    if (value) return OkStatus();
    return Error(
        ErrorKind::kRuntime,
        "requires_grad(): only a leaf's flag can be cleared; use detach() on the result of "
        "an op");
  }
  if (value || meta) MetaOf(t).requires_grad = value;
  return OkStatus();
}

// A view of a base that got a history after the view was cut is none.
bool IsLeaf(const Tensor& t) {
  const AutogradMeta* meta = Find(t);
  return !meta || (!meta->grad_fn && (meta->requires_grad || !RequiresGrad(t)));
}

Tensor Grad(const Tensor& t) {
  const AutogradMeta* meta = Find(t);
  if (!meta) return Tensor();
  std::lock_guard lock(slots_mutex);  // retain_grad() of another thread may move it
  return meta->retained ? *meta->retained : meta->grad;
}

void* SlotOfOwnedGrad(const TensorImpl& t) {
  std::lock_guard lock(slots_mutex);
  const auto* meta = static_cast<const AutogradMeta*>(t.autograd.get());
  if (!meta) return nullptr;
  const Tensor& grad = meta->retained ? *meta->retained : meta->grad;
  const bool owned = grad.defined() && grad.impl()->use_count() == 1;
  return owned ? grad.impl()->py_object.load(std::memory_order_relaxed) : nullptr;
}

Status SetGrad(const Tensor& t, Tensor grad) {
  if (!t.defined()) return NotDefined("grad", "the tensor");
  if (grad.defined()) {
    if (grad.shape() != t.shape()) {
      return ShapeMismatch("grad", "the gradient", grad.shape(), t.shape().ToString());
    }
    if (grad.dtype() != t.dtype()) {
      return DTypeMismatch("grad", "the gradient", grad.dtype(), Name(t.dtype()));
    }
    if (grad.device() != t.device()) {
      return DeviceMismatch("grad", "the gradient", grad.device(), "the tensor", t.device());
    }
    OFL_RETURN_IF_ERROR(CheckOnePlacement("grad", grad, t));
  }
  AutogradMeta& meta = MetaOf(t);
  std::lock_guard lock(slots_mutex);  // retain_grad() of another thread may move it
  std::swap(meta.retained ? *meta.retained : meta.grad, grad);
  return OkStatus();
}

Ref<Node> GradFn(const Tensor& t) {
  const AutogradMeta* meta = Find(t);
  if (!meta) return Ref<Node>();
  RefreshView(t).IgnoreError();  // one that cannot be cut anew has what it had
  return meta->grad_fn;
}

Status RetainGrad(const Tensor& t) {
  if (!t.defined()) return NotDefined("retain_grad", "the tensor");
  if (!RequiresGrad(t)) {
    return Error(ErrorKind::kRuntime, "retain_grad(): the tensor does not require grad");
  }
  OFL_RETURN_IF_ERROR(RefreshView(t));
  AutogradMeta& meta = MetaOf(t);
  if (!meta.grad_fn || meta.retained) return OkStatus();
  Retain(&meta, Tensor());
  return OkStatus();
}

StatusOr<HookHandle> AddHook(const Tensor& t, GradHook call, std::shared_ptr<void> foreign) {
  if (!t.defined()) return NotDefined("register_hook", "the tensor");
  if (!call) return BadValue("register_hook", "the hook", "empty", "a function");
  if (!RequiresGrad(t)) {
    return Error(ErrorKind::kRuntime, "register_hook(): the tensor does not require grad");
  }
  OFL_RETURN_IF_ERROR(RefreshView(t));
  Hook hook;
  hook.call = std::move(call);
  hook.foreign = std::move(foreign);
  AutogradMeta& meta = MetaOf(t);
  if (!meta.grad_fn) return meta.hooks.Add(std::move(hook));
  hook.slot = meta.output_nr;
  return meta.grad_fn->hooks.Add(std::move(hook));
}

StatusOr<HookHandle> AddPostHook(const Tensor& leaf, GradHook call, std::shared_ptr<void> foreign) {
  constexpr char kName[] = "register_post_accumulate_grad_hook";
  if (!leaf.defined()) return NotDefined(kName, "the tensor");
  if (!call) return BadValue(kName, "the hook", "empty", "a function");
  if (!RequiresGrad(leaf) || !IsLeaf(leaf)) {
    return Error(ErrorKind::kRuntime, kName, "(): ", Describe(leaf),
                 " is not a leaf that requires "
                 "grad");
  }
  Hook hook;
  hook.call = std::move(call);
  hook.foreign = std::move(foreign);
  return MetaOf(leaf).post_hooks.Add(std::move(hook));
}

Tensor Base(const Tensor& t) {
  const AutogradMeta* meta = Find(t);
  return meta ? meta->base : Tensor();
}

void SetHistory(const Tensor& t, Ref<Node> node, uint32_t output_nr) {
  AutogradMeta& meta = MetaOf(t);
  meta.grad_fn = std::move(node);
  meta.output_nr = output_nr;
  // Changed in place: what is retained is the gradient of the value as it is now.
  if (meta.retained) Retain(&meta, ReadSlot(*meta.retained));
}

Status KeepStream(Node* node, Device device) {
  if (device.type != DeviceType::kCUDA) return OkStatus();
  OFL_ASSIGN_OR_RETURN(Stream * stream, CurrentStream(device));
  node->stream = Ref<Stream>(stream);
  return OkStatus();
}

Edge GradientEdge(const Tensor& t) {
  const AutogradMeta* meta = Find(t);
  if (!meta) return {};
  if (meta->grad_fn) return {meta->grad_fn, meta->output_nr};
  if (meta->requires_grad) return {AccumulatorOf(t), 0};
  return {};
}

Ref<Node> AccumulatorOf(const Tensor& leaf) {
  AutogradMeta& meta = MetaOf(leaf);
  std::lock_guard lock(accumulators_mutex);
  if (meta.accumulator && meta.accumulator->TryAddRef()) return Ref<Node>::Adopt(meta.accumulator);
  Ref<Node> node = MakeRef<AccumulateGrad>(leaf);
  meta.accumulator = node.get();
  return node;
}

Tensor LeafOf(const Node& node) {
  if (node.sequence != kAccumulates) return Tensor();
  return static_cast<const AccumulateGrad&>(node).leaf();
}

StatusOr<Tensor> CloneTensor(const Tensor& t) {
  static const OpExpr& cast = OpBuilder("cast").Input("in").Output("out").Attr("dtype").Get();
  return Call(cast, {t}, {t.dtype()});
}

StatusOr<Tensor> AddTensors(const Tensor& a, const Tensor& b) {
  static const OpExpr& add = OpBuilder("add").Input("a").Input("b").Output("out").Get();
  return Call(add, {a, b});
}

}  // namespace oneflow_lite::autograd
