// SPDX-License-Identifier: Apache-2.0
//
// Two fused rows at once, whole or odd (fused/wide.cuh), for which what serves all
// rows is read, moved into place and converted once: where that is two operands or three, a row of
// its own for each of them is more than the L2 gives. Odd rows r and r + N lie alike, with N
// elements in 16 bytes.
#pragma once

#include "primitive/cuda/fused/wide.cuh"

namespace oneflow_lite::cuda {

// A thread's packs of both rows: their inputs as they lie in memory, of which the values are
// computed at each visit, beside operands in shared memory.
template <class A, class Places_>
struct HeldPair {
  using Places = Places_;
  static constexpr int N = A::kPack, kPacks = Places::kPacks, kThreads = Places::kThreads;
  using Elements = typename A::Elements;
  using Store = decltype(A::Base::store);
  static constexpr int kSlots = kPacks * kThreads;
  static_assert(kPacks > 1, "every lane has the first");
  Places places;
  const A& a;
  char* operands;  // of the elements, and behind them those of Store
  typename Elements::Constants constants[2];
  typename Elements::template Inputs<N> inputs[2][kPacks];
  typename Elements::template Inputs<1> input[2];  // of a column outside packs
  typename Elements::template Commons<1> common;

  // A pack's place among those of one operand after the other.
  OFL_DEVICE OperandSlots Slots(int k) const {
    return {operands, k * kThreads + static_cast<int>(threadIdx.x), kSlots};
  }
  OFL_DEVICE OperandSlots StoreSlots(int k) const {
    OperandSlots slots = Slots(k);
    slots.at += kSlots * Elements::template kCommonBytes<N>;
    return slots;
  }
  // The operands in two batches: what the elements read, and what Store does.
  OFL_DEVICE void Load(const int64_t (&rows)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const Elements at_row = a.elements.At(rows[r]);
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (!places.Has(k)) continue;
        inputs[r][k] = at_row.template LoadInputs<Access::kAligned, N>(rows[r], places.Column(k));
      }
      if constexpr (Places::kOdd) {
        if (places.extra >= 0) {
          input[r] = at_row.template LoadInputs<Access::kAny, 1>(rows[r], places.extra);
        }
      }
      constants[r] = a.elements.Begin(rows[r]);
    }
    if constexpr (Places::kOdd) {
      WaitForPreviousKernel();
      if (places.extra >= 0) {
        common = a.elements.template LoadCommons<Access::kAny, 1>(0, places.extra);
      }
    }
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
  OFL_DEVICE void Await() const { WaitForCopiesOf<1>(); }
  OFL_DEVICE auto Commons(int k) const { return a.elements.template ReadCommons<N>(Slots(k)); }
  OFL_DEVICE auto StoreCommons(int k) const {
    return a.base.store.template ReadCommons<N>(StoreSlots(k));
  }
  template <class F>
  OFL_DEVICE void EachAgain(int r, int64_t row, F&& f) const {
    EachPackFromMemory(a.elements, row, constants[r], places, kPacks, f);
  }
};

// f(pack, k, row) for both rows' packs k, and so on: in turn, or operands of many would be read
// early, and spilled; all lanes meet, those without a pack too. In one loop: with two calls of f in
// it, packs are in memory. A column outside packs comes as a pack of one.
template <class Pair, class F>
OFL_DEVICE void EachOfPair(const Pair& pair, F&& f) {
  constexpr int N = Pair::N, kPacks = Pair::kPacks;
  typename Pair::Elements::template Commons<N> commons;
#pragma unroll
  for (int i = 0; i < 2 * kPacks; ++i) {
    const int k = i / 2;
    if (i % 2 == 0) __syncwarp();
    if (!pair.places.Has(k)) continue;
    if (i % 2 == 0) commons = pair.Commons(k);
    f(pair.a.elements.template Apply<N>(pair.inputs[i % 2][k], commons, pair.constants[i % 2]), k,
      i % 2);
  }
  if constexpr (Pair::Places::kOdd) {
    if (pair.places.extra < 0) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      f(pair.a.elements.template Apply<1>(pair.input[r], pair.common, pair.constants[r]), kPacks,
        r);
    }
  }
}

