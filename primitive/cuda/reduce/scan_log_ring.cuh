// SPDX-License-Identifier: Apache-2.0
//
// The scan of logcumsumexp along columns of 16-bit floats in a ring (scan_ring.cuh). A column has a
// point, its largest element up to the last stage that moved it, beside which sums of exponentials
// are additions, in a lane and between warps. A stage moves a column's point only where an element
// lies far above it, or for the first infinity or NaN.
#pragma once

#include "primitive/cuda/reduce/extremes.cuh"
#include "primitive/cuda/reduce/scan_ring.cuh"

namespace oneflow_lite {
namespace cuda {

// What a warp does of a block's stages: a lane has two columns. F is a scanner of scan.cu whose
// states are a maximum and a sum, as float.
template <class F>
class LogRing {
 public:
  using S = typename F::State;
  using T = typename F::Element;
  static constexpr int kLines = ScanRing::kLines, kWarps = F::kRingWarps, kColumns = 2;
  static constexpr float kAbove = 16;  // the point: e^16 times as many elements are no sum to fear
  using Sums = float[kColumns][kLines];
  // Of a stage and the next one, by turns, the sums before it and its warps'; and the warps' states
  // of a stage that moves the points.
  static constexpr int kBytes =
      (2 * (kWarps + 1) * sizeof(float2) + kWarps * kColumns * sizeof(S)) * kWarp;

  __device__ __forceinline__ LogRing(const ScanArguments& a, const F& f, const RingBlock<F>& block,
                                     char* shared)
      : a_(a),
        f_(f),
        lane_(threadIdx.x % kWarp),
        warp_(threadIdx.x / kWarp),
        writes_(lane_ * 4 < block.bytes),
        to_(f.y + block.base + lane_ * kColumns),
        sums_(reinterpret_cast<float2*>(shared)),
        states_(reinterpret_cast<S*>(sums_ + 2 * (kWarps + 1) * kWarp)) {
    if (warp_ == 0) SumsOf(0, 0) = {0, 0};
  }

