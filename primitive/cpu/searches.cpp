// SPDX-License-Identifier: Apache-2.0
//
// sort_rows, longest_run and searchsorted.
#include <limits>
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
    const int64_t per_row = p.numel / p.rows;
    constexpr int64_t kVector = 16;  // sought elements of a row that are worth a vector
    const bool vectors =
        per_row >= kVector && p.cols > 0 && p.cols < std::numeric_limits<int32_t>::max();
    const SearchLoop<Out> loop = vectors ? FindSearchLoop<Out>(dtype_) : nullptr;
    ParallelFor(p.numel, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        const int64_t row = i / per_row, n = std::min(end, (row + 1) * per_row) - i;
        const T* line = sorted + row * p.cols;
        if (loop) {
          loop(p.cols, line, p.right, n, x + i, places + i);
          i += n;
          continue;
        }
        i += p.right ? Some<true>(p.cols, line, n, x + i, places + i)
                     : Some<false>(p.cols, line, n, x + i, places + i);
      }
    });
  }
  // Several x at once, as each step of a search waits for the one before; gives how many.
  template <bool kRight, class T, class Out>
  static int64_t Some(int64_t cols, const T* row, int64_t n, const T* x, Out* places) {
    constexpr int kMany = 8, kFew = 4;
    return n >= kMany ? Search<kMany, kRight>(cols, row, kMany, x, places)
                      : Search<kFew, kRight>(cols, row, std::min<int64_t>(kFew, n), x, places);
  }

  // Whether v comes before x; NaN is the largest.
  template <bool kRight, class C>
  static bool IsBefore(C v, C x) {
    return kRight ? (v <= x) | (x != x) : (v < x) | ((x != x) & (v == v));
  }
  // How many elements of the row come before each of n <= kAtOnce x, all in the same steps.
  template <int kAtOnce, bool kRight, class T, class Out>
  static int64_t Search(int64_t cols, const T* row, int64_t n, const T* x, Out* places) {
    using C = ComputeOf<T>;
    C sought[kAtOnce];
    int64_t found[kAtOnce] = {};
    for (int64_t k = 0; k < kAtOnce; ++k) sought[k] = static_cast<C>(x[std::min(k, n - 1)]);
    const auto is_before = [&](int64_t k, int64_t at) {
      return int64_t{IsBefore<kRight>(static_cast<C>(row[at]), sought[k])};
    };
    for (int64_t left = cols; left > 1;) {
      const int64_t half = left / 2;
      for (int64_t k = 0; k < kAtOnce; ++k) {  // without a branch
        found[k] += half & -is_before(k, found[k] + half - 1);
      }
      left -= half;
    }
    for (int64_t k = 0; k < n; ++k) {
      places[k] = static_cast<Out>(cols > 0 ? found[k] + is_before(k, found[k]) : 0);
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
