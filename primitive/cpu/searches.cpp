// SPDX-License-Identifier: Apache-2.0
//
// sort_rows, longest_run and searchsorted.
#include <bit>
#include <numeric>

#include "primitive/cpu/ordered_rows.h"
#include "primitive/cpu/search_loops.h"
#include "primitive/sort.h"

namespace oneflow_lite {
namespace {

class CpuSortRows final : public SortRows {
 public:
  explicit CpuSortRows(DType dtype) : dtype_(dtype) {}

  // The order, for merges.
  StatusOr<size_t> WorkspaceBytes(const Stream&, int64_t rows, int64_t) const override {
    return static_cast<size_t>(rows) * sizeof(int64_t);
  }
  Status Launch(Stream&, int64_t rows, int64_t cols, const void* x_data, int64_t* order,
                void* workspace) const override {
    int64_t* other = static_cast<int64_t*>(workspace);
    std::iota(order, order + rows, int64_t{0});
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      const T* x = static_cast<const T*>(x_data);
      const auto before = [&](int64_t a, int64_t b) {
        for (int64_t i = 0; i < cols; ++i) {
          const auto u = cpu::KeyAt(x, a * cols + i, false), v = cpu::KeyAt(x, b * cols + i, false);
          if (u != v) return u < v;
        }
        return false;
      };
      for (int64_t length = 1; length < rows; length *= 2) {
        for (int64_t start = 0; start < rows; start += 2 * length) {
          const int64_t middle = std::min(start + length, rows);
          const int64_t end = std::min(start + 2 * length, rows);
          std::merge(order + start, order + middle, order + middle, order + end, other + start,
                     before);
        }
        std::copy(other, other + rows, order);
      }
    });
    return OkStatus();
  }

 private:
  DType dtype_;
};

class CpuLongestRun final : public LongestRun {
 public:
  explicit CpuLongestRun(DType dtype) : dtype_(dtype) {}

  Status Launch(Stream&, int64_t rows, int64_t cols, const void* sorted,
                int64_t* places) const override {
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      cpu::RowRanges{rows, cols}.ForRows(nullptr, 0, [&](int64_t row, char*) {
        const T* x = static_cast<const T*>(sorted) + row * cols;
        int64_t longest = 0, start = 0;
        for (int64_t i = 0; i < cols; ++i) {
          const auto key = cpu::KeyAt(x, i, false);
          if (i > start && key != cpu::KeyAt(x, start, false)) start = i;
          if (i - start + 1 > longest) {
            longest = i - start + 1;
            places[row] = i;
          }
        }
      });
    });
    return OkStatus();
  }

 private:
  DType dtype_;
};

class CpuSearchSorted final : public SearchSorted {
 public:
  explicit CpuSearchSorted(DType dtype) : dtype_(dtype) {}

  Status Launch(Stream&, const Problem& p, const void* sorted, const void* x,
                void* places) const override {
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      if (p.out_int32) {
        Run(p, static_cast<const T*>(sorted), static_cast<const T*>(x),
            static_cast<int32_t*>(places));
      } else {
        Run(p, static_cast<const T*>(sorted), static_cast<const T*>(x),
            static_cast<int64_t*>(places));
      }
    });
    return OkStatus();
  }

 private:
  template <class T, class Out>
  void Run(const Problem& p, const T* sorted, const T* x, Out* places) const {
    const SortedRows rows{sorted, p.cols, std::max<int64_t>(1, p.numel / p.rows), p.right};
    constexpr int64_t kVector = 16;  // sought elements that are worth a vector
    const bool vectors = p.numel >= kVector && p.cols > 0 && p.cols <= kMostSearched;
    const SearchLoop<Out> loop = vectors ? FindSearchLoop<Out>(dtype_) : nullptr;
    constexpr int64_t kSteps = 4096;  // a thread is worth starting for
    const auto steps = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(p.cols)));
    ParallelFor(p.numel, kSteps / std::max<int64_t>(1, steps), [&](int64_t begin, int64_t end) {
      if (loop) return loop(rows, begin, end, x, places);
      for (int64_t i = begin; i < end;) {
        i += p.right ? Search<true>(rows, i, end, x, places)
                     : Search<false>(rows, i, end, x, places);
      }
    });
  }

  // Whether v comes before x; NaN is the largest.
  template <bool kRight, class C>
  static bool IsBefore(C v, C x) {
    return kRight ? (v <= x) | (x != x) : (v < x) | ((x != x) & (v == v));
  }
  // Several x at once from i on, as each step of a search waits for the one before; how many.
  template <bool kRight, class T, class Out>
  static int64_t Search(const SortedRows& rows, int64_t i, int64_t end, const T* x, Out* places) {
    using C = ComputeOf<T>;
    constexpr int64_t kAtOnce = 8;
    const int64_t n = std::min(kAtOnce, end - i);
    const T* row[kAtOnce];
    C sought[kAtOnce];
    int64_t found[kAtOnce] = {};
    for (int64_t k = 0; k < kAtOnce; ++k) {
      const int64_t at = i + std::min(k, n - 1);
      row[k] = static_cast<const T*>(rows.data) + at / rows.per_row * rows.cols;
      sought[k] = static_cast<C>(x[at]);
    }
    const auto is_before = [&](int64_t k, int64_t at) {
      return int64_t{IsBefore<kRight>(static_cast<C>(row[k][at]), sought[k])};
    };
    for (int64_t left = rows.cols; left > 1;) {
      const int64_t half = left / 2;
      for (int64_t k = 0; k < kAtOnce; ++k) {  // without a branch
        found[k] += half & -is_before(k, found[k] + half - 1);
      }
      left -= half;
    }
    for (int64_t k = 0; k < n; ++k) {
      places[i + k] = static_cast<Out>(rows.cols > 0 ? found[k] + is_before(k, found[k]) : 0);
    }
    return n;
  }

  DType dtype_;
};

template <class P, class C>
StatusOr<std::unique_ptr<P>> New(const typename P::Spec& spec) {
  return std::make_unique<C>(spec.dtype);
}

const bool sort_rows_registered =
    RegisterPrimitive<SortRows>(DeviceType::kCPU, &New<SortRows, CpuSortRows>);
const bool longest_run_registered =
    RegisterPrimitive<LongestRun>(DeviceType::kCPU, &New<LongestRun, CpuLongestRun>);
const bool search_registered =
    RegisterPrimitive<SearchSorted>(DeviceType::kCPU, &New<SearchSorted, CpuSearchSorted>);

}  // namespace
}  // namespace oneflow_lite
