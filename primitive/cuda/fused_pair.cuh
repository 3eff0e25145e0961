// SPDX-License-Identifier: Apache-2.0
//
// Two fused rows at once (fused_wide.cuh), for which what serves all rows is read and converted
// once: where that is two operands or three, a row of its own for each of them is more than the L2
// gives.
#pragma once

#include "primitive/cuda/fused_wide.cuh"

namespace oneflow_lite {
namespace cuda {

// A thread's packs of both rows: their inputs as they lie in memory, of which the values are
// computed at each visit, beside operands in shared memory.
template <class A, int kPacks, bool kFull, int kThreads, int kBlocks>
struct HeldPair {
  static constexpr int N = A::kPack;
  using Elements = typename A::Elements;
  using Store = decltype(A::Base::store);
  static constexpr int kSlots = kPacks * kThreads;
  PacksOfShare<N, kPacks, kFull, kThreads, kBlocks> places;
  const A& a;
  char* operands;  // of the elements, and behind them those of Store
  typename Elements::Constants constants[2];
  typename Elements::template Inputs<N> inputs[2][kPacks];

  // A pack's place among those of one operand after the other.
  __device__ __forceinline__ OperandSlots Slots(int k) const {
    return {operands, k * kThreads + static_cast<int>(threadIdx.x), kSlots};
  }
  __device__ __forceinline__ OperandSlots StoreSlots(int k) const {
    OperandSlots slots = Slots(k);
    slots.at += kSlots * Elements::template kCommonBytes<N>;
    return slots;
  }
  __device__ __forceinline__ void LoadRow(int which, int64_t row) {
    const Elements at_row = a.elements.At(row);
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!places.Has(k)) continue;
      inputs[which][k] = at_row.template LoadInputs<Access::kAligned, N>(row, places.Column(k));
    }
    constants[which] = a.elements.Begin(row);
  }
  // Two batches: what the elements read, and what Store does.
  __device__ __forceinline__ void CopyOperands() const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (places.Has(k)) a.elements.template CopyCommons<N>(places.Column(k), Slots(k));
    }
    CommitCopies();
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (places.Has(k)) a.base.store.template CopyCommons<N>(places.Column(k), StoreSlots(k));
    }
    CommitCopies();
  }
  // f(pack, k, row) for both rows' packs k, and so on: in turn, or operands of many would be read
  // early, and spilled; all lanes meet, those without a pack too. In one loop: with two calls of f
  // in it, packs are in memory.
  template <class F>
  __device__ __forceinline__ void EachInTurn(F&& f) const {
    typename Elements::template Commons<N> commons;
#pragma unroll
    for (int i = 0; i < 2 * kPacks; ++i) {
      const int k = i / 2;
      if (i % 2 == 0) __syncwarp();
      if (!places.Has(k)) continue;
      if (i % 2 == 0) commons = a.elements.template ReadCommons<N>(Slots(k));
      f(a.elements.template Apply<N>(inputs[i % 2][k], commons, constants[i % 2]), k, i % 2);
    }
  }
  template <class F>
  __device__ __forceinline__ void EachAgain(int which, int64_t row, F&& f) const {
    EachPackFromMemory(a.elements, row, constants[which], places, kPacks, f);
  }
};

// Two rows per block of kThreads threads, or per cluster of kBlocks of them. Where their number is
// odd, the last one is done twice.
template <int kPacks, bool kFull, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedPairKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  using Of = HeldRow<typename A::Base>;
  using Part = typename Of::Part;
  using Exchange = WarpExchange<Part, 2>;
  constexpr int N = A::kPack, kAlignment = kFusedSharedAlignment;
  constexpr int kParts = kBlocks * kThreads / kWarp;
  constexpr int kExchanged = kPackBytes + 2 * static_cast<int>(sizeof(Part)) * kParts;
  extern __shared__ __align__(kAlignment) char pair_shared[];
  const int packs = static_cast<int>(cols / N);
  const int rank = Exchange::block() * kThreads + static_cast<int>(threadIdx.x);
  const int64_t row = 2 * internal::ClusterIndex(), next = row + 1 < rows ? row + 1 : row;

  HeldPair<A, kPacks, kFull, kThreads, kBlocks> held{
      {packs, rank}, a, pair_shared + (kExchanged + kAlignment - 1) / kAlignment * kAlignment};
  held.LoadRow(0, row);
  held.LoadRow(1, next);
  held.CopyOperands();

  Of first(a.base), second(a.base);
  Exchange exchange(pair_shared);
  WaitForCopiesOf<1>();
  held.EachInTurn(
      [&](const auto& v, int k, int r) { (r ? second : first).template Visit<kWarp>(v, k); });
  const Part mine = first.template Visited<kWarp>([&](auto&& f) { held.EachAgain(0, row, f); });
  exchange.Send(mine,
                second.template Visited<kWarp>([&](auto&& f) { held.EachAgain(1, next, f); }));
  held.places.Forget();
  const Part* parts = exchange.Receive();
  first.template Begin<false>(first.Merge(parts, kParts));
  second.template Begin<false>(second.Merge(parts + kParts, kParts));

  const auto& store = a.base.store;
  const auto constants = store.Begin(row), next_constants = store.Begin(next);
  const auto at_row = store.At(row), at_next = store.At(next);
  WaitForCopiesOf<0>();
  typename decltype(A::Base::store)::template Commons<N> commons;
  held.EachInTurn([&](const auto& v, int k, int r) {
    if (r == 0) commons = store.template ReadCommons<N>(held.StoreSlots(k));
    const int col = held.places.Column(k);
    const auto& to = r ? at_next : at_row;
    const int64_t at = r ? next : row;
    to.template Store<N>(at, col, (r ? second : first).Result(v),
                         to.template LoadInputs<Access::kAligned, N>(at, col), commons,
                         r ? next_constants : constants);
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
