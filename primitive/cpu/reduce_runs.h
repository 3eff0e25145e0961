// SPDX-License-Identifier: Apache-2.0
//
// Reductions of runs that lie apart, where they lie: the innermost dim in memory is reduced, and
// those around it may be of either kind and in any order, as in x[:, 1:-1].sum() and
// x.permute(0, 2, 1, 3).sum(-1). Reducers are those of reduce_machine.h.
#pragma once

#include "primitive/cpu/reduce_machine.h"

namespace oneflow_lite {

// For each of `results`, in the order of the dims that stay, `count` runs of `length` elements,
// which lie `stride` apart.
struct ReduceRuns {
  struct Dims {
    int64_t sizes[kMaxReduceDims], strides[kMaxReduceDims];
    int ndim = 0;

    void Add(int64_t size, int64_t stride) {
      sizes[ndim] = size, strides[ndim] = stride;
      ++ndim;
    }
    // Elements from the i-th on that lie step() apart.
    int64_t left(int64_t i) const { return ndim == 0 ? 1 : sizes[ndim - 1] - i % sizes[ndim - 1]; }
    int64_t step() const { return ndim == 0 ? 0 : strides[ndim - 1]; }
    // Of the i-th of their elements.
    int64_t Offset(int64_t i) const {
      int64_t offset = 0;
      for (int d = ndim - 1; d >= 0; i /= sizes[d--]) offset += i % sizes[d] * strides[d];
      return offset;
    }
  };
  int64_t length = 1, stride = 1, count = 1, results = 1;
  Dims kept, reduced;
};

// None where a copy is quicker: columns, and runs of a few elements, or of some if they lie apart
// or go to the reducer one by one.
inline std::optional<ReduceRuns> FindRuns(const ReduceShape& shape, bool takes_rows) {
  constexpr int64_t kLeast = 16, kLeastAlone = 256;
  int order[kMaxReduceDims];
  const int n = OrderInMemory(shape, order);
  if (n < 1 || !shape.reduced[order[n - 1]]) return std::nullopt;
  ReduceRuns runs;
  runs.stride = shape.strides[order[n - 1]];
  int inner = n;  // dims from here on are in a run
  while (inner > 0 && shape.reduced[order[inner - 1]] &&
         shape.strides[order[inner - 1]] == runs.stride * runs.length) {
    runs.length *= shape.sizes[order[--inner]];
  }
  for (int i = 0; i < inner; ++i) {
    if (!shape.reduced[order[i]]) continue;
    runs.reduced.Add(shape.sizes[order[i]], shape.strides[order[i]]);
    runs.count *= shape.sizes[order[i]];
  }
  for (int d = 0; d < shape.ndim; ++d) {
    if (shape.reduced[d]) continue;
    runs.kept.Add(shape.sizes[d], shape.strides[d]);
    runs.results *= shape.sizes[d];
  }
  const bool together = takes_rows && runs.stride == 1;
  if (runs.stride == 0 || runs.length < (together ? kLeast : kLeastAlone)) return std::nullopt;
  return runs;
}

template <class R>
class ReduceRunsMachine {
 public:
  ReduceRunsMachine(const R& reducer, DType in, const ReduceRuns& runs, const void* x)
      : r_(reducer), source_(in, reducer.Takes(), runs.stride), runs_(runs), x_(x) {}

  void Run() const {
    const AxisParts parts(runs_.count, std::max<int64_t>(1, kPartElements / runs_.length),
                          kMaxRowParts);
    const int64_t all = runs_.count * runs_.length;
    if (runs_.results < NumThreads() && parts.count > 1 && !InSerialRegion()) {
      for (int64_t i = 0; i < runs_.results; ++i) Split(parts, i);
      return;
    }
    ParallelFor(runs_.results, std::max<int64_t>(1, kElementwiseGrain / all),
                [&](int64_t begin, int64_t end) {
                  Total totals[kChunk];
                  for (int64_t first = begin; first < end; first += kChunk) {
                    const int64_t n = std::min(kChunk, end - first);
                    if (runs_.count == 1) {
                      ForRuns(runs_.kept, first, first + n, 0, totals);
                    } else {
                      for (int64_t i = 0; i < n; ++i) totals[i] = Whole(parts, first + i);
                    }
                    r_.Finish(totals, n, all, first);
                  }
                });
  }

 private:
  using C = typename R::Element;
  using Total = typename R::Total;
  using Chunk = typename R::Chunk;

  // One result on all threads.
  void Split(const AxisParts& parts, int64_t i) const {
    Total partial[kMaxRowParts];
    ParallelFor(parts.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) partial[p] = Part(parts, p, i);
    });
    Total total = r_.Start();
    for (int64_t p = 0; p < parts.count; ++p) total = r_.Merge(total, partial[p]);
    r_.Finish(&total, 1, runs_.count * runs_.length, i);
  }

  Total Whole(const AxisParts& parts, int64_t i) const {
    Total total = r_.Start();
    for (int64_t p = 0; p < parts.count; ++p) total = r_.Merge(total, Part(parts, p, i));
    return total;
  }
  // Part p of the runs of the i-th result.
  Total Part(const AxisParts& parts, int64_t p, int64_t i) const {
    constexpr int64_t kAtOnce = 64;
    Total totals[kAtOnce], total = r_.Start();
    const int64_t offset = runs_.kept.Offset(i), end = parts.End(p);
    for (int64_t k = parts.Begin(p), n; k < end; k += n) {
      n = std::min(kAtOnce, end - k);
      ForRuns(runs_.reduced, k, k + n, offset, totals);
      for (int64_t j = 0; j < n; ++j) total = r_.Merge(total, totals[j]);
    }
    return total;
  }

  // Of each of the runs [begin, end) of `dims`, from `offset` on.
  void ForRuns(const ReduceRuns::Dims& dims, int64_t begin, int64_t end, int64_t offset,
               Total* totals) const {
    for (int64_t i = begin, n; i < end; i += n, totals += n) {
      n = std::min(dims.left(i), end - i);
      const char* run = static_cast<const char*>(x_) + (offset + dims.Offset(i)) * source_.item();
      if constexpr (R::kTakesRows) {
        if (!source_.copies() && runs_.length <= std::min(kChunk, R::kRowElements)) {
          r_.Rows(n, runs_.length, run, dims.step(), totals);
          continue;
        }
      }
      for (int64_t k = 0; k < n; ++k, run += dims.step() * source_.item()) totals[k] = OfRun(run);
    }
  }
  Total OfRun(const char* run) const {
    alignas(64) C buffer[kChunk];
    const int64_t most = source_.copies() ? kChunk : R::kRowElements;
    Total total = r_.Start();
    for (int64_t a = 0, n; a < runs_.length; a += n) {
      n = std::min(most, runs_.length - a);
      const auto chunk = static_cast<Chunk>(source_.Load(run, a, n, buffer));
      total = r_.Merge(total, r_.Row(n, chunk));
    }
    return total;
  }

  const R& r_;
  ChunkSource source_;
  const ReduceRuns& runs_;
  const void* x_;
};

}  // namespace oneflow_lite
