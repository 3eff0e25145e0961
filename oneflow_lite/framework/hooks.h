// SPDX-License-Identifier: Apache-2.0
//
// Hooks on gradients. Any thread may add and take away hooks while others run backward, a hook
// among them: a pass runs those that were there when it came to the node.
//
//   OFL_ASSIGN_OR_RETURN(HookHandle hook, autograd::AddHook(y, [](const Tensor& grad) { ... }));
//   hook.Remove();
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite {

// Sees a gradient; a defined result replaces it.
using GradHook = std::function<StatusOr<Tensor>(const Tensor& grad)>;

struct Hook {
  GradHook call;
  // What `call` keeps of another language, for that language's collector (owned.h); may be null.
  std::shared_ptr<void> foreign;
  std::shared_ptr<Tensor> tensor;  // what `call` leaves the gradient in; may be null
  uint32_t slot = 0;               // of a node: which output of the forward the gradient is of
  bool last = false;               // behind all hooks of its slot that are not, those to come too
  uint64_t number = 0;             // given by HookTable::Add
};

// The hooks of one list. Handles keep the table, not the hooks: those go with the list's owner.
class OFL_API HookTable : public RefCounted {
 public:
  using Hooks = std::vector<std::shared_ptr<const Hook>>;

  uint64_t Add(Hook hook);
  // Does nothing where the hook is not there any more.
  void Remove(uint64_t number);
  void Clear();
  // Those of now, null for none. Nothing changes a list that was given out.
  std::shared_ptr<const Hooks> Get() const;

 private:
  // Puts *next in where the list is still *before, else gives what it is now in *before.
  bool Exchange(std::shared_ptr<const Hooks>* before, std::shared_ptr<const Hooks>* next);

  // Replaced as a whole, under a mutex that is held for no call and no destructor.
  std::shared_ptr<const Hooks> hooks_;
};

class OFL_API HookHandle {
 public:
  HookHandle() = default;
  HookHandle(Ref<HookTable> table, uint64_t number) : table_(std::move(table)), number_(number) {}
  // Takes the hook away; a second time does nothing.
  void Remove() {
    if (table_) table_->Remove(number_);
    table_ = nullptr;
  }

 private:
  Ref<HookTable> table_;
  uint64_t number_ = 0;
};

// A table, made for the first hook: most tensors and nodes have none, and pay a null pointer.
class OFL_API HookList {
 public:
  HookList() = default;
  ~HookList() {
    if (HookTable* table = table_.load(std::memory_order_relaxed)) Free(table);
  }
  HookList(const HookList&) = delete;

  HookHandle Add(Hook hook);
  std::shared_ptr<const HookTable::Hooks> Get() const {
    const HookTable* table = table_.load(std::memory_order_acquire);
    return table ? table->Get() : nullptr;
  }
  void Clear();

 private:
  static void Free(HookTable* table);

  std::atomic<HookTable*> table_{nullptr};  // owns a reference
};

}  // namespace oneflow_lite
