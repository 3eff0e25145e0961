// SPDX-License-Identifier: Apache-2.0
//
// The norms' forward where every row of every tensor is whole packs of 16 bytes, held in registers:
// of a group of lanes, of a block, or of the blocks of a cluster. At the speed of memory a
// multiprocessor has some 28 instructions for an element of half precision, reductions and all.
//
// layer_norm: a warp centres its own columns about their mean; one exchange merges what the warps
// found (Chan, Golub and LeVeque; see norm_sums.cuh).
#pragma once

#include "primitive/cuda/norm_math.cuh"
#include "primitive/cuda/norm_whole_policy.h"
#include "primitive/cuda/warp_exchange.cuh"

namespace oneflow_lite {
namespace cuda {

template <class T>
struct NormWhole {
  using C = ComputeType<T>;
  NormForward<T> a;
  C eps, share;  // share: 1 / cols
  int packs;     // of a row
  bool plain;    // weight and, for layer_norm, bias are there, of T, aligned to 16 bytes
};

// What some columns come to: their count, their mean as a sum of two, and the squares of their
// distances from it. rms_norm: the squares alone.
template <class C>
struct alignas(16) NormPart {
  C count = 0, mean = 0, low = 0, squares = 0;
};

// Threads that hold a row: kTeam lanes, or (0) one or more blocks.
template <int kTeam>
inline constexpr bool kIsLanes = kTeam > 0;

// Whether a thread keeps its part of a row in the compute type: layer_norm's as distances from the
// warp's mean.
template <class T, int kTeam, bool kResidual, int kPacks>
inline constexpr bool kHoldsValues = kPackSize<T>* kPacks * sizeof(ComputeType<T>) <=
                                     (kIsLanes<kTeam> || kResidual ? 64 : 128);

// What a thread holds of a row. Load, Gather and Store follow each other, and AskForWeights comes
// somewhere before Store. kAhead: packs of weight and bias that wait in registers; each one used
// makes room for the one that many further on. kFull: every thread has all its packs. kPlain: see
// NormWhole.
template <class T, bool kCentre, bool kResidual, int kTeam, int kPacks, int kAhead, bool kFull,
          bool kPlain>
class NormWholeRow {
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<T>;
  using Values = Pack<C, N>;
  using Stowed = StowedPack<T, N>;
  using Part = NormPart<C>;
  static constexpr int kLanes = kIsLanes<kTeam> ? kTeam : kWarp;

  static constexpr bool kHold = kHoldsValues<T, kTeam, kResidual, kPacks>;
  static constexpr bool kTwoWays = !kFull && !kIsLanes<kTeam> && sizeof(T) > 2;

 public:
  // size: threads that hold the row; rank: which of them this one is.
  __device__ __forceinline__ NormWholeRow(const NormWhole<T>& p, int64_t row, int packs, int rank,
                                          int size)
      : p_(p), row_(row), packs_(packs), rank_(rank), size_(size), col_(rank * N) {}

  // Asks for the row; nothing waits for it yet.
  __device__ __forceinline__ void Load() {
    LoadPacks(p_.a.x + row_ * p_.a.x_stride, x_);
    if constexpr (kResidual) LoadPacks(p_.a.residual + row_ * p_.a.cols, residual_);
  }
  __device__ __forceinline__ void AskForWeights() {
    step_ = size_ * N;
    next_ = col_;
#pragma unroll
    for (int k = 0; k < kAhead; ++k) AskForWeight(k);
  }

