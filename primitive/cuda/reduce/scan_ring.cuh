// SPDX-License-Identifier: Apache-2.0
//
// Scans along columns in one launch whose blocks do not wait for each other: a block has 128 bytes
// of columns, from the first row to the last. Rows come through a ring of stages in shared memory,
// of which the next ones are under way while one is scanned. Its warps take kLines rows of a
// stage each, and a lane 4 bytes of columns; the warps leave their totals for those behind them.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/device_limits.h"
#include "primitive/cuda/reduce/problem.h"
#include "primitive/cuda/reduce/scan_states.cuh"

namespace oneflow_lite {
namespace cuda {

struct ScanRing {
  static constexpr int kLines = 16, kBytes = 128;  // of a warp in a stage; of a row
  static constexpr int kStages = 5;
  static constexpr int kLeastPercent = 70;  // of the blocks that whole waves would have
};

template <class F>
inline constexpr int kRingThreads = F::kRingWarps* kWarp;
// Columns of a lane.
template <class F>
inline constexpr int kRingColumns = 4 / static_cast<int>(sizeof(typename F::Element));
template <class F>
inline constexpr int kRingStages =
    ScanRing::kStages* F::kRingWarps* ScanRing::kLines* ScanRing::kBytes;
// With what the warps leave for each other.
template <class F>
inline constexpr int kRingShared =
    kRingStages<F> +
    2 * (F::kRingWarps + 1) * kRingColumns<F>* kWarp* static_cast<int>(sizeof(typename F::State));

inline int64_t RingSegments(const ReduceProblem& p, int bytes) {
  return CeilDiv(p.inner * bytes, ScanRing::kBytes);
}

// Whether so many columns keep the device busy, and x and y lie so that rows can be copied.
template <class F>
bool RingsScan(const ReduceProblem& p, const DeviceLimits& limits, const void* x, const void* y) {
  constexpr int kSize = sizeof(typename F::Element);
  if (p.inner * kSize % 16 != 0 || reinterpret_cast<uintptr_t>(x) % 16 != 0 ||
      reinterpret_cast<uintptr_t>(y) % 4 != 0) {
    return false;
  }
  const int shared = kRingShared<F>;
  if (shared > limits.shared_per_block) return false;
  const int64_t blocks = p.outer * RingSegments(p, kSize), each = limits.multiprocessors;
  return blocks * 100 >= CeilDiv(blocks, each) * each * ScanRing::kLeastPercent;
}

// Merges get(0) ... get(n - 1), n > 0.
template <class F, class Get>
__device__ __forceinline__ typename F::State MergeRun(const F& f, int n, const Get& get) {
  if constexpr (F::kScansRuns) {
    return f.MergeAll(n, get);
  } else {
    typename F::State state = get(0);
#pragma unroll 4
    for (int i = 1; i < n; ++i) state = f.Merge(state, get(i));
    return state;
  }
}

// The rows of one block's columns, which a thread asks for 16 bytes at a time.
template <class F>
class RingRows {
 public:
  using T = typename F::Element;
  static constexpr int kRows = F::kRingWarps * ScanRing::kLines;
  static constexpr int kPieces = ScanRing::kBytes / 16, kEach = kRingThreads<F> / kPieces;

  __device__ __forceinline__ RingRows(const ScanArguments& a, const T* first, int bytes, char* ring)
      : axis_(a.axis), pitch_((a.reverse ? -a.inner : a.inner) * int64_t{sizeof(T)}) {
    const int piece = threadIdx.x % kPieces * 16;
    const int line = threadIdx.x / kPieces;
    row_ = line;
    from_ = reinterpret_cast<const char*>(first) + line * pitch_ + piece;
    to_ = ring + line * ScanRing::kBytes + piece;
    if (piece >= bytes) axis_ = 0;
  }
  // Asks for the next stage.
  __device__ __forceinline__ void Load() {
    const int64_t left = axis_ - row_;
    char* to = to_ + slot_ * (kRows * ScanRing::kBytes);
#pragma unroll
    for (int i = 0; i < kRows; i += kEach) {
      if (i < left) CopyAsync(to + i * ScanRing::kBytes, from_ + i * pitch_, 16);
    }
    CommitCopies();
    row_ += kRows;
    from_ += kRows * pitch_;
    slot_ = slot_ + 1 < ScanRing::kStages ? slot_ + 1 : 0;
  }

