// SPDX-License-Identifier: Apache-2.0
//
// Reductions run on chunks of the accumulate type (float32, float64 or int64), which are converted
// on the way where the input has another dtype. Floating sums: at most 32 terms in float32, then
// double. How a reduction is cut depends on its shape alone, never on the number of threads.
#include "primitive/reduce.h"

#include <algorithm>
#include <limits>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/reduce_loops.h"
#include "primitive/cpu/strided.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kPartElements = 65536;  // a part of a long axis is worth a thread
constexpr int64_t kMaxRowParts = 256;
constexpr int64_t kMaxColumnParts = 16;
constexpr int64_t kTermsPerLane = 32;  // in float32 before they go into a double

template <class C>
constexpr C kLowest = std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                                           : std::numeric_limits<C>::min();

// An axis as parts of equal size.
struct AxisParts {
  AxisParts(int64_t axis, int64_t smallest, int64_t most)
      : axis(axis),
        size(std::max({int64_t{1}, smallest, (axis + most - 1) / most})),
        count(std::max<int64_t>(1, (axis + size - 1) / size)) {}
  int64_t Begin(int64_t i) const { return i * size; }
  int64_t End(int64_t i) const { return std::min(axis, (i + 1) * size); }

  int64_t axis, size, count;
};

// Reads elements of any dtype as contiguous C.
template <class C>
class ChunkSource {
 public:
  explicit ChunkSource(DType dtype)
      : item_(static_cast<int64_t>(SizeOf(dtype))),
        convert_(dtype == DTypeOf<C>() ? nullptr : FindConvert(dtype, DTypeOf<C>())) {}

  // n <= kChunk elements from element `offset` on.
  const C* Load(const void* x, int64_t offset, int64_t n, C* buffer) const {
    const char* p = static_cast<const char*>(x) + offset * item_;
    if (!convert_) return reinterpret_cast<const C*>(p);
    convert_(n, p, buffer);
    return buffer;
  }

 private:
  int64_t item_;
  ConvertFunction convert_;
};

// Columns are reduced in blocks of `width`. Where rows are short, a block is `group` whole rows
// that lie in a row in memory, added as one long vector and folded at the end.
struct ColumnBlocks {
  explicit ColumnBlocks(int64_t inner)
      : width(std::min(inner, kChunk)),
        group(inner <= kChunk / 2 ? kChunk / inner : 1),
        count((inner + width - 1) / width) {}
  int64_t width, group, count;
};

template <class C>
class CpuReduce final : public Reduce {
 public:
  explicit CpuReduce(const Spec& spec)
      : op_(spec.op),
        source_(spec.in),
        finish_(FindConvert(DTypeOf<C>(), spec.out)),
        out_item_(static_cast<int64_t>(SizeOf(spec.out))),
        loops_(FindReduceLoops<C>()) {}

  Status Launch(Stream&, const AxisSplit& shape, const void* x, void* y, void*) const override {
    if (shape.inner == 1) {
      LaunchRows(shape, x, y);
    } else if (shape.inner > 1) {
      LaunchColumns(shape, x, y);
    }
    return OkStatus();
  }

 private:
  using Total = SumOf<C>;

  Total Start() const { return op_ == ReduceOp::kMax ? static_cast<Total>(kLowest<C>) : 0; }

