// SPDX-License-Identifier: Apache-2.0
//
// Rows by places. Sums and copies go through the rows in their order, threads share out the
// columns; or, where there are few columns for the threads, through the places in order, each with
// the rows that go there in theirs: one thread owns a row of the result then. Short rows of 16-bit
// floats are summed in a copy of float32, unless that is much larger than what is added; longer
// ones by the places.
#include "primitive/index_rows.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/places_within.h"
#include "primitive/cpu/rearrange.h"
#include "primitive/places.h"
#include "primitive/word.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kGrain = 16384;  // elements a thread is worth starting for

// The places from the start: the index itself where none is negative.
class PlacesOf {
 public:
  Status Read(const char* op, const IndexRows& s, const int64_t* index) {
    data_ = index;
    if (cpu::PlacesWithin(index, s.count, 1, 0, s.size - 1)) return OkStatus();
    if (!cpu::PlacesWithin(index, s.count, 1, s.from_end ? -s.size : 0, s.size - 1)) {
      return FirstOutside(op, s, index);
    }
    own_.resize(static_cast<size_t>(s.count));
    std::transform(index, index + s.count, own_.begin(),
                   [&](int64_t place) { return FindPlace(place, s.size, s.from_end); });
    data_ = own_.data();
    return OkStatus();
  }
  const int64_t* data() const { return data_; }

 private:
  static Status FirstOutside(const char* op, const IndexRows& s, const int64_t* index) {
    while (FindPlace(*index, s.size, s.from_end) >= 0) ++index;
    return Error(ErrorKind::kIndex, op, "(): index ", *index, " is out of range [",
                 s.from_end ? -s.size : 0, ", ", s.size - 1, "]");
  }

  const int64_t* data_ = nullptr;
  std::vector<int64_t> own_;
};

int64_t GrainOf(int64_t inner) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, inner));
}

class CpuIndexSelect final : public IndexSelect {
 public:
  explicit CpuIndexSelect(DType dtype) : item_(static_cast<int64_t>(SizeOf(dtype))) {}

  Status Launch(Stream&, const IndexRows& s, const int64_t* given, const void* x,
                void* y) const override {
    PlacesOf places;
    OFL_RETURN_IF_ERROR(places.Read(kName, s, given));
    const int64_t* index = places.data();
    if (s.inner == 1 && item_ == 4) return Elements<int32_t>(s, index, x, y);
    if (s.inner == 1 && item_ == 8) return Elements<int64_t>(s, index, x, y);
    if (s.inner == 1 && item_ == 2) return Elements<int16_t>(s, index, x, y);
    const int64_t bytes = s.inner * item_;
    ForRows(s, [&](int64_t o, int64_t begin, int64_t end) {
      const char* from = static_cast<const char*>(x) + o * s.outer_stride * item_;
      char* to = static_cast<char*>(y) + (o * s.count + begin) * bytes;
      for (int64_t k = begin; k < end; ++k, to += bytes) {
        CopyBytes(bytes, from + index[k] * s.row_stride * item_, to);
      }
    });
    return OkStatus();
  }

 private:
  // f(o, begin, end) for runs of the rows of one outer one.
  template <class F>
  static void ForRows(const IndexRows& s, F&& f) {
    ParallelFor(s.outer * s.count, GrainOf(s.inner), [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t o = begin / s.count, k = begin - o * s.count;
        const int64_t n = std::min(end - begin, s.count - k);
        f(o, k, k + n);
        begin += n;
      }
    });
  }
  template <class T>
  static Status Elements(const IndexRows& s, const int64_t* index, const void* x, void* y) {
    ForRows(s, [&](int64_t o, int64_t begin, int64_t end) {
      const T* from = static_cast<const T*>(x) + o * s.outer_stride;
      T* to = static_cast<T*>(y) + o * s.count;
#pragma GCC unroll 4  // see CopyStrided
      for (int64_t k = begin; k < end; ++k) to[k] = from[index[k] * s.row_stride];
    });
    return OkStatus();
  }

  int64_t item_;
};

