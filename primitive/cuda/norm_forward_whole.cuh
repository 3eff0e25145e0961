// SPDX-License-Identifier: Apache-2.0
//
// The norms' forward where every row of every tensor is whole packs of 16 bytes, held in registers:
// of a group of lanes, of a block, or of the blocks of a cluster. At the speed of memory a
// multiprocessor has some 28 instructions for an element of half precision, reductions and all.
//
// layer_norm: a warp centres its own columns about their mean; one exchange merges what the warps
// found (Chan, Golub and LeVeque; see norm_forward.cuh).
#pragma once

#include "primitive/cuda/norm_math.cuh"
#include "primitive/cuda/norm_policy.h"
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

// kFull: every thread has all its packs. kEarly: weight and bias are loaded with the row, else when
// they are needed, which takes fewer registers.
template <class T, bool kCentre, bool kResidual, int kTeam, int kPacks, bool kEarly, bool kFull>
class NormWholeRow {
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<T>;
  using Values = Pack<C, N>;
  using Stowed = StowedPack<T, N>;
  using Part = NormPart<C>;
  static constexpr int kLanes = kIsLanes<kTeam> ? kTeam : kWarp;

 public:
  // Whether the values stay in the compute type, layer_norm's as distances from the warp's mean.
  static constexpr bool kHold =
      N * kPacks * static_cast<int>(sizeof(C)) <= (kIsLanes<kTeam> || kResidual ? 64 : 128);

  // size: threads that hold the row; rank: which of them this one is.
  __device__ __forceinline__ NormWholeRow(const NormWhole<T>& p, int64_t row, int packs, int rank,
                                          int size)
      : p_(p), row_(row), packs_(packs), rank_(rank), size_(size), col_(rank * N) {}

  __device__ __forceinline__ void Load() {
    LoadPacks(p_.a.x + row_ * p_.a.x_stride, x_);
    Stowed residual[kResidual ? kPacks : 1];
    if constexpr (kResidual) LoadPacks(p_.a.residual + row_ * p_.a.cols, residual);
    if constexpr (kEarly) {
      // Something that is there, so that no branch comes between the loads.
      const auto* something = p_.a.x + row_ * p_.a.x_stride;
      LoadPacks(p_.plain ? static_cast<const T*>(p_.a.weight) : something, weight_);
      if constexpr (kCentre) {
        LoadPacks(p_.plain ? static_cast<const T*>(p_.a.bias) : something, bias_);
      }
    }
    if constexpr (kResidual) AddResidual(residual);
    if constexpr (kHold) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) held_[k] = ConvertPack<C>(x_[k].Get());
    }
  }

  // What this warp's columns come to, or those of this group of lanes.
  __device__ __forceinline__ Part Gather() {
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
    if (p_.plain) {
      StoreAll<true>();
    } else {
      StoreAll<false>();
    }
  }

 private:
  __device__ __forceinline__ bool Has(int k) const { return kFull || rank_ + k * size_ < packs_; }
  __device__ __forceinline__ int Column(int k) const { return col_ + k * size_ * N; }
  __device__ __forceinline__ Values Value(int k) const {
    if constexpr (kHold) return held_[k];
    return ConvertPack<C>(x_[k].Get());
  }
  template <int kSlots>
  __device__ __forceinline__ void LoadPacks(const T* from, Stowed (&to)[kSlots]) const {
#pragma unroll
    for (int k = 0; k < kSlots; ++k) {
      if (Has(k)) to[k] = Stowed::Of(LoadAlignedPack<N>(from + Column(k)));
    }
  }
  // The sum is what T holds of it.
  template <int kSlots>
  __device__ __forceinline__ void AddResidual(const Stowed (&residual)[kSlots]) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      Values sum = ConvertPack<C>(x_[k].Get());
      const Values other = ConvertPack<C>(residual[k].Get());
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

  // kPlain: see NormWhole.
  template <bool kPlain>
  __device__ __forceinline__ void StoreAll() const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      Values y = Value(k);
