// SPDX-License-Identifier: Apache-2.0
//
// Rows that are read in runs. A block puts a span of the result together in shared memory: the runs
// in aligned packs of what is read, at whatever places they come to, and the columns beside them
// one by one. Then it writes the span in packs.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/moves/remap_rows.cuh"

namespace oneflow_lite {
namespace cuda {

// docs/lab/55-rearrangements-in-packs.md has the figures.
inline constexpr int kSpanThreads = 128;
inline constexpr int kSpanBlocks = 16;   // of a multiprocessor
inline constexpr int kSpanBytes = 4096;  // of a block
inline constexpr int kSpanPacks = 2;     // of a thread, all read before one is waited for
inline constexpr int kLeastPacks = 2;    // of a row

struct RemapSpans {
  RemapRows rows;
  Divisor packs[RemapRows::kMostRuns];  // the most that the run lies in
  Divisor beside;                       // columns in no run, or 1

  // Elements of `item` bytes.
  RemapSpans(const RemapShape& s, const RemapRows& r, int item, const void* x)
      : rows(r), beside(r.beside() > 0 ? r.beside() : 1) {
    const int64_t pack = kPackBytes / item;
    for (int k = 0; k < r.count; ++k) {
      const ColumnRun& run = r.runs[k];
      const bool flip = r.last.mode == RemapMode::kFlip;
      auto all = reinterpret_cast<uintptr_t>(x);
      all |= static_cast<uintptr_t>((flip ? 0 : run.from + run.by) * item);
      for (int d = 0; d + 1 < s.ndim; ++d) all |= static_cast<uintptr_t>(s.dims[d].stride * item);
      const bool aligned = all % kPackBytes == 0;  // where the run of every row begins
      packs[k] = Divisor((run.length() + (aligned ? pack - 1 : 2 * pack - 2)) / pack);
    }
  }
  // Rows of `pack` and more, most of whose columns are in runs or show nothing.
  static bool Serve(const RemapRows& r, int pack) {
    const bool most = 2 * r.beside() <= r.width || r.last.mode == RemapMode::kShift;
    return r.last.stride == 1 && r.width >= kLeastPacks * pack && most;
  }
};

// Puts 16 bytes at `to` in shared memory, which is `at` elements from a boundary of 16 bytes.
template <class Word>
__device__ __forceinline__ void PutPack(Word* to, int at, const uint4& raw) {
  constexpr int N = kPackSize<Word>;
  const uint32_t w[4] = {raw.x, raw.y, raw.z, raw.w};
  if ((at & (N - 1)) == 0) {
    *reinterpret_cast<uint4*>(to) = raw;
  } else if constexpr (sizeof(Word) >= 4) {
    Word v[N];
    memcpy(v, w, sizeof(v));
#pragma unroll
    for (int k = 0; k < N; ++k) to[k] = v[k];
  } else {
    constexpr int kBits = 8 * static_cast<int>(sizeof(Word)), kIn4 = 32 / kBits;  // elements
    const int past = at & (kIn4 - 1);
    if (past == 0) {
#pragma unroll
      for (int k = 0; k < 4; ++k) reinterpret_cast<uint32_t*>(to)[k] = w[k];
      return;
    }
    auto* words = reinterpret_cast<uint32_t*>(to + (kIn4 - past));
#pragma unroll
    for (int k = 0; k < 3; ++k) words[k] = __funnelshift_r(w[k], w[k + 1], kBits * (kIn4 - past));
#pragma unroll
    for (int k = 0; k < kIn4 - 1; ++k) {
      if (k < kIn4 - past) to[k] = static_cast<Word>(w[0] >> kBits * k);
      if (k < past) to[N - 1 - k] = static_cast<Word>(w[3] >> kBits * (kIn4 - 1 - k));
    }
  }
}
// The elements of 16 bytes in the opposite order.
template <class Word>
__device__ __forceinline__ uint4 Turned(const uint4& raw) {
  if constexpr (sizeof(Word) == 8) return {raw.z, raw.w, raw.x, raw.y};
  const auto turn = [](uint32_t w) {
    if constexpr (sizeof(Word) == 1) return __byte_perm(w, 0, 0x0123);
    if constexpr (sizeof(Word) == 2) return __byte_perm(w, 0, 0x1032);
    return w;
  };
  return {turn(raw.w), turn(raw.z), turn(raw.y), turn(raw.x)};
}

// A block's span, and the rows that it has elements of.
template <class Word>
struct SpanOfRows {
  static constexpr int N = kPackSize<Word>, kSpan = kSpanBytes / static_cast<int>(sizeof(Word));
  static constexpr int kMostRows = kSpan / (kLeastPacks * N) + 2;
  Word* elements;         // packs reach beyond both ends by less than a pack
  const int32_t* begins;  // of the rows, in what is read
  int32_t start;          // of the first row, at most 0
  int count;              // elements
  uint32_t rows;

