// SPDX-License-Identifier: Apache-2.0
//
// Two fused rows at once, held as inputs (fused/wide.cuh), for which what serves all rows is read,
// moved into place and converted once: where that is two operands or three, a row of its own for
// each of them is more than the L2 gives. Odd rows r and r + N lie alike, with N elements in 16
// bytes.
#pragma once

#include "primitive/cuda/fused/wide.cuh"

namespace oneflow_lite::cuda {

// The two rows, of kParts warps; `shared` is for what these exchange.
template <int kParts, class A, class Pair>
OFL_DEVICE void RunPair(const A& a, const int64_t (&rows)[2], Pair& pair, char* shared) {
  using Of = HeldRow<typename A::Base>;
  using Part = typename Of::Part;
  using Store = decltype(A::Base::store);
  pair.Load(a, rows);

  Of of[] = {Of(a.base), Of(a.base)};
  WarpExchange<Part, 2> exchange(shared);
  WaitForCopiesOf<1>();
  pair.template EachOfRows<false>(
      [&](const auto& v, int k, int r) { of[r].template Visit<kWarp>(v, k); });
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
  pair.template EachOfRows<true>([&](const auto& v, int k, int r) {
    constexpr int kCount = static_cast<int>(sizeof(v.v) / sizeof(typename A::C));
    const int col = kCount == A::kPack ? pair.places.Column(k) : pair.places.extra;
    const Store at_row = store.At(rows[r]);
    if constexpr (kCount == A::kPack) {
      if (r == 0) commons = pair.StoreCommons(store, k);
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

// A cluster's two rows; of odd ones every N-th lies alike.
template <class Places, class A>
OFL_DEVICE void RunPairs(const A& a, int64_t rows, int64_t cols) {
  using Blocks = FusedBlocks<A, Places::kThreads, Places::kBlocks, 2>;
  int64_t both[2];
  RowsOfPair(internal::ClusterIndex(), Places::kOdd ? A::kPack : 1, rows, both);
  const int head = Places::kOdd ? a.base.store.Head(both[0]) : 0;
  const A& beside = BesideRow<Places::kOdd>(a, head);
  HeldInputs<A, Places, 0, 2> pair{Places::Of(head, cols, Blocks::rank()), beside,
                                   FusedShared() + Blocks::kBytes};
  RunPair<Blocks::kParts>(beside, both, pair, FusedShared());
}

// Two rows per block of kThreads threads, or per cluster of kBlocks of them: whole ones and odd.
template <int kPacks, bool kFull, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedPairKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  RunPairs<PacksOfThread<A::kPack, kPacks, kFull, kThreads, kBlocks>>(a, rows, cols);
}
template <int kPacks, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedOddPairKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  RunPairs<OddPacksOfShare<A::kPack, kPacks, kThreads, kBlocks>>(a, rows, cols);
}

}  // namespace oneflow_lite::cuda
