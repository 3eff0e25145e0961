// SPDX-License-Identifier: Apache-2.0
//
// The scan of logcumsumexp along rows of whole packs: a warp finds the maximum of its part of a
// tile first, beside which sums of exponentials are additions, in a thread and between threads.
#pragma once

#include "primitive/cuda/reduce/scan_states.cuh"

namespace oneflow_lite {
namespace cuda {

struct ScanLogRows {
  static constexpr int kWarps = 4, kItems = 16, kResident = 6;
  static constexpr int kThreads = kWarps * kWarp, kTile = kThreads * kItems;
};

// The largest of a warp; floats are ordered as integers. NaN may be it, or not.
__device__ __forceinline__ float LargestOfWarp(float x) {
  const auto flip = [](int32_t bits) { return bits ^ (bits >> 31 & 0x7fffffff); };
  return __int_as_float(flip(__reduce_max_sync(0xffffffffu, flip(__float_as_int(x)))));
}

// A warp's part of a tile, of which a lane has kItems elements.
template <class F>
class ScanLogPart {
 public:
  using S = typename F::State;
  static constexpr int N = ScanLogRows::kItems;

  // v becomes the sums of its exponentials, or stays.
  __device__ __forceinline__ ScanLogPart(const F& f, Pack<float, N>& v) {
    const int lane = threadIdx.x % kWarp;
    float most = v.v[0];
#pragma unroll
    for (int i = 1; i < N; ++i) most = fmaxf(most, v.v[i]);
    most_ = LargestOfWarp(most);
    // Else there are infinities or NaN, or bits of the first element would be lost.
    near_ = most_ - __shfl_sync(0xffffffffu, v.v[0], 0) <= F::kNear;
    if (near_) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        v.v[i] = F::Exp(v.v[i] - most_);
        if (i > 0) v.v[i] += v.v[i - 1];
      }
      float sum = v.v[N - 1];
#pragma unroll
      for (int delta = 1; delta < kWarp; delta *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, sum, delta);
        if (lane >= delta) sum += other;
      }
      earlier_ = {most_, __shfl_up_sync(0xffffffffu, sum, 1)};
      total_ = {most_, sum};
    } else {
      total_ = {v.v[0], 1};
#pragma unroll
      for (int i = 1; i < N; ++i) total_ = f.Merge(total_, {v.v[i], 1});
      total_ = ScanWarp(f, total_);
      earlier_ = ShuffleState(total_, lane > 0 ? lane - 1 : 0);
    }
    if (lane == 0) earlier_ = {near_ ? most_ : -INFINITY, 0};
  }
  // Of the lanes up to this one.
  __device__ __forceinline__ const S& total() const { return total_; }

  // The results, where `before` is what comes before the warp.
  __device__ __forceinline__ void Finish(const F& f, const S& before, Pack<float, N>& v) const {
    if (near_ && before.max < INFINITY) {
      const float most = fmaxf(before.max, most_), own = F::Exp(most_ - most);
      const float sum = earlier_.sum * own + before.sum * F::Exp(before.max - most);
#pragma unroll
      for (int i = 0; i < N; ++i) v.v[i] = f.Value({most, v.v[i] * own + sum});
    } else if (near_) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        v.v[i] = f.Value({before.max, before.sum + (earlier_.sum + v.v[i])});
      }
    } else {
      S s = f.Merge(before, earlier_);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        s = f.Merge(s, {v.v[i], 1});
        v.v[i] = f.Value(s);
      }
    }
  }

 private:
  float most_;
  bool near_;
  S earlier_, total_;  // of the lanes before this one; with this one
};

// A block takes a row of `axis` elements, a multiple of kItems, at a boundary of 16 bytes. F is a
// scanner of scan.cu whose states are a maximum and a sum, as float.
template <class F>
__global__ void __launch_bounds__(ScanLogRows::kThreads, ScanLogRows::kResident)
    ScanLogRowsKernel(int64_t axis, F f) {
  using S = typename F::State;
  using T = typename F::Element;
  using P = ScanLogRows;
  constexpr int N = P::kItems, kPack = kPackSize<T>;
  __shared__ S slots[2][P::kWarps];  // the warps' totals, of two tiles by turns
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const T* row = f.x + blockIdx.x * axis;
  T* to = f.y + blockIdx.x * axis;
  S carry{-INFINITY, 0};
  int64_t k = threadIdx.x * N;
  StowedPack<T, N> next = {};
  if (k < axis) next = StowedPack<T, N>::Of(LoadAlignedPack<N>(row + k));
  int turn = 0;
  for (int64_t start = 0; start < axis; start += P::kTile, k += P::kTile, turn ^= 1) {
    Pack<float, N> v = GetAs<float>(next);
    if (k >= axis) v = FilledPack<N>(-INFINITY);
    if (k + P::kTile < axis) next = StowedPack<T, N>::Of(LoadAlignedPack<N>(row + k + P::kTile));
    const ScanLogPart<F> part(f, v);
    if (lane == kWarp - 1) slots[turn][warp] = part.total();
    __syncthreads();
    const auto get = [&](int i) { return i == 0 ? carry : slots[turn][i - 1]; };
    const S before = f.MergeAll(warp + 1, get), after = f.MergeAll(P::kWarps + 1, get);
    carry = after;
    if (k >= axis) continue;
    part.Finish(f, before, v);
#pragma unroll
    for (int i = 0; i < N; i += kPack) {
      Pack<float, kPack> pack;
#pragma unroll
      for (int j = 0; j < kPack; ++j) pack.v[j] = v.v[i + j];
      StoreAlignedPack(to + k + i, ConvertPack<T>(pack));
    }
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