  // What this warp's columns come to, or those of this group of lanes.
  __device__ __forceinline__ Part Gather() {
    if constexpr (kResidual) AddResidual();
    if constexpr (kHold) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) held_[k] = ConvertPack<C>(x_[k].Get());
    }
    C sum = 0;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      const Values v = Value(k);
#pragma unroll
      for (int i = 0; i < N; ++i) sum += kCentre ? v.v[i] : v.v[i] * v.v[i];
    }
    sum = ReduceLanes<kLanes>(sum, Plus{});
    Part part;
    part.squares = sum;
    if constexpr (kCentre) Centre(sum, part);
    return part;
  }

  // row: what the whole row comes to.
  __device__ __forceinline__ void Store(const Part& row) {
    const C squares = row.squares < 0 ? C(0) : row.squares;  // it may have been rounded below 0
    rstd_ = ReciprocalRoot(squares * p_.share + p_.eps);
    if (rank_ == 0 && packs_ > 0) {
      if (kCentre && p_.a.mean) p_.a.mean[row_] = row.mean + row.low;
      if (p_.a.rstd) p_.a.rstd[row_] = rstd_;
    }
    if constexpr (kCentre) offset_ = ((mean_ - row.mean) - row.low) * rstd_;
    uint32_t col = col_;
#pragma unroll
    for (int k = 0; k < kPacks; ++k, Advance(col)) {
      if (!Has(k)) break;  // with `continue` the compiler keeps all columns, and spills
      Values y = Value(k);
#pragma unroll
      for (C& v : y.v) {
        if (kCentre && !kHold) v -= mean_;
        v = kCentre ? v * rstd_ + offset_ : v * rstd_;
      }
      if (kPlain || p_.a.weight) {
        const Values w = WeightOf(p_.a.weight, weight_[k % kAhead], col);
#pragma unroll
        for (int i = 0; i < N; ++i) y.v[i] *= w.v[i];
      }
      if (kPlain ? kCentre : p_.a.bias != nullptr) {
        const Values b = WeightOf(p_.a.bias, bias_[kCentre ? k % kAhead : 0], col);
#pragma unroll
        for (int i = 0; i < N; ++i) y.v[i] += b.v[i];
      }
      if (k + kAhead < kPacks) AskForWeight(k + kAhead);
      StoreAlignedPack<N>(p_.a.y + row_ * p_.a.cols + col, ConvertPack<T>(y));
    }
  }

 private:
  __device__ __forceinline__ bool Has(int k) const { return kFull || rank_ + k * size_ < packs_; }
  __device__ __forceinline__ int Column(int k) const { return col_ + k * size_ * N; }
  __device__ __forceinline__ Values Value(int k) const {
    if constexpr (kHold) return held_[k];
    return ConvertPack<C>(x_[k].Get());
  }
  // The compiler would mix predicated loads with the first uses of packs, each of which then waits:
  // those of a thread that has all its packs are in a block of their own.
  __device__ __forceinline__ void LoadPacks(const T* from, Stowed (&to)[kPacks]) const {
    if (kTwoWays && Has(kPacks - 1)) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) to[k] = Stowed::Of(LoadAlignedPack<N>(from + Column(k)));
    } else {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (Has(k)) to[k] = Stowed::Of(LoadAlignedPack<N>(from + Column(k)));
      }
    }
    if constexpr (kTwoWays) {
#pragma unroll
      for (Stowed& pack : to) pack.Pin();
    }
  }
  __device__ __forceinline__ void AskForWeight(int k) {
    if constexpr (!kPlain) return;
    if (Has(k)) {
      weight_[k % kAhead] =
          Stowed::Of(LoadAlignedPack<N>(static_cast<const T*>(p_.a.weight) + next_));
      if constexpr (kCentre) {
        bias_[k % kAhead] =
            Stowed::Of(LoadAlignedPack<N>(static_cast<const T*>(p_.a.bias) + next_));
      }
    }
    Advance(next_);
  }
  // To the column of the thread's next pack.
  __device__ __forceinline__ void Advance(uint32_t& col) const { col += step_; }
  // The sum is what T holds of it.
  __device__ __forceinline__ void AddResidual() {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      Values sum = ConvertPack<C>(x_[k].Get());
      const Values other = ConvertPack<C>(residual_[k].Get());
#pragma unroll
      for (int i = 0; i < N; ++i) sum.v[i] += other.v[i];
      const Pack<T, N> kept = ConvertPack<T>(sum);
      x_[k] = Stowed::Of(kept);
      if (p_.a.sum) StoreAlignedPack<N>(p_.a.sum + row_ * p_.a.cols + Column(k), kept);
    }
  }

  // Columns of this warp or group.
  __device__ __forceinline__ C Count() const {
    if (kIsLanes<kTeam>) return static_cast<C>(packs_ * N);
    if (kFull) return C(kWarp * kPacks * N);
    int count = 0;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int left = packs_ - (rank_ - static_cast<int>(threadIdx.x % kWarp) + k * size_);
      count += left < 0 ? 0 : left < kWarp ? left : kWarp;
    }
    return static_cast<C>(count * N);
  }
  __device__ __forceinline__ void Centre(C sum, Part& part) {
    part.count = Count();
    const C share = kIsLanes<kTeam>   ? p_.share
                    : kFull           ? C(1) / (kWarp * kPacks * N)
                    : part.count == 0 ? C(0)
                                      : Quotient(C(1), part.count);
    part.mean = mean_ = sum * share;
    SumOf<C, 2> sums;  // of the distances, and of their squares
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      Values v = Value(k);
#pragma unroll
      for (C& d : v.v) {
        d -= mean_;
        if (sizeof(T) > 2) sums.v[0] += d;
        sums.v[1] += d * d;
      }
      if constexpr (kHold) held_[k] = v;
    }
    // What is left of the mean. 16-bit elements add up nearly without an error.
    if constexpr (sizeof(T) > 2) {
      sums = ReduceLanes<kLanes>(sums, Plus{});
    } else {
      sums.v[0] = fma(-part.count, mean_, sum);
      sums.v[1] = ReduceLanes<kLanes>(sums.v[1], Plus{});
    }
    part.low = sums.v[0] * share;
    part.squares = sums.v[1] - sums.v[0] * part.low;
  }

  __device__ __forceinline__ Values WeightOf(const void* from, const Stowed& held,
                                             uint32_t col) const {
    if constexpr (kPlain) return ConvertPack<C>(held.Get());
    return LoadWeights<C, N, T>(from, p_.a.float_weight, col, 0, N, C(0));
  }

  const NormWhole<T>& p_;
  const int64_t row_;
  const int packs_, rank_, size_, col_;
  uint32_t next_ = 0;                   // column of the weights that are asked for next
  uint32_t step_ = 0;                   // columns from a thread's pack to its next
  C mean_ = 0, rstd_ = 0, offset_ = 0;  // y = (x - mean) * rstd + offset, before the weight
  Stowed x_[kPacks], residual_[kPacks];
  Stowed weight_[kAhead], bias_[kCentre ? kAhead : 1];
  Values held_[kHold ? kPacks : 1];
};

