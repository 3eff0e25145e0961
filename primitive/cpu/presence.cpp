// SPDX-License-Identifier: Apache-2.0
//
// All threads set the same marks. One that is set is not written again, so that a line of the cache
// with marks of many elements stays with all cores.
#include "primitive/presence.h"

#include <atomic>
#include <cstring>
#include <type_traits>

#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kGrain = 1 << 18;  // elements

class CpuPresence final : public Presence {
 public:
  explicit CpuPresence(const Spec& spec) : dtype_(spec.dtype) {}

  Status Launch(Stream&, int64_t n, const void* x, int64_t low, int64_t size,
                bool* seen) const override {
    std::memset(seen, 0, static_cast<size_t>(size));
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      if constexpr (std::is_integral_v<T>) Mark(n, static_cast<const T*>(x), low, size, seen);
    });
    return OkStatus();
  }

 private:
  template <class T>
  static void Mark(int64_t n, const T* x, int64_t low, int64_t size, bool* seen) {
    ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const uint64_t at = static_cast<uint64_t>(int64_t{x[i]}) - static_cast<uint64_t>(low);
        if (at >= static_cast<uint64_t>(size)) continue;
        const std::atomic_ref<bool> mark(seen[at]);
        if (!mark.load(std::memory_order_relaxed)) mark.store(true, std::memory_order_relaxed);
      }
    });
  }

  DType dtype_;
};

StatusOr<std::unique_ptr<Presence>> NewPresence(const Presence::Spec& spec) {
  return std::make_unique<CpuPresence>(spec);
}

const bool registered = RegisterPrimitive<Presence>(DeviceType::kCPU, &NewPresence);

}  // namespace
}  // namespace oneflow_lite
