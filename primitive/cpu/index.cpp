// SPDX-License-Identifier: Apache-2.0
#include "primitive/index.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/strided.h"
#include "primitive/places.h"
#include "primitive/word.h"

namespace oneflow_lite {
namespace {

// Calls f(n, offsets, strides) for runs of elements begin .. end in which no operand turns a
// corner.
template <class F>
void ForRuns(const Elementwise<3>& g, int64_t begin, int64_t end, F&& f) {
  StridedCursor cursors[] = {{g, 0, begin}, {g, 1, begin}, {g, 2, begin}};
  const int64_t strides[] = {cursors[0].stride(), cursors[1].stride(), cursors[2].stride()};
  for (int64_t i = begin; i < end;) {
    int64_t n = end - i;
    for (const StridedCursor& c : cursors) n = std::min(n, c.run());
    const int64_t offsets[] = {cursors[0].offset(), cursors[1].offset(), cursors[2].offset()};
    f(n, offsets, strides);
    for (StridedCursor& c : cursors) c.Advance(n);
    i += n;
  }
}

// The first place that was found outside the dim, from whatever thread.
class BadPlace {
 public:
  // FindPlace
  int64_t Find(int64_t place, int64_t size, bool from_end) {
    const int64_t found = FindPlace(place, size, from_end);
    if (found >= 0) return found;
    place_.store(place, std::memory_order_relaxed);
    found_.store(true, std::memory_order_relaxed);
    return -1;
  }
  Status Result(const char* op, int64_t size, bool from_end) const {
    if (!found_) return OkStatus();
    return Error(ErrorKind::kIndex, op, "(): index ", place_.load(), " is out of range [",
                 from_end ? -size : 0, ", ", size - 1, "]");
  }

 private:
  std::atomic<int64_t> place_{0};
  std::atomic<bool> found_{false};
};

class CpuGather final : public Gather {
 public:
  explicit CpuGather(DType dtype) : dtype_(dtype) {}

  Status Launch(Stream&, const Elementwise<3>& g, const GatherAxis& axis, const int64_t* index,
                const void* x_data, void* y_data) const override {
    BadPlace bad;
    const auto find = [&](int64_t place) { return bad.Find(place, axis.size, axis.from_end); };
    VisitWord(SizeOf(dtype_), [&]<class T>(Tag<T>) {
      const T* x = static_cast<const T*>(x_data);
      T* y = static_cast<T*>(y_data);
      ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
        ForRuns(g, begin, end, [&](int64_t n, const int64_t* at, const int64_t* step) {
          const int64_t first = find(index[at[0]]);
          if (step[0] == 0 && step[1] == 1 && step[2] == 1 && first >= 0) {
            std::memcpy(y + at[2], x + at[1] + first * axis.stride,
                        static_cast<size_t>(n) * sizeof(T));
            return;
          }
          for (int64_t i = 0; i < n; ++i) {
            const int64_t place = find(index[at[0] + i * step[0]]);
            y[at[2] + i * step[2]] =
                place < 0 ? T(0) : x[at[1] + i * step[1] + place * axis.stride];
          }
        });
      });
    });
    return bad.Result(kName, axis.size, axis.from_end);
  }

 private:
  DType dtype_;
};

class CpuScatter final : public Scatter {
 public:
  explicit CpuScatter(const Spec& spec) : spec_(spec) {}

  Status Launch(Stream&, const Elementwise<3>& columns, const ScatterAxis& axis,
                const int64_t* index, const void* src, void* dst,
                void* /*workspace*/) const override {
    BadPlace bad;
    const auto put = [](auto& to, auto from) { to = from; };
    const auto add = [](auto& to, auto from) {
      using T = std::decay_t<decltype(to)>;
      to = T(static_cast<ComputeOf<T>>(to) + static_cast<ComputeOf<T>>(from));
    };
    if (spec_.add) {
      VisitAll(spec_.dtype, [&]<class T>(Tag<T>) {
        if constexpr (!std::is_same_v<T, bool>) {
          Run(columns, axis, index, static_cast<const T*>(src), static_cast<T*>(dst), add, bad);
        }
      });
    } else {
      VisitWord(SizeOf(spec_.dtype), [&]<class T>(Tag<T>) {
        Run(columns, axis, index, static_cast<const T*>(src), static_cast<T*>(dst), put, bad);
      });
    }
    return bad.Result(kName, axis.size, axis.from_end);
  }

 private:
  // A thread owns its columns, so that nobody else writes to them.
  template <class T, class F>
  static void Run(const Elementwise<3>& columns, const ScatterAxis& axis, const int64_t* index,
                  const T* src, T* dst, F store, BadPlace& bad) {
    const int64_t grain =
        std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(1, axis.count));
    ParallelFor(columns.numel, grain, [&](int64_t begin, int64_t end) {
      for (int64_t k = 0; k < axis.count; ++k) {
        const int64_t* places = index + k * axis.index_stride;
        const T* from = src + k * axis.src_stride;
        ForRuns(columns, begin, end, [&](int64_t n, const int64_t* at, const int64_t* step) {
          for (int64_t i = 0; i < n; ++i) {
            const int64_t place = bad.Find(places[at[0] + i * step[0]], axis.size, axis.from_end);
            if (place < 0) continue;
            store(dst[at[2] + i * step[2] + place * axis.dst_stride], from[at[1] + i * step[1]]);
          }
        });
      }
    });
  }

  Spec spec_;
};

StatusOr<std::unique_ptr<Gather>> NewGather(const Gather::Spec& spec) {
  return std::make_unique<CpuGather>(spec.dtype);
}
StatusOr<std::unique_ptr<Scatter>> NewScatter(const Scatter::Spec& spec) {
  if (spec.add && spec.dtype == DType::kBool) {
    return NoPrimitiveFor(Scatter::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuScatter>(spec);
}

const bool registered = RegisterPrimitive<Gather>(DeviceType::kCPU, &NewGather) &&
                        RegisterPrimitive<Scatter>(DeviceType::kCPU, &NewScatter);

}  // namespace
}  // namespace oneflow_lite
