// SPDX-License-Identifier: Apache-2.0
//
// Each part of the elements has marks of its own, which are joined as it ends.
#include "primitive/presence.h"

#include <cstring>
#include <type_traits>
#include <vector>

#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kPart = 1 << 18;  // elements, many beside the most numbers

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
    const int64_t parts = ParallelRanges(n, kPart);
    std::vector<uint8_t> marks(static_cast<size_t>(parts * size));  // in the region none may throw
    ParallelFor(parts, 1, [&](int64_t first, int64_t last) {
      uint8_t* own = marks.data() + first * size;
      const int64_t begin = n * first / parts, end = n * last / parts;
      for (int64_t i = begin; i < end; ++i) {
        const uint64_t at = static_cast<uint64_t>(int64_t{x[i]}) - static_cast<uint64_t>(low);
        if (at < static_cast<uint64_t>(size)) own[at] = 1;
      }
    });
    for (int64_t part = 0; part < parts; ++part) {
      const uint8_t* own = marks.data() + part * size;
      for (int64_t k = 0; k < size; ++k) seen[k] = seen[k] || own[k] != 0;
    }
  }

  DType dtype_;
};

StatusOr<std::unique_ptr<Presence>> NewPresence(const Presence::Spec& spec) {
  return std::make_unique<CpuPresence>(spec);
}

const bool registered = RegisterPrimitive<Presence>(DeviceType::kCPU, &NewPresence);

}  // namespace
}  // namespace oneflow_lite
