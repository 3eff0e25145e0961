// SPDX-License-Identifier: Apache-2.0
//
// What a tensor knows of its history: flags, gradient, edges; leaves and their accumulators; views
// and the rebasing of history when one is changed in place.
#include <algorithm>
#include <mutex>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/engine.h"

namespace oneflow_lite::autograd {
namespace {

AutogradMeta* Find(const Tensor& t) {
  return t.defined() ? static_cast<AutogradMeta*>(t.impl()->autograd.get()) : nullptr;
}

std::mutex accumulators_mutex;     // guards AutogradMeta::accumulator
std::recursive_mutex grads_mutex;  // guards the adding into .grad
std::mutex slots_mutex;            // guards .grad itself, and is held for no call

// A gradient may be read or cleared by one thread while another one's pass replaces it.
Tensor ReadSlot(const Tensor& slot) {
  std::lock_guard lock(slots_mutex);
  return slot;
}
void ReplaceSlot(Tensor* slot, Tensor grad) {
  std::lock_guard lock(slots_mutex);
  std::swap(*slot, grad);  // what was there goes after the lock
}

class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor leaf) : leaf_(std::move(leaf)) { sequence = UINT64_MAX; }

  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    Tensor grad = grads[0];
    if (!grad.defined()) return TensorList{};
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
    const bool contiguous = grad.is_contiguous();
    // create_graph: history is kept, nothing is changed in place.
    if (contiguous && GradEnabled() && !Base(grad).defined()) return grad;
    if (contiguous && grad.impl()->use_count() <= 2 && grad.storage()->use_count() == 1) {
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

// Leaves the gradient of a non-leaf in its slot.
struct RetainHook {
  std::shared_ptr<Tensor> slot;
  StatusOr<Tensor> operator()(const Tensor& g) const {
    Tensor sum = ReadSlot(*slot);
    if (sum.defined()) {
      OFL_ASSIGN_OR_RETURN(sum, AddTensors(sum, g));
    } else {
      sum = g;
    }
    ReplaceSlot(slot.get(), std::move(sum));
    return Tensor();
  }
};

void Retain(AutogradMeta* meta, Tensor so_far) {
  meta->retained = std::make_shared<Tensor>(std::move(so_far));
  meta->grad_fn->hooks.emplace_back(meta->output_nr, RetainHook{meta->retained});
}

// Geometry of a view relative to a contiguous tensor of the base's shape.
struct ViewInBase {
  Dims shape, strides;
  int64_t offset;
};
StatusOr<ViewInBase> RelativeView(const Tensor& view, const Tensor& base) {
  if (!base.is_contiguous()) {
    return Error(ErrorKind::kNotImplemented,
                 "in-place change of a view of a non-contiguous tensor cannot be recorded; clone "
                 "the base first");
  }
  return ViewInBase{view.shape().dims(), view.strides(), view.offset() - base.offset()};
}

const OpExpr& AsStrided() {
  static const OpExpr& op = OpBuilder("as_strided")
                                .Input("in")
                                .Output("out")
                                .Attr("shape")
                                .Attr("strides")
                                .Attr("offset")
                                .Get();
  return op;
}
const OpExpr& AsStridedBackward() {
  static const OpExpr& op = OpBuilder("as_strided_backward")
                                .Input("grad")
                                .Output("out")
                                .Attr("base_shape")
                                .Attr("shape")
                                .Attr("strides")
                                .Attr("offset")
                                .Get();
  return op;
}

// Adds up what flowed back to the elements that an expanded view shows several times.
StatusOr<Tensor> SumRepeated(Tensor grad, ViewInBase* view) {
  static const OpExpr& sum =
      OpBuilder("sum").Input("in").Output("out").Attr("dims").Attr("keepdim").Get();
  for (size_t d = 0; d < view->shape.size(); ++d) {
    if (view->strides[d] != 0 || view->shape[d] < 2) continue;
    OFL_ASSIGN_OR_RETURN(grad, Call(sum, {grad}, {Dims{static_cast<int64_t>(d)}, true}));
    view->shape[d] = 1;
  }
  return grad;
}

// History of a view that was cut anew from a changed base.
class ViewNode final : public Node {
 public:
  ViewNode(ViewInBase view, Dims base_shape)
      : view_(std::move(view)), base_shape_(std::move(base_shape)) {}
  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    ViewInBase view = view_;
    OFL_ASSIGN_OR_RETURN(Tensor g, SumRepeated(grads[0], &view));
    OFL_ASSIGN_OR_RETURN(
        g, Call(AsStridedBackward(), {g}, {base_shape_, view.shape, view.strides, view.offset}));
    return TensorList{std::move(g)};
  }
  std::string name() const override { return "as_strided_backward"; }

 private:
  ViewInBase view_;
  Dims base_shape_;
};

// History of a base after an in-place op on a view of it: the region under the view goes through
// the op's node, the rest passes.
class ViewUpdate final : public Node {
 public:
  ViewUpdate(ViewInBase view, Dims base_shape, Ref<Node> inner)
      : view_(std::move(view)), base_shape_(std::move(base_shape)), inner_(std::move(inner)) {}