// The two rows, of kParts warps; `shared` is for what these exchange.
template <int kParts, class A, class Pair>
OFL_DEVICE void RunPair(const A& a, const int64_t (&rows)[2], Pair& pair, char* shared) {
  using Of = HeldRow<typename A::Base>;
  using Part = typename Of::Part;
  using Store = decltype(A::Base::store);
  pair.Load(rows);

  Of of[] = {Of(a.base), Of(a.base)};
  WarpExchange<Part, 2> exchange(shared);
  pair.Await();
  EachOfPair(pair, [&](const auto& v, int k, int r) { of[r].template Visit<kWarp>(v, k); });
  Part mine[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    mine[r] = of[r].template Visited<kWarp>([&](auto&& f) { pair.EachAgain(r, rows[r], f); });
  }
  exchange.Send(mine[0], mine[1]);
  pair.places.Forget();
  const Part* parts = exchange.Receive();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    of[r].template Begin<false>(of[r].Merge(parts + r * kParts, kParts));
  }

  const Store& store = a.base.store;
  typename Store::Constants constants[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) constants[r] = store.Begin(rows[r]);
  WaitForCopiesOf<0>();
  typename Store::template Commons<A::kPack> commons;
  EachOfPair(pair, [&](const auto& v, int k, int r) {
    constexpr int kCount = static_cast<int>(sizeof(v.v) / sizeof(typename A::C));
    const int col = kCount == A::kPack ? pair.places.Column(k) : pair.places.extra;
    const Store at_row = store.At(rows[r]);
    if constexpr (kCount == A::kPack) {
      if (r == 0) commons = pair.StoreCommons(k);
      at_row.template Store<kCount>(
          rows[r], col, of[r].Result(v),
          at_row.template LoadInputs<Access::kAligned, kCount>(rows[r], col), commons,
          constants[r]);
    } else {
      at_row.template Store<kCount>(rows[r], col, of[r].Result(v),
                                    at_row.template LoadInputs<Access::kAny, kCount>(rows[r], col),
                                    at_row.template LoadCommons<Access::kAny, kCount>(rows[r], col),
                                    constants[r]);
    }
  });
}

// Of every 2 * step rows r and r + step, or where there is none r twice.
OFL_DEVICE void RowsOfPair(int64_t pair, int step, int64_t rows, int64_t (&row)[2]) {
  const int64_t first = pair / step * step * 2 + pair % step;
#pragma unroll
  for (int r = 0; r < 2; ++r) row[r] = first + r * step < rows ? first + r * step : first;
}

// Two rows per block of kThreads threads, or per cluster of kBlocks of them.
template <int kPacks, bool kFull, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedPairKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  using Blocks = FusedBlocks<A, kThreads, kBlocks, 2>;
  extern __shared__ __align__(kFusedSharedAlignment) char pair_shared[];
  const int packs = static_cast<int>(cols / A::kPack), rank = Blocks::rank();
  int64_t both[2];
  RowsOfPair(internal::ClusterIndex(), 1, rows, both);
  HeldPair<A, PacksOfThread<A::kPack, kPacks, kFull, kThreads, kBlocks>> pair{
      {{}, packs, rank}, a, pair_shared + Blocks::kBytes};
  RunPair<Blocks::kParts>(a, both, pair, pair_shared);
}

// The same of odd rows.
template <int kPacks, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedOddPairKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  using Blocks = FusedBlocks<A, kThreads, kBlocks, 2>;
  extern __shared__ __align__(kFusedSharedAlignment) char odd_pair_shared[];
  int64_t both[2];
  RowsOfPair(internal::ClusterIndex(), A::kPack, rows, both);
  const int head = a.base.store.Head(both[0]);
  const int rank = Blocks::rank();
  const A beside = a.Beside(head);
  HeldPair<A, OddPacksOfShare<A::kPack, kPacks, kThreads, kBlocks>> pair{
      {head, static_cast<int>(cols), rank}, beside, odd_pair_shared + Blocks::kBytes};
  RunPair<Blocks::kParts>(beside, both, pair, odd_pair_shared);
}

}  // namespace oneflow_lite::cuda
