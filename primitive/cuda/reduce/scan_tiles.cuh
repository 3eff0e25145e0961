// SPDX-License-Identifier: Apache-2.0
//
// Scans along long columns, in one launch that reads x once. A block holds a tile of rows and
// columns in registers, leaves its totals, and waits for those of the tiles above it (of the same
// columns, earlier in the axis). What is merged in which order is fixed by the shape: a tile takes
// no shortcut by what others may have merged already, as a decoupled look-back would.
#pragma once

#include "primitive/cuda/chip/device_limits.h"
#include "primitive/cuda/reduce/problem.h"
#include "primitive/cuda/reduce/scan_columns.cuh"

namespace oneflow_lite {
namespace cuda {

// Rows that a thread holds.
template <class F, int kColumns, bool = F::kOfElements>
inline constexpr int kHeldRows = 16;
template <class F, int kColumns>
inline constexpr int kHeldRows<F, kColumns, true> =
    kColumns * sizeof(typename F::Element) > F::kHeldBytes / 32
        ? F::kHeldBytes / (kColumns * sizeof(typename F::Element))
        : 32;

// How columns are cut into tiles. A group is the columns of one tile.
struct ScanTiles {
  int across;          // threads of a block beside each other, a power of two
  int rows;            // of the axis in a tile
  int64_t groups;      // of one outer
  int64_t all_groups;  // of all outer
  int64_t down;        // tiles along the axis
  int64_t columns;     // of all outer
  int64_t Count() const { return all_groups * down; }
};

template <int kColumns, class F>
ScanTiles ScanTilesOf(const ReduceProblem& p) {
  constexpr int kMost =
      ScanPolicy::kTileWidth / kColumns < kWarp ? ScanPolicy::kTileWidth / kColumns : kWarp;
  const int64_t threads = p.inner / kColumns;  // side by side
  int across = 1;
  while (across < kMost && across < threads) across *= 2;
  const int rows = ScanPolicy::kTileThreads / across * kHeldRows<F, kColumns>;
  const int64_t groups = CeilDiv(threads, across);
  return {across, rows, groups, p.outer * groups, CeilDiv(p.axis, rows), p.outer * p.inner};
}

// What the tiles of one launch leave for each other. Tiles that lie below each other are cut into
// chains: a tile merges the totals of those before it in its chain, and with them what the last
// tile of the chain before came to.
template <class S>
struct ScanRelay {
  static constexpr int kChain = 32;
  static constexpr unsigned kTotal = 1, kCarry = 2;  // what is there of a tile
  unsigned* ticket;                                  // tiles that were taken; 0 at first
  unsigned* there;                                   // [tiles], 0 at first
  S* totals;                                         // [down, columns]
  S* carries;                                        // [down / kChain, columns]
};

__device__ __forceinline__ void WaitUntil(const unsigned* at, unsigned least) {
  unsigned now;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(at) : "memory");
  } while (now < least);
}
__device__ __forceinline__ void Announce(unsigned* at, unsigned value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

// A state that another block wrote; L1 may hold what was there before.
template <class S>
__device__ __forceinline__ S LoadShared(const S* p) {
  uint32_t words[sizeof(S) / sizeof(uint32_t)];
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(S) / sizeof(uint32_t)); ++i) {
    words[i] = __ldcg(reinterpret_cast<const uint32_t*>(p) + i);
  }
  S s;
  memcpy(&s, words, sizeof(S));
  return s;
}

// The totals of a tile's threads, scanned down the columns. A thread has kColumns neighbours on its
// line; `lines` lines of a column are scanned by one thread each, in as many parts as there are,
// and `parts` by one for a column: [part][width], the merge of a part and of those before it.
template <int kColumns, class F, class S>
__device__ __forceinline__ void ScanTotals(const F& f, S* totals, S* parts, int width) {
  const int c = threadIdx.x & (width - 1), part = threadIdx.x / width;
  const int all = ScanPolicy::kTileThreads / width;  // each of kColumns lines
  S* mine = totals + part * kColumns * (width + 1) + c;
  S state = mine[0];
#pragma unroll
  for (int l = 1; l < kColumns; ++l) {
    mine[l * (width + 1)] = state = f.Merge(state, mine[l * (width + 1)]);
  }
  parts[threadIdx.x] = state;
  __syncthreads();
  if (part == 0) {
    for (int i = 1; i < all; ++i) {
      parts[i * width + c] = state = f.Merge(state, parts[i * width + c]);
    }
  }
  __syncthreads();
}

// What the lines above `line` come to in column c, after ScanTotals.
template <int kColumns, class F, class S>
__device__ __forceinline__ Maybe<S> Above(const F& f, const S* totals, const S* parts, int width,
                                          int line, int c) {
  const int part = line / kColumns;
  Maybe<S> above{S{}, false};
  if (part > 0) above = {parts[(part - 1) * width + c], true};
  if (line % kColumns == 0) return above;
  return Join(f, above, Maybe<S>{totals[(line - 1) * (width + 1) + c], true});
}

// The place of a tile: which one of those along the axis, and of which columns.
struct TilePlace {
  int64_t chunk, group, outer, first_column;
  bool last;
  __device__ __forceinline__ TilePlace(const ScanTiles& t, int64_t tile, int width) {
    const int64_t groups = t.all_groups;
    group = tile % groups, chunk = tile / groups;
    outer = group / t.groups, first_column = group % t.groups * width;
    last = chunk + 1 == t.down;
  }
};

