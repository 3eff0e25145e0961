// SPDX-License-Identifier: Apache-2.0
#include "primitive/index.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/places_within.h"
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

constexpr int64_t kPlaces = 1024;  // that are looked at before they are used: they stay in L1

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

// There(i, place) for i < n in their order, absent(i) where there is none.
template <class There, class Absent>
void ForPlaces(int64_t n, const int64_t* places, int64_t step, int64_t size, bool from_end,
               BadPlace& bad, There&& there, Absent&& absent) {
  for (int64_t begin = 0; begin < n; begin += kPlaces) {
    const int64_t end = std::min(n, begin + kPlaces);
    if (cpu::PlacesWithin(places + begin * step, end - begin, step, 0, size - 1)) {
      for (int64_t i = begin; i < end; ++i) there(i, places[i * step]);
      continue;
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t place = bad.Find(places[i * step], size, from_end);
      place < 0 ? absent(i) : there(i, place);
    }
  }
}
// A stride that the compiler knows.
template <int64_t kStride>
using Always = std::integral_constant<int64_t, kStride>;

class CpuGather final : public Gather {
 public:
  explicit CpuGather(DType dtype) : dtype_(dtype) {}

  Status Launch(Stream&, const Elementwise<3>& g, const GatherAxis& axis, const int64_t* index,
                const void* x_data, void* y_data) const override {
    BadPlace bad;
    VisitWord(SizeOf(dtype_), [&]<class T>(Tag<T>) {
      const T* x = static_cast<const T*>(x_data);
      T* y = static_cast<T*>(y_data);
      ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
        ForRuns(g, begin, end, [&](int64_t n, const int64_t* at, const int64_t* step) {
          const int64_t* places = index + at[0];
          if (step[0] == 0 && step[1] == 1 && step[2] == 1) {
            const int64_t first = bad.Find(*places, axis.size, axis.from_end);
            if (first >= 0) {
              std::memcpy(y + at[2], x + at[1] + first * axis.stride,
                          static_cast<size_t>(n) * sizeof(T));
              return;
            }
          }
          Elements(axis, bad, n, places, step, x + at[1], y + at[2]);
        });
      });
    });
    return bad.Result(kName, axis.size, axis.from_end);
  }

 private:
  // By value, since a store to y might change what is behind a reference.
  template <class T>
  static void Elements(const GatherAxis axis, BadPlace& bad, int64_t n, const int64_t* places,
                       const int64_t* step, const T* x, T* y) {
    const auto run = [&](auto of_place, auto of_x, auto of_y, auto stride) {
      ForPlaces(
          n, places, of_place, axis.size, axis.from_end, bad,
          [=](int64_t i, int64_t place) { y[i * of_y] = x[i * of_x + place * stride]; },
          [=](int64_t i) { y[i * of_y] = T(0); });
    };
    if (step[0] == 1 && step[1] == 0 && step[2] == 1 && axis.stride == 1) {  // of a line
      run(Always<1>(), Always<0>(), Always<1>(), Always<1>());
    } else {
      run(step[0], step[1], step[2], axis.stride);
    }
  }

  DType dtype_;
};

// What becomes of an element that is there.
struct Put {
  template <class T>
  void operator()(T& to, T from) const {
    to = from;
  }
};
struct AddTo {
  template <class T, class X>
  void operator()(T& to, X from) const {
    to = T(static_cast<ComputeOf<T>>(to) + static_cast<ComputeOf<X>>(from));
  }
};
struct MultiplyBy {
  template <class T>
  void operator()(T& to, T from) const {
    if constexpr (std::is_integral_v<T>) {  // which wraps around
      to = static_cast<T>(static_cast<uint64_t>(to) * static_cast<uint64_t>(from));
    } else {
      to = T(static_cast<ComputeOf<T>>(to) * static_cast<ComputeOf<T>>(from));
    }
  }
};
template <class C>
bool IsNan(C value) {
  if constexpr (std::is_floating_point_v<C>) return value != value;
  return false;
}
// A NaN that comes is taken, one that is there stays.
struct KeepLarger {
  template <class T>
  void operator()(T& to, T from) const {
    const ComputeOf<T> value = static_cast<ComputeOf<T>>(from);
    to = (value > static_cast<ComputeOf<T>>(to)) | IsNan(value) ? from : to;
  }
};
struct KeepSmaller {
  template <class T>
  void operator()(T& to, T from) const {
    const ComputeOf<T> value = static_cast<ComputeOf<T>>(from);
    to = (value < static_cast<ComputeOf<T>>(to)) | IsNan(value) ? from : to;
  }
};