// The row of which `count` warps found `parts`: every warp computes the same.
template <bool kCentre, class C>
__device__ __forceinline__ NormPart<C> MergeParts(const NormPart<C>* parts, int count, C share) {
  SumOf<C, 2> sums;
  const C base = parts[0].mean;
#pragma unroll 1
  for (int i = threadIdx.x % kWarp; i < count; i += kWarp) {
    const NormPart<C> part = parts[i];
    if constexpr (kCentre) {
      const C apart = (part.mean - base) + part.low;
      sums.v[0] += part.count * apart;
      sums.v[1] += part.squares + part.count * apart * apart;
    } else {
      sums.v[1] += part.squares;
    }
  }
  NormPart<C> row;
  if constexpr (kCentre) {
    sums = ReduceLanes<kWarp>(sums, Plus{});
    row.mean = base;
    row.low = sums.v[0] * share;
    row.squares = sums.v[1] - sums.v[0] * row.low;
  } else {
    row.squares = ReduceLanes<kWarp>(sums.v[1], Plus{});
  }
  return row;
}

// run(full, plain), as std::bool_constant: see NormWholeRow.
template <bool kMayBeFull, class Run>
__device__ __forceinline__ void RunWhole(bool full, bool plain, Run&& run) {
  if (kMayBeFull && full && plain) {
    run(std::bool_constant<kMayBeFull>{}, std::true_type{});
    return;
  }
  if (plain) {
    run(std::false_type{}, std::true_type{});
  } else {
    run(std::false_type{}, std::false_type{});
  }
}

// A row per kTeam lanes; the grid covers all rows.
template <class T, bool kCentre, bool kResidual, int kTeam, int kPacks>
__global__ void __launch_bounds__(NormWholePolicy::kLaneThreads,
                                  NormWholePolicy::LaneBlocks<T>(kPacks))
    NormLanesKernel(const __grid_constant__ NormWhole<T> p) {
  constexpr int kRows = kWarp / kTeam;  // of a warp
  const int64_t first =
      (int64_t{blockIdx.x} * (NormWholePolicy::kLaneThreads / kWarp) + threadIdx.x / kWarp) * kRows;
  const int64_t row = first + threadIdx.x % kWarp / kTeam;
  const bool full = p.packs == kTeam * kPacks && first + kRows <= p.a.rows;
  RunWhole<kHoldsValues<T, kTeam, kResidual, kPacks>>(full, p.plain, [&](auto full, auto plain) {
    NormWholeRow<T, kCentre, kResidual, kTeam, kPacks, kPacks, decltype(full)::value,
                 decltype(plain)::value>
        part(p, row, row < p.a.rows ? p.packs : 0, threadIdx.x % kTeam, kTeam);
    part.Load();
    part.AskForWeights();
    part.Store(part.Gather());
  });
}

// A row per block, or per cluster of blocks.
template <class T, bool kCentre, bool kResidual, int kPacks>
__global__ void __launch_bounds__(NormWholePolicy::kWholeThreads<T>,
                                  NormWholePolicy::kWholeBlocks<T>)
    NormBlockKernel(const __grid_constant__ NormWhole<T> p) {
  using Exchange = WarpExchange<NormPart<ComputeType<T>>>;
  constexpr int kAhead = NormWholePolicy::kWeightsAhead<T, kCentre, kPacks>;
  extern __shared__ __align__(16) char shared[];
  Exchange exchange(shared);
  const int size = Exchange::blocks() * static_cast<int>(blockDim.x);
  const int rank = Exchange::block() * static_cast<int>(blockDim.x) + threadIdx.x;
  const bool full = p.packs == size * kPacks;
  RunWhole<kHoldsValues<T, 0, kResidual, kPacks>>(full, p.plain, [&](auto full, auto plain) {
    NormWholeRow<T, kCentre, kResidual, 0, kPacks, kAhead, decltype(full)::value,
                 decltype(plain)::value>
        part(p, internal::ClusterIndex(), p.packs, rank, size);
    constexpr bool kWithRow = kPacks <= NormWholePolicy::kEarlyPacks;
    part.Load();
    if (kWithRow) part.AskForWeights();
    exchange.Send(part.Gather());
    if (!kWithRow) part.AskForWeights();
    part.Store(MergeParts<kCentre>(exchange.Receive(), Exchange::values(), p.share));
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