  __device__ __forceinline__ int32_t StartOf(uint32_t row, int32_t width) const {
    return start + static_cast<int32_t>(row) * width;
  }
};

// Packs are numbered row by row. Where rows are longer than a span, those of the first row that end
// before it are left out, and those of the last one that begin behind it.
template <bool kFlip, class Word>
__device__ __forceinline__ void PutRun(const RemapRows& r, const ColumnRun& run, const Divisor& by,
                                       const SpanOfRows<Word>& span, const uint4& filled,
                                       const Word* x) {
  constexpr int N = kPackSize<Word>;
  const auto of_row = static_cast<int32_t>(by.value), length = run.length();
  const int32_t origin = kFlip ? r.width - of_row * N : run.from;  // column of the first pack
  uint32_t base = threadIdx.x, until = span.rows * static_cast<uint32_t>(of_row);
  if (r.width > span.kSpan) {
    const int32_t last = span.count - span.StartOf(span.rows - 1, r.width) - origin;
    base += min(max(-(span.start + origin) / N - 1, 0), of_row);
    until -= of_row - min(max((last + 2 * N - 1) / N, 0), of_row);
  }
#pragma unroll 1
  for (; base < until; base += kSpanPacks * kSpanThreads) {
    uint4 packs[kSpanPacks];
    int at[kSpanPacks];
    uint32_t there[kSpanPacks];  // the elements [low byte, next byte) are the run's; 0: none
#pragma unroll
    for (int p = 0; p < kSpanPacks; ++p) {
      const uint32_t item = base + p * kSpanThreads, row = by.Quotient(item);
      there[p] = 0;
      if (item >= until) continue;
      const auto k = static_cast<int32_t>(item - row * static_cast<uint32_t>(of_row));
      const int32_t begin = span.begins[row];
      const Word* from = x + (begin + (kFlip ? 0 : run.from + run.by));
      const int past = begin < 0 ? 0 : static_cast<int>(BytesPastBoundary(from) / sizeof(Word));
      const int first = (kFlip ? of_row - 1 - k : k) * N - past;  // element of the run
      at[p] = span.StartOf(row, r.width) + origin + k * N + (kFlip ? past : -past);
      const int lo = max(-first, 0), hi = min(length - first, N);
      if (lo >= hi || at[p] <= -N || at[p] >= span.count) continue;
      there[p] = kFlip ? (N - hi) | (N - lo) << 8 : lo | hi << 8;
      packs[p] = filled;
      if (begin >= 0) packs[p] = *reinterpret_cast<const uint4*>(from + first);
    }
#pragma unroll
    for (int p = 0; p < kSpanPacks; ++p) {
      if (there[p] == 0) continue;
      if constexpr (kFlip) packs[p] = Turned<Word>(packs[p]);
      if (there[p] == N << 8) {
        PutPack(span.elements + at[p], at[p], packs[p]);
        continue;
      }
      Word v[N];
      memcpy(v, &packs[p], sizeof(v));
      const int lo = there[p] & 255, hi = there[p] >> 8;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if (k >= lo && k < hi) span.elements[at[p] + k] = v[k];
      }
    }
  }
}

// The columns beside the runs, numbered and left out in the same way. They are read behind the
// runs, whose neighbours in memory most of them are (docs/lab/55-rearrangements-in-packs.md).
template <class Word>
__device__ __forceinline__ void PutBeside(const RemapRows& r, const Divisor& by,
                                          const SpanOfRows<Word>& span, const uint4& filled,
                                          const Word* x) {
  const auto before = [&](int32_t column) {
    return static_cast<uint32_t>(min(column, r.from) + max(column - r.to, 0));
  };
  const uint32_t of_row = before(r.width);
  uint32_t item = threadIdx.x, until = span.rows * of_row;
  if (r.width > span.kSpan) {
    const int32_t last = span.count - span.StartOf(span.rows - 1, r.width);
    item += before(-span.start);
    until -= of_row - before(min(last, r.width));
  }
#pragma unroll 1
  for (; item < until; item += kSpanThreads) {
    const uint32_t row = by.Quotient(item);
    const auto k = static_cast<int32_t>(item - row * of_row);
    const int32_t column = k < r.from ? k : k - r.from + r.to;
    const int32_t at = span.StartOf(row, r.width) + column;
    if (at < 0 || at >= span.count) continue;
    const int32_t place = r.last.PlaceAs(column), begin = span.begins[row];
    Word value;
    memcpy(&value, &filled, sizeof(value));
    if ((place | begin) >= 0) value = x[begin + place];
    span.elements[at] = value;
  }
}

template <bool kFlip, class Word>
__global__ void __launch_bounds__(kSpanThreads, kSpanBlocks)
    RunSpansKernel(const __grid_constant__ RemapSpans s, uint4 filled, const Word* x, Word* y) {
  using Span = SpanOfRows<Word>;
  constexpr int N = Span::N, kSpan = Span::kSpan;
  __shared__ alignas(kPackBytes) Word memory[kSpan + 2 * N];
  __shared__ int32_t begins[Span::kMostRows];
  const RemapRows& r = s.rows;
  const uint32_t first = blockIdx.x * kSpan;
  int32_t column;
  const uint32_t row = r.RowOf(first, &column);
  Span span{memory + N, begins, -column, kSpan, 0};
  if (r.numel - first < kSpan) span.count = static_cast<int>(r.numel - first);
  span.rows = r.RowOf(first + span.count - 1, &column) - row + 1;
  for (uint32_t k = threadIdx.x; k < span.rows; k += kSpanThreads) begins[k] = r.OffsetOf(row + k);
  __syncthreads();
#pragma unroll 1
  for (int k = 0; k < r.count; ++k) PutRun<kFlip>(r, r.runs[k], s.packs[k], span, filled, x);
  if constexpr (!kFlip) PutBeside(r, s.beside, span, filled, x);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x) * N; i < span.count; i += kSpanThreads * N) {
    if (i + N <= span.count) {
      StorePack<N>(y + first + i, LoadAlignedPack<N>(span.elements + i));
    } else {
      for (int j = i; j < span.count; ++j) y[first + j] = span.elements[j];
    }
  }
}

template <class Word>
cudaError_t LaunchRunSpans(const RemapSpans& spans, const uint4& filled, const Word* x, Word* y,
                           cudaStream_t stream) {
  const bool flip = spans.rows.last.mode == RemapMode::kFlip;
  const auto kernel = flip ? RunSpansKernel<true, Word> : RunSpansKernel<false, Word>;
  return Launch(kernel, CeilDiv(spans.rows.numel, int64_t{SpanOfRows<Word>::kSpan}), kSpanThreads,
                0, stream, spans, filled, x, y);
}

}  // namespace cuda
}  // namespace oneflow_lite