// The columns of a scatter, each with a place in the axis for each of its elements, line by line: a
// column after the other where the places of one lie closer together than those of neighbouring
// columns, else the same element of many columns at once.
struct ScatterOffsets {
  int64_t index, src, dst;
};
class ColumnsOfScatter {
 public:
  ColumnsOfScatter(const Elementwise<3>& columns, const ScatterAxis& axis)
      : columns_(columns), axis_(axis) {
    const auto last = static_cast<size_t>(columns.ndim - 1);
    by_column_ = columns.ndim == 0 || axis.index_stride + axis.src_stride <
                                          columns.strides[0][last] + columns.strides[1][last];
  }
  const ScatterAxis& axis() const { return axis_; }

  // Calls f(n, offsets, steps) for lines of n elements. A thread has its columns to itself, and
  // goes through them in the order of the axis.
  template <class F>
  void ForLines(F&& f) const {
    const int64_t grain =
        std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(1, axis_.count));
    ParallelFor(columns_.numel, grain, [&](int64_t begin, int64_t end) {
      for (int64_t k = 0; k < (by_column_ ? 1 : axis_.count); ++k) {
        const int64_t of_index = k * axis_.index_stride, of_src = k * axis_.src_stride;
        ForRuns(columns_, begin, end, [&](int64_t n, const int64_t* at, const int64_t* step) {
          const ScatterOffsets first{of_index + at[0], of_src + at[1], at[2]};
          if (!by_column_) return f(n, first, ScatterOffsets{step[0], step[1], step[2]});
          for (int64_t i = 0; i < n; ++i) {
            f(axis_.count,
              ScatterOffsets{first.index + i * step[0], first.src + i * step[1],
                             first.dst + i * step[2]},
              ScatterOffsets{axis_.index_stride, axis_.src_stride, 0});
          }
        });
      }
    });
  }
  bool AreWithin(const int64_t* index, int64_t low, int64_t high) const {
    std::atomic<bool> within{true};
    ForLines([&](int64_t n, const ScatterOffsets& at, const ScatterOffsets& step) {
      if (!cpu::PlacesWithin(index + at.index, n, step.index, low, high)) within = false;
    });
    return within;
  }
  // The error that names it.
  Status FirstOutside(const int64_t* index) const {
    BadPlace bad;
    ForLines([&](int64_t n, const ScatterOffsets& at, const ScatterOffsets& step) {
      for (int64_t i = 0; i < n; ++i) {
        bad.Find(index[at.index + i * step.index], axis_.size, axis_.from_end);
      }
    });
    return bad.Result(Scatter::kName, axis_.size, axis_.from_end);
  }

 private:
  const Elementwise<3>& columns_;
  const ScatterAxis& axis_;
  bool by_column_;
};

class CpuScatter final : public Scatter {
 public:
  explicit CpuScatter(const Spec& spec) : spec_(spec) {}