  Total Merge(Total a, Total b) const {
    if (op_ == ReduceOp::kMax) return b > a || b != b ? b : a;
    if constexpr (std::is_integral_v<Total>) {
      return static_cast<Total>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }

  // Rounds n totals to the output's dtype, at element `index` of y.
  void Finish(const Total* totals, int64_t n, int64_t axis, void* y, int64_t index) const {
    C results[kChunk];
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_floating_point_v<C>) {
        const double mean_of = op_ == ReduceOp::kMean ? static_cast<double>(axis) : 1.0;
        results[i] = static_cast<C>(totals[i] / mean_of);
      } else {
        results[i] = totals[i];
      }
    }
    finish_(n, results, static_cast<char*>(y) + index * out_item_);
  }

  // ---- inner = 1 ----

  Total RowPart(const void* x, int64_t begin, int64_t end) const {
    C buffer[kChunk];
    Total total = Start();
    for (int64_t a = begin; a < end; a += kChunk) {
      const int64_t n = std::min(kChunk, end - a);
      const C* chunk = source_.Load(x, a, n, buffer);
      total = Merge(total, op_ == ReduceOp::kMax ? static_cast<Total>(loops_.max(n, chunk))
                                                 : loops_.sum(n, chunk));
    }
    return total;
  }

  void LaunchRows(const AxisSplit& shape, const void* x, void* y) const {
    const AxisParts parts(shape.axis, kPartElements, kMaxRowParts);
    if (shape.outer < std::min<int64_t>(parts.count, NumThreads()) && !InSerialRegion()) {
      for (int64_t row = 0; row < shape.outer; ++row) SplitRow(parts, row, x, y);
      return;
    }
    const int64_t grain =
        std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(1, shape.axis));
    ParallelFor(shape.outer, grain, [&](int64_t begin, int64_t end) {
      Total totals[kChunk];
      for (int64_t first = begin; first < end; first += kChunk) {
        const int64_t n = std::min(kChunk, end - first);
        for (int64_t i = 0; i < n; ++i) {
          const int64_t offset = (first + i) * shape.axis;
          totals[i] = Start();
          for (int64_t p = 0; p < parts.count; ++p) {
            totals[i] =
                Merge(totals[i], RowPart(x, offset + parts.Begin(p), offset + parts.End(p)));
          }
        }
        Finish(totals, n, shape.axis, y, first);
      }
    });
  }

  // One long row on all threads.
  void SplitRow(const AxisParts& parts, int64_t row, const void* x, void* y) const {
    Total partial[kMaxRowParts];
    ParallelFor(parts.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        partial[p] = RowPart(x, row * parts.axis + parts.Begin(p), row * parts.axis + parts.End(p));
      }
    });
    Total total = Start();
    for (int64_t p = 0; p < parts.count; ++p) total = Merge(total, partial[p]);
    Finish(&total, 1, parts.axis, y, row);
  }

  // ---- inner > 1 ----

  // Rows [begin, end) of `width` columns; x points at the first column of the first row.
  void ColumnPart(const ColumnBlocks& blocks, int64_t inner, int64_t width, int64_t offset,
                  int64_t begin, int64_t end, const void* x, Total* totals) const {
    C buffer[kChunk], sums[kChunk];
    const bool is_max = op_ == ReduceOp::kMax;
    const int64_t length = blocks.group * width;
    const C neutral = is_max ? kLowest<C> : C(0);
    std::fill_n(totals, width, Start());
    for (int64_t a = begin; a < end;) {
      std::fill_n(sums, length, neutral);
      for (int64_t term = 0; term < kTermsPerLane && a < end; ++term) {
        const int64_t rows = std::min(blocks.group, end - a);
        const C* chunk = source_.Load(x, offset + a * inner, rows * width, buffer);
        (is_max ? loops_.max_to : loops_.add_to)(rows * width, chunk, sums);
        a += rows;
      }
      for (int64_t i = 0; i < length; i += width) {
        for (int64_t j = 0; j < width; ++j) {
          totals[j] = Merge(totals[j], static_cast<Total>(sums[i + j]));
        }
      }
    }
  }

  void LaunchColumns(const AxisSplit& shape, const void* x, void* y) const {
    const ColumnBlocks blocks(shape.inner);
    const AxisParts parts(shape.axis, kPartElements / blocks.width, kMaxColumnParts);
    const int64_t tasks = shape.outer * blocks.count;
    const bool split = tasks < std::min<int64_t>(parts.count, NumThreads()) && !InSerialRegion();
    const auto run = [&](int64_t task) {
      const int64_t column = task % blocks.count * blocks.width;
      const int64_t width = std::min(blocks.width, shape.inner - column);
      const int64_t outer = task / blocks.count;
      const int64_t offset = outer * shape.axis * shape.inner + column;
      Total partial[kMaxColumnParts][kChunk];
      const auto part = [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          ColumnPart(blocks, shape.inner, width, offset, parts.Begin(p), parts.End(p), x,
                     partial[p]);
        }
      };
      if (split) {
        ParallelFor(parts.count, 1, part);
      } else {
        part(0, parts.count);
      }
      for (int64_t p = 1; p < parts.count; ++p) {
        for (int64_t j = 0; j < width; ++j) partial[0][j] = Merge(partial[0][j], partial[p][j]);
      }
      Finish(partial[0], width, shape.axis, y, outer * shape.inner + column);
    };
    if (split) {
      for (int64_t task = 0; task < tasks; ++task) run(task);
      return;
    }
    const int64_t work = std::max<int64_t>(1, shape.axis * blocks.width);
    ParallelFor(tasks, std::max<int64_t>(1, kElementwiseGrain / work),
                [&](int64_t begin, int64_t end) {
                  for (int64_t task = begin; task < end; ++task) run(task);
                });
  }

  ReduceOp op_;
  ChunkSource<C> source_;
  ConvertFunction finish_;
  int64_t out_item_;
  ReduceLoops<C> loops_;
};