// The rows in the order of their places, those of one place in theirs; begin[i] is where the i-th
// place that has some begins, and its last entry the end.
struct Sorted {
  std::vector<int64_t> rows, begin;

  Sorted(const IndexRows& s, const int64_t* index, int64_t skipped) {
    rows.reserve(static_cast<size_t>(s.count));
    for (int64_t k = 0; k < s.count; ++k) {
      if (index[k] != skipped) rows.push_back(k);
    }
    // Counting looks at every place, sorting at no more than there are rows.
    if (s.size <= 4 * s.count) {
      Count(s, index);
    } else {
      std::stable_sort(rows.begin(), rows.end(),
                       [&](int64_t a, int64_t b) { return index[a] < index[b]; });
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i == 0 || index[rows[i]] != index[rows[i - 1]]) begin.push_back(static_cast<int64_t>(i));
    }
    begin.push_back(static_cast<int64_t>(rows.size()));
  }
  int64_t places() const { return static_cast<int64_t>(begin.size()) - 1; }

 private:
  void Count(const IndexRows& s, const int64_t* index) {
    std::vector<int64_t> next(static_cast<size_t>(s.size + 1), 0), sorted(rows.size());
    for (const int64_t k : rows) ++next[static_cast<size_t>(index[k] + 1)];
    for (size_t p = 0; p < static_cast<size_t>(s.size); ++p) next[p + 1] += next[p];
    for (const int64_t k : rows)
      sorted[static_cast<size_t>(next[static_cast<size_t>(index[k])]++)] = k;
    rows = std::move(sorted);
  }
};

class CpuIndexPut final : public IndexPut {
 public:
  explicit CpuIndexPut(const Spec& spec) : spec_(spec) {}

  StatusOr<size_t> WorkspaceBytes(const Stream&, const IndexRows& s) const override {
    return SumsWide(s) ? static_cast<size_t>(s.outer * s.size * s.inner) * sizeof(float) : 0;
  }
  Status Launch(Stream&, const IndexRows& s, const int64_t* given, double alpha, int64_t skipped,
                const void* x, void* y, void* workspace) const override {
    PlacesOf places;
    OFL_RETURN_IF_ERROR(places.Read(kName, s, given));
    const int64_t* index = places.data();
    if (spec_.mode == Mode::kSum) {
      std::memset(y, 0, static_cast<size_t>(s.outer * s.size * s.inner) * SizeOf(spec_.dtype));
    }
    if (spec_.mode == Mode::kCopy) {
      VisitWord(SizeOf(spec_.dtype), [&]<class T>(Tag<T>) {
        Copy(s, index, skipped, static_cast<const T*>(x), static_cast<T*>(y));
      });
      return OkStatus();
    }
    VisitAll(spec_.dtype, [&]<class T>(Tag<T>) {
      if constexpr (std::is_same_v<ComputeOf<T>, float> && sizeof(T) == 2) {
        if (SumsWide(s)) {
          return SumWide(s, index, skipped, static_cast<float>(alpha), static_cast<const T*>(x),
                         static_cast<T*>(y), static_cast<float*>(workspace));
        }
      }
      if constexpr (!std::is_same_v<T, bool>) {
        Sum(s, index, skipped, static_cast<ComputeOf<T>>(alpha), static_cast<const T*>(x),
            static_cast<T*>(y));
      }
    });
    return OkStatus();
  }

 private:
  static constexpr int64_t kColumns = 512;  // that are summed at a time
  // Ordering rows of so few elements by their places costs more than adding them.
  static constexpr int64_t kShortRow = 16;
  static constexpr int64_t kWideRow = 128;  // beyond it the calls for each row cost little