  StatusOr<TensorList> Backward(absl::Span<const Tensor> grads) override {
    OFL_ASSIGN_OR_RETURN(Tensor grad, CloneTensor(grads[0]));
    OFL_ASSIGN_OR_RETURN(Tensor region,
                         Call(AsStrided(), {grad}, {view_.shape, view_.strides, view_.offset}));
    OFL_ASSIGN_OR_RETURN(TensorList result, inner_->Backward({region}));
    // Base gradient = grad with the region replaced by the op's gradient for its old value:
    // grad - pad(region) + pad(result[0]).
    static const OpExpr& sub = OpBuilder("sub").Input("a").Input("b").Output("out").Get();
    const Attrs pad{base_shape_, view_.shape, view_.strides, view_.offset};
    OFL_ASSIGN_OR_RETURN(Tensor hole, Call(AsStridedBackward(), {region}, pad));
    OFL_ASSIGN_OR_RETURN(Tensor base_grad, Call(sub, {grad, hole}));
    if (result[0].defined()) {
      OFL_ASSIGN_OR_RETURN(Tensor filled, Call(AsStridedBackward(), {result[0]}, pad));
      OFL_ASSIGN_OR_RETURN(base_grad, AddTensors(base_grad, filled));
    }
    result[0] = std::move(base_grad);
    return result;
  }
  void ReleaseSaved() override { inner_->ReleaseSaved(); }
  std::string name() const override { return "view_update(" + inner_->name() + ")"; }

 private:
  ViewInBase view_;
  Dims base_shape_;
  Ref<Node> inner_;
};

}  // namespace

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
  if (meta && meta->grad_fn) {
    if (value) return OkStatus();
    return Error(
        ErrorKind::kRuntime,
        "requires_grad(): only a leaf's flag can be cleared; use detach() on the result of "
        "an op");
  }
  if (value || meta) MetaOf(t).requires_grad = value;
  return OkStatus();
}

bool IsLeaf(const Tensor& t) { return !GradFn(t); }

Tensor Grad(const Tensor& t) {
  const AutogradMeta* meta = Find(t);
  if (!meta) return Tensor();
  return ReadSlot(meta->retained ? *meta->retained : meta->grad);
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
  }
  AutogradMeta& meta = MetaOf(t);
  ReplaceSlot(meta.retained ? meta.retained.get() : &meta.grad, std::move(grad));
  return OkStatus();
}

Ref<Node> GradFn(const Tensor& t) {
  const AutogradMeta* meta = Find(t);
  return meta ? meta->grad_fn : Ref<Node>();
}

Status RetainGrad(const Tensor& t) {
  if (!t.defined()) return NotDefined("retain_grad", "the tensor");
  if (!RequiresGrad(t)) {
    return Error(ErrorKind::kRuntime, "retain_grad(): the tensor does not require grad");
  }
  AutogradMeta& meta = MetaOf(t);
  if (!meta.grad_fn || meta.retained) return OkStatus();
  Retain(&meta, Tensor());
  return OkStatus();
}

Status AddHook(const Tensor& t, GradHook hook) {
  if (!t.defined()) return NotDefined("register_hook", "the tensor");
  if (!RequiresGrad(t)) {
    return Error(ErrorKind::kRuntime, "register_hook(): the tensor does not require grad");
  }
  AutogradMeta& meta = MetaOf(t);
  if (!meta.grad_fn) {
    meta.hooks.push_back(std::move(hook));
    return OkStatus();
  }
  auto& hooks = meta.grad_fn->hooks;
  // What is retained is the gradient after all hooks, those to come too.
  const auto at = std::find_if(hooks.begin(), hooks.end(), [&](const auto& other) {
    return other.first == meta.output_nr && other.second.template target<RetainHook>();
  });
  hooks.emplace(at, meta.output_nr, std::move(hook));
  return OkStatus();
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
  const auto* accumulate = dynamic_cast<const AccumulateGrad*>(&node);
  return accumulate ? accumulate->leaf() : Tensor();
}

StatusOr<Tensor> CloneTensor(const Tensor& t) {
  static const OpExpr& cast = OpBuilder("cast").Input("in").Output("out").Attr("dtype").Get();
  return Call(cast, {t}, {t.dtype()});
}

StatusOr<Tensor> AddTensors(const Tensor& a, const Tensor& b) {
  static const OpExpr& add = OpBuilder("add").Input("a").Input("b").Output("out").Get();
  return Call(add, {a, b});
}

Status RebaseHistory(const Tensor& self, Ref<Node> node) {
  AutogradMeta& meta = MetaOf(self);
  if (!meta.base.defined()) {
    SetHistory(self, std::move(node), 0);
    return OkStatus();
  }
  const Tensor base = meta.base;
  OFL_ASSIGN_OR_RETURN(ViewInBase view, RelativeView(self, base));
  auto update = MakeRef<ViewUpdate>(view, base.shape().dims(), node);
  update->edges = node->edges;
  update->edges[0] = GradientEdge(base);
  update->stream = node->stream;
  SetHistory(base, std::move(update), 0);
  meta.view_version = self.version() - 1;  // stale on purpose: cut anew at the next use
  return RefreshView(self);
}

Status RefreshView(const Tensor& t) {
  AutogradMeta* meta = Find(t);
  if (!meta || !meta->base.defined() || meta->view_version == t.version()) return OkStatus();
  meta->view_version = t.version();
  Edge edge = GradientEdge(meta->base);
  if (!edge.node) return OkStatus();
  OFL_ASSIGN_OR_RETURN(ViewInBase view, RelativeView(t, meta->base));
  auto node = MakeRef<ViewNode>(std::move(view), meta->base.shape().dims());
  node->edges.push_back(std::move(edge));
  SetHistory(t, std::move(node), 0);
  return OkStatus();
}

}  // namespace oneflow_lite::autograd
