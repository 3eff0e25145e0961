// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of scans share: their arguments, states that a warp exchanges, and writing.
#pragma once

#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/chip/pack.cuh"

namespace oneflow_lite {
namespace cuda {

struct ScanPolicy {
  static constexpr int kThreads = 256;
  static constexpr int kRowThreads = 128;
  static constexpr int kBlocksPerMultiprocessor = 8;
  static constexpr int kMaxChunks = 1024;
  static constexpr int kMinRowChunk = 8192;
  static constexpr int kMinTiledRows = 128;
  static constexpr int kTileThreads = 256;
  static constexpr int kTileWidth = 64;  // columns of a tile, at most
  static constexpr int kTileBlocks = 2;
};
template <class F>
inline constexpr int kScanTile = ScanPolicy::kRowThreads* F::kItems;

struct ScanArguments {
  int64_t outer, axis, inner;
  int64_t chunk;  // elements of the axis
  int chunks;
  bool reverse;
  // The place in the axis of its k-th element in the scan's direction.
  __device__ __forceinline__ int64_t PlaceOf(int64_t k) const { return reverse ? axis - 1 - k : k; }
  // The least place of n elements from the k-th on.
  __device__ __forceinline__ int64_t LowOf(int64_t k, int n) const {
    return PlaceOf(reverse ? k + n - 1 : k);
  }
};

template <class S>
__device__ __forceinline__ S ShuffleState(const S& v, int lane) {
  static_assert(sizeof(S) % sizeof(uint32_t) == 0, "states are whole words");
  constexpr int kWords = sizeof(S) / sizeof(uint32_t);
  uint32_t words[kWords];
  memcpy(words, &v, sizeof(S));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_sync(0xffffffffu, words[i], lane);
  S other;
  memcpy(&other, words, sizeof(S));
  return other;
}

// A state that may not be there.
template <class S>
struct Maybe {
  S state;
  bool there;
};
template <class F, class S>
__device__ __forceinline__ Maybe<S> Join(const F& f, const Maybe<S>& a, const Maybe<S>& b) {
  if (!a.there) return b;
  if (!b.there) return a;
  return {f.Merge(a.state, b.state), true};
}

// Merges what comes before N states with each of them.
template <class F, class S, int N>
__device__ __forceinline__ void MergeBefore(const F& f, const S& before, S (&s)[N]) {
  if constexpr (F::kScansRuns) {
    f.After(before, s);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) s[i] = f.Merge(before, s[i]);
  }
}

// The inclusive scan of the first `count` > 0 of N states behind `state`, which becomes the last.
template <class F, class S, int N>
__device__ __forceinline__ void ScanStates(const F& f, Maybe<S>& state, int count, S (&s)[N]) {
  if constexpr (F::kScansRuns) {
    f.Scan(s, count);
    if (state.there) f.After(state.state, s);
  } else {
    s[0] = Join(f, state, Maybe<S>{s[0], true}).state;
#pragma unroll
    for (int i = 1; i < N; ++i) s[i] = f.Merge(s[i - 1], s[i]);
  }
  state = {s[0], true};
#pragma unroll
  for (int i = 1; i < N; ++i) {
    if (i < count) state.state = s[i];
  }
}

// The inclusive scan of the warp's states; all lanes must call it.
template <class F, class S>
__device__ __forceinline__ S ScanWarp(const F& f, S v) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int delta = 1; delta < kWarp; delta *= 2) {
    const S other = ShuffleState(v, lane >= delta ? lane - delta : lane);
    if (lane >= delta) v = f.Merge(other, v);
  }
  return v;
}

// The merge of the totals before chunk `chunk` > 0 of a row; every lane of the warp gets it.
template <class F, class S>
__device__ __forceinline__ S Before(const F& f, const S* totals, int chunk) {
  const int lane = threadIdx.x % kWarp;
  const int each = (chunk + kWarp - 1) / kWarp;
  S mine{};
  for (int c = lane * each; c < (lane + 1) * each && c < chunk; ++c) {
    mine = c == lane * each ? totals[c] : f.Merge(mine, totals[c]);
  }
  // Lanes beyond the last that has totals hold nothing, and nobody behind them is asked.
  return ShuffleState(ScanWarp(f, mine), (chunk - 1) / each);
}

// Writes the states of N neighbours from offset i on.
template <class F, int N>
__device__ __forceinline__ void WriteAt(const F& f, int64_t i, const typename F::State (&s)[N]) {
  if constexpr (F::kOfElements) {
    f.WriteRun(i, false, s);
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j) f.Write(i + j, s[j]);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
