// SPDX-License-Identifier: Apache-2.0
//
// Rows of logits, or parts of them, of one dtype on the CPU: what the cross entropies there are
// made of.
//
//   const LogitRows rows(DType::kBFloat16);
//   LogitRows::ForEach(n, cols, [&](int64_t r) {
//     const RowStats stats = rows.Statistics(cols, rows.At(x, r * stride));
//   });
#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/softmax_plan.h"

namespace oneflow_lite {

// What the gradient of a row needs to know.
struct GradientRow {
  double max, log_sum;
  double uniform;  // smoothing / classes, of all classes
  double dloss;
};

// Over n contiguous elements: a row or a part of one.
struct CrossEntropyKernels {
  // Also asks for the n elements behind, which are the next row.
  RowStats (*stats)(int64_t n, const void* x);
  double (*deviation)(int64_t n, double anchor, const void* x);  // sum of x - anchor
  double (*element)(const void* x, int64_t i);
  void (*put_element)(void* x, int64_t i, double v);
  // dx = (exp(x - max - log_sum) - uniform) dloss; dx may be x.
  void (*gradient)(int64_t n, const GradientRow& row, const void* x, void* dx);
  // The same at element i, with `sharp` subtracted from the probability.
  void (*gradient_at)(int64_t i, double x, double sharp, const GradientRow& row, void* dx);
  void (*scale)(int64_t n, double factor, void* x);
  // Numbers of the compute type.
  double (*number)(const void* p, int64_t i);
  void (*put_number)(void* p, int64_t i, double v);
};

// Those of the processor that this is.
CrossEntropyKernels FindCrossEntropyKernels(DType dtype);

// Rows of one dtype, and how they are shared out among threads.
class LogitRows {
 public:
  explicit LogitRows(DType dtype)
      : item_(SizeOf(dtype)), kernels_(FindCrossEntropyKernels(dtype)) {}

  const CrossEntropyKernels& kernels() const { return kernels_; }
  const void* At(const void* p, int64_t i) const { return static_cast<const char*>(p) + i * item_; }
  void* At(void* p, int64_t i) const { return static_cast<char*>(p) + i * item_; }

  // Calls body(row) for every row, in parallel where there are rows enough to go around; else the
  // loops over parts of a row inside body are parallel.
  template <class Body>
  static void ForEach(int64_t rows, int64_t cols, Body body) {
    if (SplitsRows({.rows = rows, .cols = std::max<int64_t>(1, cols)})) {
      for (int64_t row = 0; row < rows; ++row) body(row);
      return;
    }
    ParallelFor(rows, RowGrain(std::max<int64_t>(1, cols)), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) body(row);
    });
  }
  // Calls part(index, begin, size) for the parts of a row; one where rows run in parallel already.
  template <class Part>
  static void ForParts(const RowParts& parts, Part part) {
    ParallelFor(parts.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) part(i, parts.Begin(i), parts.Size(i));
    });
  }

  RowStats Statistics(int64_t cols, const void* x) const {
    const RowParts parts(cols);
    if (parts.count == 1) return kernels_.stats(cols, x);
    RowStats stats[RowParts::kMax];
    ForParts(parts, [&](int64_t i, int64_t begin, int64_t size) {
      stats[i] = kernels_.stats(size, At(x, begin));
    });
    RowStats row{-std::numeric_limits<double>::infinity(), 0};
    for (int i = 0; i < parts.count; ++i) row.max = std::max(row.max, stats[i].max);
    const double shift = row.max == -std::numeric_limits<double>::infinity() ? 0 : row.max;
    for (int i = 0; i < parts.count; ++i) {
      row.sum += stats[i].sum * std::exp(stats[i].max - shift);
    }
    return row;
  }

  // The sum of x - anchor.
  double Deviation(int64_t cols, double anchor, const void* x) const {
    const RowParts parts(cols);
    double sums[RowParts::kMax];
    ForParts(parts, [&](int64_t i, int64_t begin, int64_t size) {
      sums[i] = kernels_.deviation(size, anchor, At(x, begin));
    });
    double deviation = 0;
    for (int i = 0; i < parts.count; ++i) deviation += sums[i];
    return deviation;
  }

  // dx may be x. target: a column, where `sharp` is subtracted from the probability; or -1.
  void Gradient(int64_t cols, const GradientRow& row, int64_t target, double sharp, const void* x,
                void* dx) const {
    const double x_target = target < 0 ? 0 : kernels_.element(x, target);
    ForParts(RowParts(cols), [&](int64_t, int64_t begin, int64_t size) {
      kernels_.gradient(size, row, At(x, begin), At(dx, begin));
    });
    if (target >= 0) kernels_.gradient_at(target, x_target, sharp, row, dx);
  }

  void Zero(int64_t cols, void* dx) const {  // all bits 0 is 0 in every floating type
    std::memset(dx, 0, static_cast<size_t>(cols * item_));
  }

 private:
  int64_t item_;
  CrossEntropyKernels kernels_;
};

}  // namespace oneflow_lite