#pragma unroll
      for (C& v : y.v) {
        if (kCentre && !kHold) v -= mean_;
        v = kCentre ? v * rstd_ + offset_ : v * rstd_;
      }
      if (kPlain || p_.a.weight) {
        const Values w = WeightOf<kPlain>(p_.a.weight, weight_, k);
#pragma unroll
        for (int i = 0; i < N; ++i) y.v[i] *= w.v[i];
      }
      if ((kPlain && kCentre) || p_.a.bias) {
        const Values b = WeightOf<kPlain>(p_.a.bias, bias_, k);
#pragma unroll
        for (int i = 0; i < N; ++i) y.v[i] += b.v[i];
      }
      StoreAlignedPack<N>(p_.a.y + row_ * p_.a.cols + Column(k), ConvertPack<T>(y));
    }
  }
  template <bool kPlain, int kSlots>
  __device__ __forceinline__ Values WeightOf(const void* from, const Stowed (&early)[kSlots],
                                             int k) const {
    if constexpr (!kPlain) {
      return LoadWeights<C, N, T>(from, p_.a.float_weight, Column(k), 0, N, C(0));
    } else if constexpr (kEarly) {
      return ConvertPack<C>(early[k < kSlots ? k : 0].Get());
    } else {
      return ConvertPack<C>(LoadAlignedPack<N>(static_cast<const T*>(from) + Column(k)));
    }
  }

  const NormWhole<T>& p_;
  const int64_t row_;
  const int packs_, rank_, size_, col_;
  C mean_ = 0, rstd_ = 0, offset_ = 0;  // y = (x - mean) * rstd + offset, before the weight
  Stowed x_[kPacks], weight_[kEarly ? kPacks : 1], bias_[kEarly && kCentre ? kPacks : 1];
  Values held_[kHold ? kPacks : 1];
};

// The row of which `count` warps found `parts`: every warp computes the same.
template <bool kCentre, class C>
__device__ __forceinline__ NormPart<C> MergeParts(const NormPart<C>* parts, int count, C share) {
  SumOf<C, 2> sums;
  const C base = parts[0].mean;
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

// A row per kTeam lanes; the grid covers all rows.
template <class T, bool kCentre, bool kResidual, int kTeam, int kPacks>
__global__ void __launch_bounds__(NormPolicy::kLaneThreads, NormPolicy::LaneBlocks<T>(kPacks))
    NormLanesKernel(const __grid_constant__ NormWhole<T> p) {
  constexpr int kRows = kWarp / kTeam;  // of a warp
  const int64_t first =
      (int64_t{blockIdx.x} * (NormPolicy::kLaneThreads / kWarp) + threadIdx.x / kWarp) * kRows;
  const int64_t row = first + threadIdx.x % kWarp / kTeam;
  const int rank = threadIdx.x % kTeam;
  const auto run = [&](auto full) {
    constexpr bool kFull = decltype(full)::value;
    NormWholeRow<T, kCentre, kResidual, kTeam, kPacks, true, kFull> part(
        p, row, row < p.a.rows ? p.packs : 0, rank, kTeam);
    part.Load();
    part.Store(part.Gather());
  };
  constexpr bool kMayBeFull = NormWholeRow<T, kCentre, kResidual, kTeam, kPacks, true, true>::kHold;
  if (kMayBeFull && p.packs == kTeam * kPacks && first + kRows <= p.a.rows) {
    run(std::bool_constant<kMayBeFull>{});
  } else {
    run(std::false_type{});
  }
}

// A row per block, or per cluster of blocks.
template <class T, bool kCentre, bool kResidual, int kPacks>
__global__ void __launch_bounds__(NormPolicy::kBoundThreads<T>(kResidual ? 0 : kPacks),
                                  NormPolicy::kWholeBlocks<T>)
    NormBlockKernel(const __grid_constant__ NormWhole<T> p) {
  using Exchange = WarpExchange<NormPart<ComputeType<T>>>;
  constexpr bool kEarly = kPacks <= NormPolicy::kEarlyPacks;
  extern __shared__ __align__(16) char shared[];
  Exchange exchange(shared);
  const int size = Exchange::blocks() * static_cast<int>(blockDim.x);
  const int rank = Exchange::block() * static_cast<int>(blockDim.x) + threadIdx.x;
  const auto run = [&](auto full) {
    constexpr bool kFull = decltype(full)::value;
    NormWholeRow<T, kCentre, kResidual, 0, kPacks, kEarly, kFull> part(p, internal::ClusterIndex(),
                                                                       p.packs, rank, size);
    part.Load();
    const auto* parts = exchange.Give(part.Gather());
    part.Store(MergeParts<kCentre>(parts, Exchange::values(), p.share));
  };
  constexpr bool kMayBeFull = NormWholeRow<T, kCentre, kResidual, 0, kPacks, kEarly, true>::kHold;
  if (kMayBeFull && p.packs == size * kPacks) {
    run(std::bool_constant<kMayBeFull>{});
  } else {
    run(std::false_type{});
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
