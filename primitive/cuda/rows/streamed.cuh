// SPDX-License-Identifier: Apache-2.0
//
// Row kernels for rows that exceed a block's registers: the row's statistics are gathered while it
// is read, then it is visited again, from shared memory in its own dtype as far as that reaches,
// else from memory.
#pragma once

#include <cooperative_groups.h>

#include "primitive/cuda/chip/cluster_exchange.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"
#include "primitive/cuda/rows/load.cuh"
#include "primitive/cuda/rows/policy.h"

namespace oneflow_lite::cuda {

// Shared memory that the kernels of this file use beside the kept packs.
inline constexpr int kRowScratchBytes = Block::kScratchBytes + ClusterExchange::kScratchBytes;

namespace internal {

// The packs [first, last) of a row, of which a block reads those before `read` and keeps those
// before `kept`, and the row's columns outside packs where with_extras.
template <class A>
struct RowRange {
  int64_t row;
  RowSpan<A::kPack> span;
  int64_t first, kept, read, last;
  int64_t seen;  // columns that are read
  bool with_extras;

  OFL_DEVICE RowRange(const A& a, int64_t row, int64_t cols, int part, int parts)
      : row(row), span(a.Head(row), cols), seen(SeenOf(a, row, cols)), with_extras(part == 0) {
    const int64_t share = parts == 1 ? span.packs : Share(span.packs, parts);
    first = Least(share * part, span.packs);
    last = Least(first + share, span.packs);
    read = Least(last, PacksSeen(span, seen));
    if (read < first) read = first;
    kept = read;
  }
  OFL_DEVICE void Keep(int64_t most) { kept = Least(first + most, kept); }
  // A division of 64 bits takes long, and the loads wait for it.
  static OFL_DEVICE int64_t Share(int64_t packs, int parts) {
    if (packs < int64_t{1} << 31) {
      return (static_cast<unsigned>(packs) + parts - 1) / static_cast<unsigned>(parts);
    }
    return (packs + parts - 1) / parts;
  }
  static OFL_DEVICE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }
};

// On-chip places of packs: input i of pack p lies at packs[i * plane + p - first].
template <class A>
struct KeptPacks {
  using Place = OnChipPack<typename A::Element, A::kPack>;
  Place* packs;
  int64_t plane;

  OFL_DEVICE KeptPacks(char* shared, const RowRange<A>& range)
      : packs(reinterpret_cast<Place*>(shared + kRowScratchBytes)),
        plane(range.kept - range.first) {}
  OFL_DEVICE typename A::template Raw<A::kPack> Get(int64_t i) const {
    typename A::template Raw<A::kPack> raw;
#pragma unroll
    for (int k = 0; k < A::kInputs; ++k) raw.input[k] = packs[k * plane + i].Get();
    return raw;
  }
};

template <bool kAligned, bool kKeep, class A>
OFL_DEVICE void AddPacks(const A& a, const RowRange<A>& r, int64_t first, int64_t last,
                         const KeptPacks<A>& kept, const typename A::Total& start,
                         typename A::Statistics& statistics) {
  constexpr int N = A::kPack, kUnroll = RowPolicy::kUnroll / A::kInputs;
  const int size = blockDim.x;
  for (int64_t p = first + threadIdx.x; p < last; p += int64_t{kUnroll} * size) {
    typename A::template Raw<N> raw[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (p + u * size < last) {
        raw[u] = LoadPackOf<kAligned>(a, r.row, r.span, p + u * size);
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t at = p + u * size;
      if (at >= last) continue;
      if constexpr (kKeep) {
#pragma unroll
        for (int i = 0; i < A::kInputs; ++i) {
          kept.packs[i * kept.plane + at - r.first].Put(raw[u].input[i]);
        }
      }
      a.Add(raw[u], r.span.PackColumn(at), start, statistics);
    }
  }
}

// This thread's share of the statistics of a range. What it keeps it alone will read again, so no
// barrier is needed.
template <bool kKeep, class A>
OFL_DEVICE typename A::Statistics Gather(const A& a, const RowRange<A>& r, const KeptPacks<A>& kept,
                                         typename A::Total& start) {
  typename A::Statistics statistics;
  const int64_t middle = kKeep ? r.kept : r.first;
  if (a.IsAligned(r.row, r.span.head)) {
    if (kKeep) AddPacks<true, kKeep>(a, r, r.first, middle, kept, start, statistics);
    AddPacks<true, false>(a, r, middle, r.read, kept, start, statistics);
  } else {
    if (kKeep) AddPacks<false, kKeep>(a, r, r.first, middle, kept, start, statistics);
    AddPacks<false, false>(a, r, middle, r.read, kept, start, statistics);
  }
  const int rank = threadIdx.x;
  const int64_t col = r.span.Column(rank);
  if (r.with_extras && rank < r.span.extras() && col < r.seen) {
    a.Add(a.template Load<Access::kAny, 1>(r.row, col), col, start, statistics);
  }
  a.Look(r.row, start);
  return statistics;
}

template <bool kKept, bool kAligned, class A>
OFL_DEVICE void WritePacks(const A& a, const RowRange<A>& r, int64_t first, int64_t last,
                           const KeptPacks<A>& kept, const typename A::Total& total) {
  constexpr int N = A::kPack;
#pragma unroll 2
  for (int64_t p = first + threadIdx.x; p < last; p += blockDim.x) {
    typename A::template Raw<N> raw;
    if constexpr (kKept) {
      raw = kept.Get(p - r.first);
    } else {
      raw = LoadPackOf<kAligned>(a, r.row, r.span, p);
    }
    a.template StoreRaw<N>(r.row, r.span.PackColumn(p), raw, total);
  }
}

template <bool kKept, class A>
OFL_DEVICE void Write(const A& a, const RowRange<A>& r, const KeptPacks<A>& kept,
                      const typename A::Total& total) {
  const int rank = threadIdx.x;
  if (r.with_extras && rank < r.span.extras()) {
    const int64_t col = r.span.Column(rank);
    typename A::template Raw<1> raw = {};
    if (col < r.seen) raw = a.template Load<Access::kAny, 1>(r.row, col);
    a.template StoreRaw<1>(r.row, col, raw, total);
  }
  const int64_t middle = kKept ? r.kept : r.first;
  // What was read last is the likeliest to be in the L2 still.
  if (a.IsAligned(r.row, r.span.head)) {
    WritePacks<false, true>(a, r, middle, r.read, kept, total);
  } else {
    WritePacks<false, false>(a, r, middle, r.read, kept, total);
  }
  if constexpr (Offers<A, RowOffers::kSeen>) {
    for (int64_t p = r.read + rank; p < r.last; p += blockDim.x) {
      a.template StoreRaw<A::kPack>(r.row, r.span.PackColumn(p), {}, total);
    }
  }
  if (kKept) WritePacks<true, true>(a, r, r.first, middle, kept, total);
  if (r.with_extras && rank == 0) a.End(r.row, total);
}

}  // namespace internal

// A row per block, read once and kept in shared memory, or read twice.
template <bool kKeep, class A>
__global__ void __launch_bounds__(kKeep ? BlockBounds<typename A::C>::kSharedThreads
                                        : RowPolicy::kWideThreads,
                                  kKeep ? RowPolicy::kSharedBlocks : 1)
    RowStreamedKernel(A every, int64_t rows, int64_t cols) {
  extern __shared__ __align__(16) char shared[];
  Block block(shared);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const A a = AtRow(every, row);
    const internal::RowRange<A> range(a, row, cols, 0, 1);
    const internal::KeptPacks<A> kept(shared, range);
    auto total = a.Begin(row);
    auto statistics = internal::Gather<kKeep>(a, range, kept, total);
    statistics = block.Reduce(statistics, typename A::Merge{}, typename A::Statistics{});
    a.Conclude(statistics, total);
    internal::Write<kKeep>(a, range, kept, total);
  }
}

