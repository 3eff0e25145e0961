// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/hooks.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace oneflow_lite {
namespace {

std::mutex hooks_mutex;  // guards the hooks of all tables; what is held meanwhile takes nanoseconds

}  // namespace

std::shared_ptr<const HookTable::Hooks> HookTable::Get() const {
  std::lock_guard lock(hooks_mutex);
  return hooks_;
}

bool HookTable::Exchange(std::shared_ptr<const Hooks>* before, std::shared_ptr<const Hooks>* next) {
  std::shared_ptr<const Hooks> stale;  // goes after the lock
  std::lock_guard lock(hooks_mutex);
  if (hooks_ == *before) {
    hooks_.swap(*next);
    return true;
  }
  stale = hooks_;
  before->swap(stale);
  return false;
}

uint64_t HookTable::Add(Hook hook) {
  static std::atomic<uint64_t> numbers{0};
  const uint64_t number = hook.number = ++numbers;
  const auto added = std::make_shared<const Hook>(std::move(hook));
  std::shared_ptr<const Hooks> before = Get(), next;
  do {
    auto hooks = before ? std::make_shared<Hooks>(*before) : std::make_shared<Hooks>();
    const auto at = std::find_if(hooks->begin(), hooks->end(), [&](const auto& other) {
      return !added->last && other->last && other->slot == added->slot;
    });
    hooks->insert(at, added);
    next = std::move(hooks);
  } while (!Exchange(&before, &next));
  return number;
}

void HookTable::Remove(uint64_t number) {
  std::shared_ptr<const Hooks> before = Get(), next;
  do {
    if (!before) return;
    auto hooks = std::make_shared<Hooks>(*before);
    if (std::erase_if(*hooks, [&](const auto& h) { return h->number == number; }) == 0) return;
    next = hooks->empty() ? nullptr : std::move(hooks);
  } while (!Exchange(&before, &next));
}

void HookTable::Clear() {
  std::shared_ptr<const Hooks> gone;
  std::lock_guard lock(hooks_mutex);
  hooks_.swap(gone);
}

void HookList::Free(HookTable* table) {
  table->Clear();
  table->Release();
}

void HookList::Clear() {
  if (HookTable* table = table_.load(std::memory_order_acquire)) table->Clear();
}

HookHandle HookList::Add(Hook hook) {
  HookTable* table = table_.load(std::memory_order_acquire);
  if (!table) {
    Ref<HookTable> made = MakeRef<HookTable>();
    if (table_.compare_exchange_strong(table, made.get(), std::memory_order_acq_rel)) {
      table = made.Leak();
    }
  }
  return HookHandle(Ref<HookTable>(table), table->Add(std::move(hook)));
}

}  // namespace oneflow_lite