  // The sums down the `count` rows of stage s that are the warp's, which it leaves for the others;
  // whether a point must move. The sums of that column are anything, and NaN is left.
  __device__ __forceinline__ bool Add(int s, const char* from, int count, Sums& sums) {
    Pack<T, kColumns> rows[kLines];
#pragma unroll
    for (int r = 0; r < kLines; ++r) {
      rows[r] = LoadAlignedPack<kColumns>(reinterpret_cast<const T*>(from + r * ScanRing::kBytes));
      KeepPacked(rows[r]);
      if (r > 0 && r >= count)
        rows[r] = rows[0];  // what lies behind the last row is not the tensor's
    }
    const Pack<T, kColumns> most = FurthestPack<true>(rows);
#pragma unroll
    for (int r = 0; r < kLines; ++r) {
      const Pack<float, kColumns> x = StowedPack<T, kColumns>::Of(rows[r]).GetWide();
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        sums[j][r] = Term(x.v[j], shift_[j]);
        if (r > 0) sums[j][r] += sums[j][r - 1];
      }
    }
    bool moves = false;
    float left[kColumns];
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const bool far = !(ConvertTo<float>(most.v[j]) <= limit_[j]) && point_[j] == point_[j];
      left[j] = count == 0 ? 0 : far ? NAN : sums[j][kLines - 1];
      moves |= far;
    }
    SumsOf(s, 1 + warp_) = {left[0], left[1]};
    return moves && writes_ && count > 0;
  }
  // Behind what comes before: the results of `count` rows from `first` on.
  __device__ __forceinline__ void Write(int s, int64_t first, int count, const Sums& sums) {
    float2 before = SumsOf(s, 0);
#pragma unroll 4
    for (int i = 1; i <= warp_; ++i) {
      const float2 more = SumsOf(s, i);
      before.x += more.x, before.y += more.y;
    }
    if (warp_ == kWarps - 1) {
      SumsOf(s + 1, 0) = {before.x + sums[0][kLines - 1], before.y + sums[1][kLines - 1]};
    }
    if (!writes_) return;
    T* to = to_ + a_.PlaceOf(first) * a_.inner;
    const int64_t further = a_.reverse ? -a_.inner : a_.inner;
#pragma unroll
    for (int r = 0; r < kLines; ++r) {
      const Pack<float, kColumns> y = {{f_.Value({point_[0], before.x + sums[0][r]}),
                                        f_.Value({point_[1], before.y + sums[1][r]})}};
      if (r < count) StoreAlignedPack(to + r * further, ConvertPack<T>(y));
    }
  }
  // The same, where the points of some columns move: those are merged from states. What a column
  // comes to does not depend on others. All threads of the block call it.
  __device__ __forceinline__ void WriteAndMove(int s, const char* from, int64_t first, int count,
                                               const Sums& sums) {
    RingRun<F> run(a_, f_, from, first, count);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) StateOf(warp_, j) = run.of[j][kLines - 1];
    __syncthreads();
    float after[kColumns];
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const auto sum_of = [&](int i) { return j == 0 ? SumsOf(s, i).x : SumsOf(s, i).y; };
      const float carry = sum_of(0);
      float before = carry;
      bool moves = false;
#pragma unroll 1
      for (int i = 1; i <= kWarps; ++i) {
        const float more = sum_of(i);
        moves |= more != more;
        if (i <= warp_) before += more;
      }
      if (moves) {
        const S state{point_[j], carry};
        const auto get = [&](int i) { return i == 0 ? state : StateOf(i - 1, j); };
        const S all = f_.MergeAll(kWarps + 1, get);
        MergeBefore(f_, f_.MergeAll(warp_ + 1, get), run.of[j]);
        MoveTo(j, all.sum == all.sum ? all.max : NAN);
        after[j] = all.sum;
      } else {
#pragma unroll
        for (int r = 0; r < kLines; ++r) run.of[j][r] = {point_[j], before + sums[j][r]};
        after[j] = before + sums[j][kLines - 1];
      }
    }
    if (warp_ == kWarps - 1) SumsOf(s + 1, 0) = {after[0], after[1]};
    if (writes_) run.Write(a_, f_, to_, first, count);
  }

 private:
  __device__ __forceinline__ float2& SumsOf(int stage, int i) {
    return sums_[((stage & 1) * (kWarps + 1) + i) * kWarp + lane_];
  }
  __device__ __forceinline__ S& StateOf(int warp, int j) {
    return states_[(warp * kColumns + j) * kWarp + lane_];
  }
  // A point of -inf has had no other elements, and keeps none but those; +inf and NaN stay.
  __device__ __forceinline__ void MoveTo(int j, float point) {
    const bool finite = fabsf(point) < INFINITY;
    point_[j] = point, shift_[j] = finite ? point : 0, limit_[j] = finite ? point + kAbove : point;
  }
  // e^(x - shift), of float16 in one multiplication and addition as in moments.cuh.
  __device__ __forceinline__ static float Term(float x, float shift) {
    if constexpr (std::is_same_v<T, __half>) {
      return fast::Exp2(fmaf(x, fast::kLog2E, -shift * fast::kLog2E));
    } else {
      return fast::Exp2((x - shift) * fast::kLog2E);
    }
  }

  const ScanArguments& a_;
  const F& f_;
  int lane_, warp_;
  bool writes_;
  T* to_;
  float2* sums_;
  S* states_;
  float point_[kColumns] = {-INFINITY, -INFINITY};
  float shift_[kColumns] = {};                      // the point where it is finite
  float limit_[kColumns] = {-INFINITY, -INFINITY};  // of elements that leave the point
};

// inner > 1, and what RingsScan says.
template <class F>
__global__ void __launch_bounds__(kRingThreads<F>)
    ScanLogRingKernel(ScanArguments a, F f, int64_t segments) {
  constexpr int kLines = ScanRing::kLines, kRows = RingRows<F>::kRows, kStages = ScanRing::kStages;
  static_assert(sizeof(typename F::Element) == 2, "a lane has two columns");
  static_assert(kRingStages<F> + LogRing<F>::kBytes <= kRingShared<F>, "");
  extern __shared__ __align__(16) char ring[];
  const RingBlock<F> block(a, segments);
  RingRows<F> rows(a, f.x + block.base + a.PlaceOf(0) * a.inner, block.bytes, ring);
  LogRing<F> log(a, f, block, ring + kRingStages<F>);
  const char* mine =
      ring + threadIdx.x / kWarp * kLines * ScanRing::kBytes + threadIdx.x % kWarp * 4;
  const int stages = static_cast<int>((a.axis + kRows - 1) / kRows);
#pragma unroll 1
  for (int s = 0; s < kStages - 1; ++s) rows.Load();
#pragma unroll 1
  for (int s = 0; s < stages; ++s) {
    WaitForCopiesOf<kStages - 2>();
    __syncthreads();
    rows.Load();
    const int64_t first = int64_t{s} * kRows + threadIdx.x / kWarp * kLines;
    const int count = RingLines(a, first);
    const char* from = mine + s % kStages * kRows * ScanRing::kBytes;
    typename LogRing<F>::Sums sums;
    if (__syncthreads_or(log.Add(s, from, count, sums))) {
      log.WriteAndMove(s, from, first, count, sums);
    } else {
      log.Write(s, first, count, sums);
    }
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