  Status Launch(Stream&, const Elementwise<3>& columns, const ScatterAxis& axis,
                const int64_t* index, const void* src, void* dst,
                void* /*workspace*/) const override {
    // All places are looked at before anything is written.
    const ColumnsOfScatter all(columns, axis);
    const int64_t last = axis.size - 1;
    const bool plain = all.AreWithin(index, 0, last);
    if (!plain && !(axis.from_end && all.AreWithin(index, -axis.size, last))) {
      return all.FirstOutside(index);
    }
    const auto run = [&]<class T>(Tag<T>, auto store) {
      Run(all, plain, index, static_cast<const T*>(src), static_cast<T*>(dst), store);
    };
    if (spec_.src != spec_.dtype) {
      VisitFloating(spec_.src, [&]<class X>(Tag<X>) {
        Run(all, plain, index, static_cast<const X*>(src), static_cast<float*>(dst), AddTo());
      });
    } else if (spec_.mode == Mode::kPut) {
      VisitWord(SizeOf(spec_.dtype), [&](auto t) { run(t, Put()); });
    } else {
      VisitAll(spec_.dtype, [&](auto t) {
        if (spec_.mode == Mode::kMul) {
          run(t, MultiplyBy());
        } else if (spec_.mode == Mode::kMax) {
          run(t, KeepLarger());
        } else if (spec_.mode == Mode::kMin) {
          run(t, KeepSmaller());
        } else if constexpr (!std::is_same_v<typename decltype(t)::type, bool>) {
          run(t, AddTo());
        }
      });
    }
    return OkStatus();
  }

 private:
  template <class T, class X, class F>
  static void Run(const ColumnsOfScatter& all, bool plain, const int64_t* index, const X* src,
                  T* dst, F store) {
    all.ForLines([&](int64_t n, const ScatterOffsets& at, const ScatterOffsets& step) {
      Store(all.axis(), plain, n, index + at.index, step.index, src + at.src, step.src,
            dst + at.dst, step.dst, store);
    });
  }
  // n elements of x to their places, each `of_to` behind the one before besides. `plain`: none is
  // counted from the end.
  template <class T, class X, class F>
  static void Store(const ScatterAxis axis, bool plain, int64_t n, const int64_t* places,
                    int64_t of_places, const X* x, int64_t of_x, T* to, int64_t of_to, F store) {
    if (of_places == 0 && of_x == 1 && of_to == 1) {  // a slice to one place
      to += FindPlace(*places, axis.size, axis.from_end) * axis.dst_stride;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) store(to[i], x[i]);
      return;
    }
    const auto run = [&](auto of_place, auto of_from, auto of_here, auto stride) {
      if (plain) {
        for (int64_t i = 0; i < n; ++i) {
          store(to[i * of_here + places[i * of_place] * stride], x[i * of_from]);
        }
        return;
      }
      for (int64_t i = 0; i < n; ++i) {
        const int64_t place = FindPlace(places[i * of_place], axis.size, true);
        store(to[i * of_here + place * stride], x[i * of_from]);
      }
    };
    if (of_places == 1 && of_x == 1 && of_to == 0 && axis.dst_stride == 1) {  // to a line
      run(Always<1>(), Always<1>(), Always<0>(), Always<1>());
    } else {
      run(of_places, of_x, of_to, axis.dst_stride);
    }
  }

  Spec spec_;
};

StatusOr<std::unique_ptr<Gather>> NewGather(const Gather::Spec& spec) {
  return std::make_unique<CpuGather>(spec.dtype);
}
StatusOr<std::unique_ptr<Scatter>> NewScatter(const Scatter::Spec& spec) {
  const bool sums = spec.mode == Scatter::Mode::kAdd;
  if (sums && spec.dtype == DType::kBool) {
    return NoPrimitiveFor(Scatter::kName, DeviceType::kCPU, spec.dtype);
  }
  if (spec.src != spec.dtype && !(sums && spec.dtype == DType::kFloat32)) {
    return NoPrimitiveFor(Scatter::kName, DeviceType::kCPU, spec.src);
  }
  return std::make_unique<CpuScatter>(spec);
}

const bool registered = RegisterPrimitive<Gather>(DeviceType::kCPU, &NewGather) &&
                        RegisterPrimitive<Scatter>(DeviceType::kCPU, &NewScatter);

}  // namespace
}  // namespace oneflow_lite