 private:
  int64_t axis_, pitch_, row_;
  int slot_ = 0;
  const char* from_;
  char* to_;
};

// A block's columns: where they begin in x and y, and their bytes in a row.
template <class F>
struct RingBlock {
  int64_t base;
  int bytes;
  __device__ __forceinline__ RingBlock(const ScanArguments& a, int64_t segments) {
    constexpr int64_t kSize = sizeof(typename F::Element);
    const int64_t outer = blockIdx.x / segments, segment = blockIdx.x % segments;
    const int64_t column = segment * (ScanRing::kBytes / kSize);
    const int64_t behind = (a.inner - column) * kSize;
    base = outer * a.axis * a.inner + column;
    bytes = behind < ScanRing::kBytes ? static_cast<int>(behind) : ScanRing::kBytes;
  }
};
// How many rows there are of a warp's part of a stage that begins at `first`.
__device__ __forceinline__ int RingLines(const ScanArguments& a, int64_t first) {
  const int64_t left = a.axis - first;
  return left <= 0 ? 0 : left < ScanRing::kLines ? static_cast<int>(left) : ScanRing::kLines;
}

// A lane's columns in the rows that its warp has of a stage: states, scanned by column.
template <class F>
struct RingRun {
  using S = typename F::State;
  using T = typename F::Element;
  static constexpr int kLines = ScanRing::kLines, kColumns = kRingColumns<F>;
  S of[kColumns][kLines];

  // From shared memory, the rows from `first` on of which there are `count`.
  __device__ __forceinline__ RingRun(const ScanArguments& a, const F& f, const char* from,
                                     int64_t first, int count) {
    uint32_t words[kLines];
#pragma unroll
    for (int r = 0; r < kLines; ++r) {
      words[r] = *reinterpret_cast<const uint32_t*>(from + r * ScanRing::kBytes);
    }
    if (count < kLines) {  // the rows behind the last one reach nothing
#pragma unroll
      for (int r = 1; r < kLines; ++r) words[r] = r < count ? words[r] : words[0];
    }
#pragma unroll
    for (int r = 0; r < kLines; ++r) {
      Pack<T, kColumns> row;
      memcpy(&row, &words[r], sizeof(row));
#pragma unroll
      for (int j = 0; j < kColumns; ++j) of[j][r] = f.Of(row.v[j], a.PlaceOf(first + r));
    }
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      Maybe<S> nothing{S{}, false};
      ScanStates(f, nothing, kLines, of[j]);
    }
  }
  __device__ __forceinline__ void Write(const ScanArguments& a, const F& f, T* to, int64_t first,
                                        int count) const {
    to += a.PlaceOf(first) * a.inner;
    const int64_t further = a.reverse ? -a.inner : a.inner;
#pragma unroll
    for (int r = 0; r < kLines; ++r) {
      Pack<decltype(f.Value(of[0][0])), kColumns> row;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) row.v[j] = f.Value(of[j][r]);
      if (r < count) StoreAlignedPack(to + r * further, ConvertPack<T>(row));
    }
  }
};

// inner > 1, and what RingsScan says.
template <class F>
__global__ void __launch_bounds__(kRingThreads<F>)
    ScanRingKernel(ScanArguments a, F f, int64_t segments) {
  using S = typename F::State;
  constexpr int kLines = ScanRing::kLines, kWarps = F::kRingWarps, kColumns = kRingColumns<F>;
  constexpr int kRows = RingRows<F>::kRows, kStages = ScanRing::kStages;
  extern __shared__ __align__(16) char ring[];
  // Of a stage and the next one, by turns: what the stages before it come to, and its warps'
  // totals.
  S* left = reinterpret_cast<S*>(ring + kRingStages<F>);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const auto left_at = [&](int stage, int i, int j) -> S& {
    return left[(((stage & 1) * (kWarps + 1) + i) * kColumns + j) * kWarp + lane];
  };
  const RingBlock<F> block(a, segments);
  RingRows<F> rows(a, f.x + block.base + a.PlaceOf(0) * a.inner, block.bytes, ring);
  const int stages = static_cast<int>((a.axis + kRows - 1) / kRows);
#pragma unroll 1
  for (int s = 0; s < kStages - 1; ++s) rows.Load();
#pragma unroll 1
  for (int s = 0; s < stages; ++s) {
    WaitForCopiesOf<kStages - 2>();
    __syncthreads();
    rows.Load();
    const int64_t first = int64_t{s} * kRows + warp * kLines;
    const int count = RingLines(a, first);
    const char* mine = ring + (s % kStages * kRows + warp * kLines) * ScanRing::kBytes + lane * 4;
    RingRun<F> run(a, f, mine, first, count);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) left_at(s, 1 + warp, j) = run.of[j][kLines - 1];
    __syncthreads();
    const int begin = s > 0 ? 0 : 1;  // nothing comes before the first stage
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      S before = run.of[j][kLines - 1];
      if (warp + 1 > begin) {
        before = MergeRun(f, warp + 1 - begin, [&](int i) { return left_at(s, begin + i, j); });
        if (warp == kWarps - 1) left_at(s + 1, 0, j) = f.Merge(before, run.of[j][kLines - 1]);
        MergeBefore(f, before, run.of[j]);
      }
    }
    if (lane * 4 < block.bytes) run.Write(a, f, f.y + block.base + lane * kColumns, first, count);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
