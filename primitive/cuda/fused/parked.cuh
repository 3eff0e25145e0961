// SPDX-License-Identifier: Apache-2.0
//
// Fused rows of whole packs (fused/whole.cuh) whose values are computed once, by kernels compiled
// for their threads: single blocks, and clusters where loads are costly or read several matrices.
// There 16-bit elements are twice as large as values. Registers alone hold too few of them to keep
// the memory busy, so some wait in shared memory, which has nothing else to hold here.
#pragma once

#include "primitive/cuda/fused/whole.cuh"

namespace oneflow_lite {
namespace cuda {

// Packs of values in a thread's own places of shared memory, which no other thread reads.
template <class C, int N, int kThreads>
struct ParkedPacks {
  static constexpr int kBytes = N * static_cast<int>(sizeof(C)), kUnits = kBytes / kPackBytes;
  uint4* at;

  __device__ __forceinline__ explicit ParkedPacks(char* shared)
      : at(reinterpret_cast<uint4*>(shared) + threadIdx.x) {}
  __device__ __forceinline__ Pack<C, N> Get(int k) const {
    uint4 units[kUnits];
#pragma unroll
    for (int i = 0; i < kUnits; ++i) units[i] = at[(k * kUnits + i) * kThreads];
    Pack<C, N> v;
    memcpy(&v, units, sizeof(v));
    return v;
  }
  __device__ __forceinline__ void Set(int k, const Pack<C, N>& v) const {
    uint4 units[kUnits];
    memcpy(units, &v, sizeof(v));
#pragma unroll
    for (int i = 0; i < kUnits; ++i) at[(k * kUnits + i) * kThreads] = units[i];
  }
};

// Held as HeldValues are, by steps that are known; the first kParked packs in shared memory.
template <class A, int kPacks_, int kParked, bool kFull, int kThreads>
struct ParkedValues {
  static constexpr int N = A::kPack, kPacks = kPacks_, kAhead = kPacks < 2 ? kPacks : 2;
  static constexpr bool kHolds = true;
  using C = typename A::C;
  PacksOfThread<N, kPacks, kFull> places;
  ParkedPacks<C, N, kThreads> parked;
  Pack<C, N> values[kPacks - kParked];
  static_assert(kParked == 0 || N * sizeof(C) == kFusedParkedBytes, "the launcher's bytes");

  __device__ __forceinline__ void Load(const typename A::Elements& elements, int64_t row) {
    EachLoaded<kAhead>(elements, row, places, [&](const auto& v, int k) { Keep(v, k); });
  }
  template <class F>
  __device__ __forceinline__ void Each(F&& f) {
    EachOf<true>(f);
  }
  template <class F>
  __device__ __forceinline__ void EachInTurn(F&& f) {
    EachOf<true>(f);
  }
  template <class F>
  __device__ __forceinline__ void EachLast(F&& f) {
    EachOf<false>(f);
  }
  template <class Store>
  __device__ __forceinline__ auto StoreCommons(const Store& store, int k) const {
    return store.template LoadCommons<Access::kAligned, N>(0, places.Column(k));
  }

 private:
  __device__ __forceinline__ void Keep(const Pack<C, N>& v, int k) {
    if (k < kParked) {
      parked.Set(k, v);
    } else {
      values[k - kParked] = v;
    }
  }
  template <bool kMayChange, class F>
  __device__ __forceinline__ void EachOf(F&& f) {
    // The compiler keeps nothing in registers that is in shared memory.
    if constexpr (kParked > 0) asm volatile("" : : : "memory");
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      __syncwarp();  // pack by pack: values of many at once would be spilled
      if (!places.Has(k)) continue;
      Pack<C, N> v = k < kParked ? parked.Get(k) : values[k - kParked];
      f(v, k);
      if (kMayChange) Keep(v, k);
    }
  }
};

// A row per block of kThreads threads, or per cluster of kBlocks of them; a multiprocessor has room
// for kResident blocks.
template <int kPacks, int kParked, bool kFull, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedShareKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  using Part = typename HeldRow<typename A::Base>::Part;
  using Exchange = WarpExchange<Part>;
  constexpr int kAlignment = kFusedSharedAlignment, kParts = kBlocks * kThreads / kWarp;
  constexpr int kExchanged = kPackBytes + static_cast<int>(sizeof(Part)) * kParts;
  extern __shared__ __align__(kAlignment) char share_shared[];
  ParkedValues<A, kPacks, kParked, kFull, kThreads> held{
      {static_cast<int>(cols / A::kPack), kThreads * kBlocks,
       Exchange::block() * kThreads + static_cast<int>(threadIdx.x)},
      ParkedPacks<typename A::C, A::kPack, kThreads>(share_shared + (kExchanged + kAlignment - 1) /
                                                                        kAlignment * kAlignment),
      {}};
  const int64_t row = internal::ClusterIndex();
  RunHeldRow(a, row, rows, held, [&](auto& of) {
    Exchange exchange(share_shared);
    exchange.Send(of.template Gather<kWarp, false>(held, row));
    of.template Begin<false>(of.Merge(exchange.Receive(), kParts));
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