// A row per cluster of blocks, which exchange their statistics through distributed shared memory.
// Each keeps the first `capacity` packs of its part and reads the others again.
template <class A>
__global__ void __launch_bounds__(RowPolicy::kClusterThreads,
                                  BlockBounds<typename A::C>::kClusterBlocks)
    RowClusterKernel(A every, int64_t rows, int64_t cols, int64_t capacity) {
  extern __shared__ __align__(16) char shared[];
  Block block(shared);
  ClusterExchange cluster;
  cluster.Start(shared + Block::kScratchBytes);
  const int parts = cluster.size(), part = cluster.rank();
  for (int64_t row = blockIdx.x / parts; row < rows; row += gridDim.x / parts) {
    const A a = AtRow(every, row);
    internal::RowRange<A> range(a, row, cols, part, parts);
    range.Keep(capacity);
    const internal::KeptPacks<A> kept(shared, range);
    auto total = a.Begin(row);
    auto statistics = internal::Gather<true>(a, range, kept, total);
    statistics = block.Reduce(statistics, typename A::Merge{}, typename A::Statistics{});
    statistics = cluster.Reduce(statistics, typename A::Merge{}, typename A::Statistics{});
    a.Conclude(statistics, total);
    internal::Write<true>(a, range, kept, total);
  }
}

// Few rows: `parts` blocks per row, all resident (a cooperative launch). Each keeps the first
// `capacity` packs of its part; partial[rows][parts] receives the parts' statistics, which all
// merge in the same order after a barrier of the grid.
template <class A>
__global__ void __launch_bounds__(RowPolicy::kGridThreads, 1)
    RowGridKernel(A every, int64_t cols, int parts, int64_t capacity,
                  typename A::Statistics* partial) {
  extern __shared__ __align__(16) char shared[];
  Block block(shared);
  const int64_t row = blockIdx.x / parts;
  const int part = blockIdx.x % parts;
  const A a = AtRow(every, row);
  internal::RowRange<A> range(a, row, cols, part, parts);
  range.Keep(capacity);
  const internal::KeptPacks<A> kept(shared, range);
  auto total = a.Begin(row);
  auto statistics = internal::Gather<true>(a, range, kept, total);
  statistics = block.Reduce(statistics, typename A::Merge{}, typename A::Statistics{});
  if (threadIdx.x == 0) partial[blockIdx.x] = statistics;
  cooperative_groups::this_grid().sync();
  statistics = typename A::Statistics{};
  for (int i = threadIdx.x; i < parts; i += blockDim.x) {
    statistics = typename A::Merge{}(statistics, partial[row * parts + i]);
  }
  statistics = block.Reduce(statistics, typename A::Merge{}, typename A::Statistics{});
  a.Conclude(statistics, total);
  internal::Write<true>(a, range, kept, total);
}

}  // namespace oneflow_lite::cuda