// Whether x comes before `best` in the order of argmax: larger, or the first NaN.
template <class C>
bool Beats(C x, C best) {
  return x > best || (x != x && best == best);
}

template <class C>
class CpuArgMax final : public ArgMax {
 public:
  explicit CpuArgMax(const Spec& spec) : source_(spec.dtype), loops_(FindReduceLoops<C>()) {}

  Status Launch(Stream&, const AxisSplit& shape, const void* x, int64_t* index) const override {
    if (shape.axis <= 0 || shape.inner <= 0) return OkStatus();
    const ColumnBlocks blocks(shape.inner);
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / (shape.axis * blocks.width));
    ParallelFor(shape.outer * blocks.count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        if (shape.inner == 1) {
          index[task] = Row(x, task * shape.axis, shape.axis);
          continue;
        }
        const int64_t outer = task / blocks.count, column = task % blocks.count * blocks.width;
        Columns(x, outer * shape.axis * shape.inner + column, shape,
                std::min(blocks.width, shape.inner - column), index + outer * shape.inner + column);
      }
    });
    return OkStatus();
  }

 private:
  // Finds the first chunk that holds the maximum, then the element in it.
  int64_t Row(const void* x, int64_t offset, int64_t axis) const {
    C buffer[kChunk];
    C best{};
    int64_t first = -1;
    for (int64_t a = 0; a < axis; a += kChunk) {
      const int64_t n = std::min(kChunk, axis - a);
      const C max = loops_.max(n, source_.Load(x, offset + a, n, buffer));
      if (first < 0 || Beats(max, best)) {
        best = max;
        first = a;
      }
    }
    const int64_t n = std::min(kChunk, axis - first);
    const C* chunk = source_.Load(x, offset + first, n, buffer);
    int64_t i = 0;
    while (i + 1 < n && chunk[i] != best && !(chunk[i] != chunk[i])) ++i;
    return first + i;
  }

  void Columns(const void* x, int64_t offset, const AxisSplit& shape, int64_t width,
               int64_t* index) const {
    C buffer[kChunk], best[kChunk];
    std::copy_n(source_.Load(x, offset, width, buffer), width, best);
    std::fill_n(index, width, 0);
    for (int64_t a = 1; a < shape.axis; ++a) {
      const C* row = source_.Load(x, offset + a * shape.inner, width, buffer);
      for (int64_t j = 0; j < width; ++j) {
        if (!Beats(row[j], best[j])) continue;
        best[j] = row[j];
        index[j] = a;
      }
    }
  }

  ChunkSource<C> source_;
  ReduceLoops<C> loops_;
};

// The implementation for the accumulate type of `dtype`.
template <class P, template <class> class Implementation>
std::unique_ptr<P> Make(DType dtype, const typename P::Spec& spec) {
  switch (AccumulateType(dtype)) {
    case DType::kFloat32:
      return std::make_unique<Implementation<float>>(spec);
    case DType::kFloat64:
      return std::make_unique<Implementation<double>>(spec);
    default:
      return std::make_unique<Implementation<int64_t>>(spec);
  }
}

StatusOr<std::unique_ptr<Reduce>> NewReduce(const Reduce::Spec& spec) {
  const bool supported = spec.op == ReduceOp::kMax ? spec.in == spec.out
                         : IsFloating(spec.in)     ? IsFloating(spec.out)
                                               : spec.op == ReduceOp::kSum && !IsFloating(spec.out);
  if (!supported) return NoPrimitiveFor(Reduce::kName, DeviceType::kCPU, spec.in);
  return Make<Reduce, CpuReduce>(spec.in, spec);
}

StatusOr<std::unique_ptr<ArgMax>> NewArgMax(const ArgMax::Spec& spec) {
  return Make<ArgMax, CpuArgMax>(spec.dtype, spec);
}

const bool registered = RegisterPrimitive<Reduce>(DeviceType::kCPU, &NewReduce) &&
                        RegisterPrimitive<ArgMax>(DeviceType::kCPU, &NewArgMax);

}  // namespace
}  // namespace oneflow_lite
