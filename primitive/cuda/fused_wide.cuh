// SPDX-License-Identifier: Apache-2.0
//
// Fused rows of whole packs (fused_whole.cuh) that are too wide for values in registers, of an
// expression that is cheap enough to be computed at two visits. The input stays in registers as it
// lies in memory. What serves all rows, a bias or a norm's weights, is copied to shared memory
// meanwhile: read where it is used it would be waited for pack by pack, twice.
#pragma once

#include "primitive/cuda/async_copy.cuh"
#include "primitive/cuda/fused_whole.cuh"

namespace oneflow_lite {
namespace cuda {

// Where a thread finds the packs of one operand after the other in shared memory, each at `slot`
// of `slots`.
struct OperandSlots {
  char* at;
  int slot, slots;

  template <int N, class T>
  static constexpr int kBytes =
      (N * static_cast<int>(sizeof(T)) + kPackBytes - 1) / kPackBytes* kPackBytes;

  // N elements from p on, aligned as LoadOperand<kAligned> wants it: on their way until
  // WaitForCopiesOf<0>.
  template <int N, class T>
  __device__ __forceinline__ void Copy(const T* p) {
    char* to = Next<kBytes<N, T>>();
    if constexpr (N * sizeof(T) % kPackBytes == 0) {
#pragma unroll
      for (int i = 0; i < kBytes<N, T>; i += kPackBytes) {
        CopyAsync(to + i, reinterpret_cast<const char*>(p) + i, kPackBytes);
      }
    } else {
      const auto pack = LoadOperand<Access::kAligned, N>(p);
      memcpy(to, &pack, sizeof(pack));
    }
  }
  // By the thread that copied it.
  template <int N, class T>
  __device__ __forceinline__ StowedPack<T, N> Read() {
    uint4 words[kBytes<N, T> / kPackBytes];
    memcpy(words, __builtin_assume_aligned(Next<kBytes<N, T>>(), kPackBytes), sizeof(words));
    StowedPack<T, N> pack;
    memcpy(&pack.held, words, N * sizeof(T));
    return pack;
  }

 private:
  template <int kSize>
  __device__ __forceinline__ char* Next() {
    char* here = at + slot * kSize;
    at += slots * kSize;
    return here;
  }
};

// The packs of a thread of a block that has those before `end`: `rank` and every kThreads-th from
// there on. Steps that are known leave one address for all of them. kFull: kPacks of them.
template <int N, int kPacks, bool kFull, int kThreads>
struct PacksOfShare {
  int end, rank;

  // The policy leaves every thread one.
  __device__ __forceinline__ bool Has(int k) const {
    return kFull || k == 0 || rank + k * kThreads < end;
  }
  __device__ __forceinline__ int Column(int k) const { return (rank + k * kThreads) * N; }
  __device__ __forceinline__ void Forget() { asm volatile("" : "+r"(rank)); }

  // Shares begin at multiples of 128 bytes, or copies of operands would read twice as many.
  __device__ __forceinline__ static PacksOfShare Of(int packs, int block, int blocks) {
    constexpr int kLine = FusedPolicy::kSharedAlignment / kPackBytes;
    const int share = (packs + blocks * kLine - 1) / (blocks * kLine) * kLine;
    const int begin = block * share, end = begin + share < packs ? begin + share : packs;
    return {end, begin + static_cast<int>(threadIdx.x)};
  }
};

// Inputs that stay as they lie in memory, of which the values are computed at each visit. `first`
// is where a block's operands that serve all rows begin in shared memory, those of Elements before
// those of Store.
template <class A, int kPacks, bool kFull, int kThreads>
struct HeldInputs {
  static constexpr bool kHolds = false;
  static constexpr int N = A::kPack;
  using Elements = typename A::Elements;
  PacksOfShare<N, kPacks, kFull, kThreads> places;
  const A& a;
  char* first;
  typename Elements::Constants constants;
  typename Elements::template Inputs<N> inputs[kPacks];

  __device__ __forceinline__ OperandSlots Slots(int k, int bytes_before = 0) const {
    constexpr int kSlots = kPacks * kThreads;
    return {first + kSlots * bytes_before, k * kThreads + static_cast<int>(threadIdx.x), kSlots};
  }
  static constexpr int kElementBytes = Elements::template kCommonBytes<N>;

  __device__ __forceinline__ void Load(const Elements& at_row, int64_t row) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!places.Has(k)) continue;
      inputs[k] = at_row.template LoadInputs<Access::kAligned, N>(row, places.Column(k));
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!places.Has(k)) continue;
      a.elements.template CopyCommons<N>(places.Column(k), Slots(k));
      a.base.store.template CopyCommons<N>(places.Column(k), Slots(k, kElementBytes));
    }
    CommitCopies();
    constants = a.elements.Begin(row);
  }
  __device__ __forceinline__ auto Value(int k) const {
    return a.elements.template Apply<N>(inputs[k], a.elements.template ReadCommons<N>(Slots(k)),
                                        constants);
  }
  template <class F>
  __device__ __forceinline__ void Each(F&& f) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!places.Has(k)) continue;
      auto v = Value(k);
      f(v, k);
    }
  }
  // The same from memory, in little code: where what was found so far does not serve.
  template <class F>
  __device__ __forceinline__ void EachAgain(int64_t row, F&& f) const {
    const Elements here = a.elements.At(row);
#pragma unroll 1
    for (int k = 0; k < kPacks; ++k) {
      if (!places.Has(k)) continue;
      const auto again = here.template LoadInputs<Access::kAligned, N>(row, places.Column(k));
      f(a.elements.template Apply<N>(again, a.elements.template ReadCommons<N>(Slots(k)),
                                     constants));
    }
  }
  template <class Store>
  __device__ __forceinline__ auto StoreCommons(const Store& store, int k) const {
    return store.template ReadCommons<N>(Slots(k, kElementBytes));
  }
};

// A row per block of kThreads threads, or per cluster of blocks.
template <int kPacks, bool kFull, int kThreads, class A>
__global__ void __launch_bounds__(kThreads, FusedPolicy::kWideThreads / kThreads)
    FusedWideKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  using Part = typename HeldRow<typename A::Base>::Part;
  using Exchange = WarpExchange<Part>;
  using Held = HeldInputs<A, kPacks, kFull, kThreads>;
  constexpr int kAlignment = FusedPolicy::kSharedAlignment;
  extern __shared__ __align__(kAlignment) char wide_shared[];
  const int exchanged = kPackBytes + static_cast<int>(sizeof(Part)) * Exchange::values();
  const int packs = static_cast<int>(cols / A::kPack);
  Held held{decltype(Held::places)::Of(packs, Exchange::block(), Exchange::blocks()), a,
            wide_shared + (exchanged + kAlignment - 1) / kAlignment * kAlignment};
  const int64_t row = internal::ClusterIndex();
  RunHeldRow(a, row, held, [&](auto& of) {
    Exchange exchange(wide_shared);  // behind the loads, which are to be under way first
    WaitForCopiesOf<0>();
    const auto* parts = exchange.Give(of.template Gather<kWarp>(held, row));
    of.Begin(of.Merge(parts, Exchange::values()));
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
