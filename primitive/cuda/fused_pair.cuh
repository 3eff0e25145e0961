// SPDX-License-Identifier: Apache-2.0
//
// Two fused rows at once (fused_wide.cuh), for which what serves all rows is read once: where that
// is two operands or three, a row of its own for each of them is more than the L2 gives.
#pragma once

#include "primitive/cuda/fused_wide.cuh"

namespace oneflow_lite {
namespace cuda {

// One of the rows: its inputs as they lie in memory, of which the values are computed at each
// visit, beside operands in shared memory that the other row reads too.
template <class A, int kPacks_, bool kFull, int kThreads, int kBlocks>
struct HeldOfPair {
  static constexpr int kPacks = kPacks_;
  static constexpr bool kHolds = false;
  static constexpr int N = A::kPack;
  using Elements = typename A::Elements;
  PacksOfShare<N, kPacks, kFull, kThreads, kBlocks> places;
  const A& a;
  char* operands;
  typename Elements::Constants constants;
  typename Elements::template Inputs<N> inputs[kPacks];

  // A pack's place among those of one operand, from `at` on.
  __device__ __forceinline__ static OperandSlots Slots(char* at, int k) {
    return {at, k * kThreads + static_cast<int>(threadIdx.x), kPacks * kThreads};
  }
  __device__ __forceinline__ void Load(int64_t row) {
    const Elements at_row = a.elements.At(row);
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!places.Has(k)) continue;
      inputs[k] = at_row.template LoadInputs<Access::kAligned, N>(row, places.Column(k));
    }
    constants = a.elements.Begin(row);
  }
  __device__ __forceinline__ auto Value(int k) const {
    return a.elements.template Apply<N>(
        inputs[k], a.elements.template ReadCommons<N>(Slots(operands, k)), constants);
  }
  // Pack by pack, or operands of many would be read early, and spilled.
  template <class F>
  __device__ __forceinline__ void EachInTurn(F&& f) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      __syncwarp();
      if (!places.Has(k)) continue;
      auto v = Value(k);
      f(v, k);
    }
  }
  template <class F>
  __device__ __forceinline__ void Each(F&& f) {
    EachInTurn(f);
  }
  template <class F>
  __device__ __forceinline__ void EachAgain(int64_t row, F&& f) const {
    const Elements here = a.elements.At(row);
#pragma unroll 1
    for (int k = 0; k < kPacks; ++k) {
      if (!places.Has(k)) continue;
      const int col = places.Column(k);
      const auto again = here.template LoadInputs<Access::kAligned, N>(row, col);
      const auto common = a.elements.template LoadCommons<Access::kAligned, N>(row, col);
      f(a.elements.template Apply<N>(again, common, constants));
    }
  }
};

// Two rows per block of kThreads threads, or per cluster of kBlocks of them. Where their number is
// odd, the last one is done twice.
template <int kPacks, bool kFull, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedPairKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  using Part = typename HeldRow<typename A::Base>::Part;
  using Exchange = WarpExchange<Part, 2>;
  using Held = HeldOfPair<A, kPacks, kFull, kThreads, kBlocks>;
  constexpr int N = A::kPack, kAlignment = FusedPolicy::kSharedAlignment;
  constexpr int kParts = kBlocks * kThreads / kWarp;
  constexpr int kExchanged = kPackBytes + 2 * static_cast<int>(sizeof(Part)) * kParts;
  extern __shared__ __align__(kAlignment) char pair_shared[];
  char* operands = pair_shared + (kExchanged + kAlignment - 1) / kAlignment * kAlignment;
  char* of_store = operands + kPacks * kThreads * A::Elements::template kCommonBytes<N>;
  const auto& store = a.base.store;
  const int packs = static_cast<int>(cols / N);
  const int rank = Exchange::block() * kThreads + static_cast<int>(threadIdx.x);
  const int64_t row = 2 * internal::ClusterIndex(), next = row + 1 < rows ? row + 1 : row;

  Held first{{packs, rank}, a, operands}, second{{packs, rank}, a, operands};
  first.Load(row);
  second.Load(next);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (!first.places.Has(k)) continue;
    a.elements.template CopyCommons<N>(first.places.Column(k), Held::Slots(operands, k));
  }
  CommitCopies();
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (!first.places.Has(k)) continue;
    store.template CopyCommons<N>(first.places.Column(k), Held::Slots(of_store, k));
  }
  CommitCopies();

  HeldRow<typename A::Base> of_first(a.base), of_second(a.base);
  Exchange exchange(pair_shared);
  WaitForCopiesOf<1>();
  const Part mine = of_first.template Gather<kWarp, false>(first, row);
  exchange.Send(mine, of_second.template Gather<kWarp, false>(second, next));
  first.places.Forget();
  const Part* parts = exchange.Receive();
  of_first.template Begin<false>(of_first.Merge(parts, kParts));
  of_second.template Begin<false>(of_second.Merge(parts + kParts, kParts));

  const auto constants = store.Begin(row), next_constants = store.Begin(next);
  const auto at_row = store.At(row), at_next = store.At(next);
  WaitForCopiesOf<0>();
  typename decltype(A::Base::store)::template Commons<N> commons;
#pragma unroll
  for (int i = 0; i < 2 * kPacks; ++i) {  // one Store in the loop: with two, packs are in memory
    const int k = i / 2;
    if (!first.places.Has(k)) continue;
    if (i % 2 == 0) {
      __syncwarp();
      commons = store.template ReadCommons<N>(Held::Slots(of_store, k));
    }
    const auto& to = i % 2 ? at_next : at_row;
    const int64_t at = i % 2 ? next : row;
    const int col = first.places.Column(k);
    const auto v = (i % 2 ? second : first).Value(k);
    to.template Store<N>(at, col, (i % 2 ? of_second : of_first).Result(v),
                         to.template LoadInputs<Access::kAligned, N>(at, col), commons,
                         i % 2 ? next_constants : constants);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
