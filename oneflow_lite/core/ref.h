// SPDX-License-Identifier: Apache-2.0
//
// Intrusive reference counting: one word per handle, one allocation per object.
//
//   class Storage : public RefCounted { ... };
//   Ref<Storage> s = MakeRef<Storage>(...);
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

// Base of every reference-counted object. Starts at zero references.
class OFL_API RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void AddRef() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  // Adds a reference unless the object is already being destroyed.
  bool TryAddRef() const {
    int64_t n = refs_.load(std::memory_order_relaxed);
    while (n > 0) {
      if (refs_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }
  void Release() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const_cast<RefCounted*>(this)->Destroy();
    }
  }
  int64_t use_count() const { return refs_.load(std::memory_order_acquire); }

 protected:
  virtual ~RefCounted() = default;
  // Called when the last reference goes; a class that may hang in long chains overrides it.
  virtual void Destroy() { delete this; }
  // Deletes this without deep recursion, for Destroy: where as many as kMaxDepth deletions are
  // under way on this thread, one inside the other, the object waits until the outermost is done.
  // So a chain of any length is freed on a stack of fixed size, whatever its links are, objects of
  // another language between them included.
  void DeleteFlat();
  static constexpr int kMaxDepth = 16;

 private:
  mutable std::atomic<int64_t> refs_{0};
};

// A counted pointer to T, which derives from RefCounted.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* p) : p_(p) {
    if (p_) p_->AddRef();
  }
  Ref(const Ref& o) : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Ref(Ref<U> o) : p_(o.Leak()) {}
  ~Ref() {
    if (p_) p_->Release();
  }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const Ref& o) const { return p_ == o.p_; }

  // Gives the reference away: the caller now owns one count.
  T* Leak() { return std::exchange(p_, nullptr); }
  // Takes over a count given away by Leak().
  static Ref Adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }

 private:
  T* p_ = nullptr;
};

template <class T, class... Args>
Ref<T> MakeRef(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace oneflow_lite
