// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/owned.h"

#include "oneflow_lite/framework/autograd.h"

namespace oneflow_lite {

void AutogradMeta::VisitOwned(OwnedWalk& walk) const {
  walk.Visit(grad_fn);
  walk.Visit(grad);
  if (walk.VisitShared(retained)) walk.Visit(*retained);
  walk.Visit(hooks);
  walk.Visit(post_hooks);
  walk.Visit(base);
}

bool OwnedWalk::All(const void* object, int64_t references) {
  if (references == 1) return true;
  if (repeats_ == 0) {
    int64_t& named = named_[object];
    if (++named != references) return false;
    named = 0;
    return true;
  }
  const auto it = named_.find(object);
  if (it == named_.end() || it->second > 0 || it->second == -repeats_) return false;
  it->second = -repeats_;
  return true;
}

void OwnedWalk::From(const Tensor& t) {
  Visit(t);
  Run();
}

void OwnedWalk::From(Node& node) {
  if (All(&node, node.use_count())) nodes_.push_back(&node);
  Run();
}

void OwnedWalk::Visit(const Tensor& t) {
  if (t.defined() && All(t.impl(), t.impl()->use_count())) tensors_.push_back(t.impl());
}

void OwnedWalk::Visit(const Ref<Node>& node) {
  if (node && All(node.get(), node->use_count())) nodes_.push_back(node.get());
}

void OwnedWalk::Visit(const HookList& hooks) {
  const auto list = hooks.Get();
  if (!list) return;
  for (const auto& hook : *list) {
    VisitForeign(hook->foreign);
    if (VisitShared(hook->tensor)) Visit(*hook->tensor);
  }
}

void OwnedWalk::Run() {
  while (!tensors_.empty() || !nodes_.empty()) {
    if (!nodes_.empty()) {
      const Node* node = nodes_.back();
      nodes_.pop_back();
      node->VisitOwned(*this);
      continue;
    }
    TensorImpl* impl = tensors_.back();
    tensors_.pop_back();
    if (void* slot = impl->py_object.load(std::memory_order_relaxed)) OnSlot(slot);
    if (const auto* meta = static_cast<const AutogradMeta*>(impl->autograd.get())) {
      meta->VisitOwned(*this);
    }
  }
}

}  // namespace oneflow_lite