  // f(o, place, begin, end) for every place that has rows: sorted.rows[begin] .. [end - 1].
  template <class F>
  static void ForPlaces(const IndexRows& s, const Sorted& sorted, const int64_t* index, F&& f) {
    const int64_t places = sorted.places();
    const int64_t each = s.inner * std::max<int64_t>(1, s.count / std::max<int64_t>(1, places));
    ParallelFor(s.outer * places, GrainOf(each), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const auto at = static_cast<size_t>(i % places);
        const int64_t begin = sorted.begin[at];
        f(i / places, index[sorted.rows[static_cast<size_t>(begin)]], begin, sorted.begin[at + 1]);
      }
    });
  }

  // In how many parts threads share the columns of each outer one.
  static int64_t ColumnParts(const IndexRows& s) {
    // Columns of a part. Threads that share the columns of dense rows take lines from each other's
    // caches, which places of their own do not.
    constexpr int64_t kLeast = 4096;
    const int64_t wanted = NumThreads() / std::max<int64_t>(1, s.outer);
    return std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, s.inner / kLeast));
  }
  // Whether rows in their order leave no thread idle, or are so short that ordering them by their
  // places would cost more than the rest.
  static bool TakesRowsInOrder(const IndexRows& s) {
    return s.inner <= kShortRow || s.outer * ColumnParts(s) >= NumThreads();
  }
  // Whether 16-bit floats are summed in a copy of float32, by one thread for each outer one: an
  // element of the copy costs a twentieth of one that goes through the places.
  bool SumsWide(const IndexRows& s) const {
    if (spec_.mode == Mode::kCopy || ComputeType(spec_.dtype) == spec_.dtype) return false;
    if (s.inner <= kShortRow) return s.size <= 20 * s.count;
    return s.inner <= kWideRow && s.size <= 2 * s.count && s.outer >= NumThreads();
  }
  // f(to, from, n) for n columns of each row, in the order of the rows.
  template <class X, class T, class F>
  static void ForRowsInOrder(const IndexRows& s, const int64_t* index, int64_t skipped, const X* x,
                             T* y, F f) {
    const int64_t columns = std::max<int64_t>(1, (s.inner + ColumnParts(s) - 1) / ColumnParts(s));
    const int64_t parts = (s.inner + columns - 1) / columns;  // none of them without columns
    ParallelFor(s.outer * parts, GrainOf(s.count * columns), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const int64_t begin = i % parts * columns, n = std::min(columns, s.inner - begin);
        const X* from = x + i / parts * s.outer_stride + begin;
        T* to = y + i / parts * s.size * s.inner + begin;
        if (s.inner == 1) {
          Rows(s, index, skipped, from, to, [&](T* p, const X* q) { f(p, q, 1); });
        } else {
          Rows(s, index, skipped, from, to, [&](T* p, const X* q) { f(p, q, n); });
        }
      }
    });
  }
  template <class X, class T, class F>
  static void Rows(const IndexRows s, const int64_t* index, int64_t skipped, const X* from, T* to,
                   F f) {
    for (int64_t k = 0; k < s.count; ++k, from += s.row_stride) {
      if (index[k] != skipped) f(to + index[k] * s.inner, from);
    }
  }
  template <class C>
  static void AddScaled(C* __restrict__ to, const C* __restrict__ from, int64_t n, C alpha) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<C>(to[i] + static_cast<C>(from[i] * alpha));
  }

  template <class T>
  static void Copy(const IndexRows& s, const int64_t* index, int64_t skipped, const T* x, T* y) {
    if (TakesRowsInOrder(s)) {
      return ForRowsInOrder(s, index, skipped, x, y, [](T* to, const T* from, int64_t n) {
        if (n == 1) {
          *to = *from;
        } else {
          std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
        }
      });
    }
    const Sorted sorted(s, index, skipped);
    ForPlaces(s, sorted, index, [&](int64_t o, int64_t place, int64_t, int64_t end) {
      const int64_t row = sorted.rows[static_cast<size_t>(end - 1)];
      std::memcpy(y + (o * s.size + place) * s.inner, x + o * s.outer_stride + row * s.row_stride,
                  static_cast<size_t>(s.inner) * sizeof(T));
    });
  }

  template <class T>
  static void SumWide(const IndexRows& s, const int64_t* index, int64_t skipped, float alpha,
                      const T* x, T* y, float* sums) {
    const ConvertFunction widen = FindConvert(DTypeOf<T>(), DType::kFloat32);
    const ConvertFunction narrow = FindConvert(DType::kFloat32, DTypeOf<T>());
    const int64_t total = s.outer * s.size * s.inner;
    ParallelFor(total, kGrain,
                [&](int64_t begin, int64_t end) { widen(end - begin, y + begin, sums + begin); });
    if (s.inner == 1 && s.row_stride == 1) {
      AddLines(s, index, skipped, alpha, widen, x, sums);
    } else {
      ForRowsInOrder(s, index, skipped, x, sums, [=](float* to, const T* from, int64_t n) {
        if (n > kShortRow) {
          float row[kWideRow];
          widen(n, from, row);
          return AddScaled(to, row, n, alpha);
        }
        for (int64_t i = 0; i < n; ++i) to[i] += static_cast<float>(from[i]) * alpha;
      });
    }
    ParallelFor(total, kGrain,
                [&](int64_t begin, int64_t end) { narrow(end - begin, sums + begin, y + begin); });
  }
  // Rows of one element that lie densely.
  template <class T>
  static void AddLines(const IndexRows& s, const int64_t* index, int64_t skipped, float alpha,
                       ConvertFunction widen, const T* x, float* sums) {
    ParallelFor(s.outer, GrainOf(s.count), [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o) {
        float* to = sums + o * s.size;
        float wide[kColumns];
        for (int64_t k = 0; k < s.count; k += kColumns) {
          const int64_t part = std::min(kColumns, s.count - k);
          widen(part, x + o * s.outer_stride + k, wide);
          for (int64_t i = 0; i < part; ++i) {
            if (index[k + i] != skipped) to[index[k + i]] += wide[i] * alpha;
          }
        }
      }
    });
  }

  // 16-bit floats are rounded once for each place, not for each row.
  template <class T>
  static void Sum(const IndexRows& s, const int64_t* index, int64_t skipped, ComputeOf<T> alpha,
                  const T* x, T* y) {
    using C = ComputeOf<T>;
    if constexpr (std::is_same_v<T, C>) {
      if (TakesRowsInOrder(s)) {
        return ForRowsInOrder(s, index, skipped, x, y, [=](T* to, const T* from, int64_t n) {
          AddScaled(to, from, n, alpha);
        });
      }
    }
    const ConvertFunction widen = FindConvert(DTypeOf<T>(), DTypeOf<C>());
    const ConvertFunction narrow = FindConvert(DTypeOf<C>(), DTypeOf<T>());
    const Sorted sorted(s, index, skipped);
    ForPlaces(s, sorted, index, [&](int64_t o, int64_t place, int64_t begin, int64_t end) {
      T* to = y + (o * s.size + place) * s.inner;
      const T* from = x + o * s.outer_stride;
      for (int64_t c = 0; c < s.inner; c += kColumns) {
        const int64_t n = std::min(kColumns, s.inner - c);
        const auto row_of = [&](int64_t r) {
          return from + sorted.rows[static_cast<size_t>(r)] * s.row_stride + c;
        };
        if constexpr (std::is_same_v<T, C>) {
          for (int64_t r = begin; r < end; ++r) AddScaled(to + c, row_of(r), n, alpha);
        } else {
          C sum[kColumns], row[kColumns];
          widen(n, to + c, sum);
          for (int64_t r = begin; r < end; ++r) {
            widen(n, row_of(r), row);
            AddScaled(sum, row, n, alpha);
          }
          narrow(n, sum, to + c);
        }
      }
    });
  }

  Spec spec_;
};

StatusOr<std::unique_ptr<IndexSelect>> NewIndexSelect(const IndexSelect::Spec& spec) {
  return std::make_unique<CpuIndexSelect>(spec.dtype);
}
StatusOr<std::unique_ptr<IndexPut>> NewIndexPut(const IndexPut::Spec& spec) {
  if (spec.mode != IndexPut::Mode::kCopy && spec.dtype == DType::kBool) {
    return NoPrimitiveFor(IndexPut::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuIndexPut>(spec);
}

const bool registered = RegisterPrimitive<IndexSelect>(DeviceType::kCPU, &NewIndexSelect) &&
                        RegisterPrimitive<IndexPut>(DeviceType::kCPU, &NewIndexPut);

}  // namespace
}  // namespace oneflow_lite