// Leaves a tile's totals, by column, for the tiles below it, and gives what those above it come to
// in `carry`. All threads call it; `total` and `carry` have `width` states each, a power of two.
template <class F, class S>
__device__ __forceinline__ void RelayCarries(const F& f, const ScanTiles& tiles,
                                             const ScanRelay<S>& relay, const TilePlace& at,
                                             int width, int64_t inner, const S& total, S* found,
                                             S* carry) {
  constexpr int kThreads = ScanPolicy::kTileThreads, kChain = ScanRelay<S>::kChain;
  const int64_t groups = tiles.all_groups;
  unsigned* there = relay.there + at.group;  // of the tile of chunk 0
  const int c = threadIdx.x & (width - 1), line = threadIdx.x / width;
  const int64_t column = at.outer * inner + at.first_column + c;
  const bool is_column = at.first_column + c < inner, is_first = is_column && line == 0;
  if (!at.last) {
    if (is_first) relay.totals[at.chunk * tiles.columns + column] = total;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) Announce(there + at.chunk * groups, relay.kTotal);
  }
  if (at.chunk == 0) return;
  const int before = static_cast<int>(at.chunk % kChain);  // tiles of the chain
  const int64_t begin = at.chunk - before;
  const int mine = threadIdx.x;
  if (mine < before) WaitUntil(there + (begin + mine) * groups, relay.kTotal);
  if (mine == before && begin > 0) WaitUntil(there + (begin - 1) * groups, relay.kCarry);
  __syncthreads();
  const int lines = kThreads / width, each = lines < kChain ? kChain / lines : 1;
  Maybe<S> part{S{}, false};
#pragma unroll 8
  for (int e = 0; e < each; ++e) {
    const int i = line * each + e;
    if (i < before && is_column) {
      const S* one = relay.totals + (begin + i) * tiles.columns + column;
      part = Join(f, part, Maybe<S>{LoadShared(one), true});
    }
  }
  found[threadIdx.x] = part.state;
  __syncthreads();
  const bool ends_chain = before == kChain - 1 && !at.last;
  if (is_first) {
    Maybe<S> all{S{}, false};
    if (begin > 0) {
      all = {LoadShared(relay.carries + (begin / kChain - 1) * tiles.columns + column), true};
    }
    for (int l = 0; l * each < before; ++l) {
      all = Join(f, all, Maybe<S>{found[l * width + c], true});
    }
    carry[c] = all.state;
    if (ends_chain) {
      relay.carries[begin / kChain * tiles.columns + column] = f.Merge(all.state, total);
    }
  }
  if (ends_chain) __threadfence();
  __syncthreads();
  if (ends_chain && threadIdx.x == 0) Announce(there + at.chunk * groups, relay.kCarry);
}

// inner > 1 and a multiple of kColumns.
template <int kColumns, class F>
__global__ void __launch_bounds__(ScanPolicy::kTileThreads, ScanPolicy::kTileBlocks)
    ScanTilesKernel(ScanArguments a, F f, ScanTiles tiles, ScanRelay<typename F::State> relay) {
  using S = typename F::State;
  constexpr int kRows = kHeldRows<F, kColumns>, kThreads = ScanPolicy::kTileThreads;
  __shared__ __align__(16) char totals_memory[kThreads * (kColumns + 1) * sizeof(S)];
  __shared__ __align__(16) char carry_memory[ScanPolicy::kTileWidth * sizeof(S)];
  S* totals = reinterpret_cast<S*>(totals_memory);
  __shared__ __align__(16) char parts_memory[kThreads * sizeof(S)];
  __shared__ __align__(16) char found_memory[kThreads * sizeof(S)];
  S* carry = reinterpret_cast<S*>(carry_memory);
  S* parts = reinterpret_cast<S*>(parts_memory);
  S* found = reinterpret_cast<S*>(found_memory);
  __shared__ unsigned taken;
  // A tile waits only for tiles that were taken before it.
  if (threadIdx.x == 0) taken = atomicAdd(relay.ticket, 1u);
  __syncthreads();
  const int across = tiles.across, width = across * kColumns, stride = width + 1;
  const TilePlace at(tiles, taken, width);
  const int side = threadIdx.x & (across - 1), line = threadIdx.x / across;
  const int64_t column = at.first_column + side * kColumns;
  const int64_t base = at.outer * a.axis * a.inner + column;
  const int64_t first = at.chunk * tiles.rows + line * kRows;
  const int64_t left = column < a.inner ? a.axis - first : 0;
  const int count = left < kRows ? left > 0 ? static_cast<int>(left) : 0 : kRows;

  RawColumns<F, kColumns> raw[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int64_t place = a.PlaceOf(first + r);
    if (r < count) raw[r].Load(f, base + place * a.inner, place, first + r == 0);
  }
  const auto nothing = [](int, const S(&)[kColumns]) {};
  Maybe<S> state[kColumns] = {};
  ScanHeldRows(a, f, raw, first, count, state, nothing);
#pragma unroll
  for (int j = 0; j < kColumns; ++j) totals[line * stride + side * kColumns + j] = state[j].state;
  __syncthreads();
  ScanTotals<kColumns>(f, totals, parts, width);
  // The last line with rows, of this thread's column in RelayCarries.
  const int64_t in_tile = a.axis - at.chunk * tiles.rows;
  const int end = at.last ? static_cast<int>((in_tile - 1) / kRows) : kThreads / across - 1;
  const S total =
      Above<kColumns>(f, totals, parts, width, end + 1, threadIdx.x & (width - 1)).state;
  RelayCarries(f, tiles, relay, at, width, a.inner, total, found, carry);
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    const int c = side * kColumns + j;
    state[j] = {S{}, false};
    if (at.chunk > 0) state[j] = {carry[c], true};
    state[j] = Join(f, state[j], Above<kColumns>(f, totals, parts, width, line, c));
  }
  ScanHeldRows(a, f, raw, first, count, state, [&](int r, const S(&now)[kColumns]) {
    WriteAt(f, base + a.PlaceOf(first + r) * a.inner, now);
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
