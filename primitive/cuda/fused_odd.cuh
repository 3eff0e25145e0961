// SPDX-License-Identifier: Apache-2.0
//
// A fused row (fused_row.cuh) whose ends lie inside packs of 16 bytes, of a block or a cluster
// (narrow ones: fused_lanes.cuh), where every matrix with a row for each begins at one: their packs
// lie alike, so that all are read as they are written. What serves all rows, a bias or a norm's
// weights, lies otherwise in each of them: each warp copies its part to shared memory as it is,
// while the inputs are on their way, and moves it into place there. The first and the last whole
// pack count among the columns outside packs, at most one a lane of one warp: nothing outside a row
// is read then.
//
// Elements and Store have in place of what fused_wide.cuh asks for
//   kSharedBytes<N, Rows>                 0: no operand serves all rows
//   void CopyCommons<N>(Rows)             Rows: SharedRows
//   void PlaceCommons<N>(Rows)
//   Commons<N> ReadCommons<N>(Rows, k)    of the thread's pack k
// Operands that repeat after some rows are read at any alignment (Access::kInside).
#pragma once

#include "primitive/cuda/fused_odd_operands.cuh"
#include "primitive/cuda/fused_whole.cuh"

namespace oneflow_lite {
namespace cuda {

// The inputs of a row as they lie in memory, or of several rows that lie alike, of which one's
// places are those of all.
template <class A, class Places_, int kRows_ = 1>
struct OddRow {
  using Places = Places_;
  using Rows = SharedRows<Places>;
  using C = typename A::C;
  using Elements = typename A::Elements;
  using Store = decltype(A::Base::store);
  static constexpr int kPacks = Places::kPacks, N = A::kPack, kRows = kRows_;
  static constexpr int kLoadBytes = Elements::template kSharedBytes<N, Rows>;
  // Of shared memory.
  static constexpr int kBytes = kLoadBytes + Store::template kSharedBytes<N, Rows>;
  const A& a;
  char* shared;
  Places places;
  typename Elements::Constants constants[kRows];
  typename Elements::template Inputs<N> inputs[kRows][kPacks];
  typename Elements::template Inputs<1> input[kRows] = {};  // of a column outside packs ...
  typename Elements::template Commons<1> common = {};
  Pack<C, 1> extra[kRows];  // ... and its value

  __device__ __forceinline__ OddRow(const A& a, const Places& places, char* shared)
      : a(a), shared(shared), places(places) {}

  __device__ __forceinline__ void Load(const int64_t (&rows)[kRows]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const Elements here = a.elements.At(rows[r]);
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (!places.Has(k)) continue;
        inputs[r][k] = here.template LoadInputs<Access::kAligned, N>(rows[r], places.Column(k));
      }
      if (places.extra < 0) continue;
      input[r] = here.template LoadInputs<Access::kAny, 1>(rows[r], places.extra);
      if (r == 0) common = here.template LoadCommons<Access::kAny, 1>(rows[r], places.extra);
    }
    a.elements.template CopyCommons<N>(Rows{places, shared});
    a.base.store.template CopyCommons<N>(Rows{places, shared + kLoadBytes});
    CommitCopies();
#pragma unroll
    for (int r = 0; r < kRows; ++r) constants[r] = a.elements.Begin(rows[r]);
  }
  __device__ __forceinline__ void Await() {
    if constexpr (kBytes > 0) {
      WaitForCopiesOf<0>();
      __syncwarp();
      a.elements.template PlaceCommons<N>(Rows{places, shared});
      a.base.store.template PlaceCommons<N>(Rows{places, shared + kLoadBytes});
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      extra[r] = a.elements.template Apply<1>(input[r], common, constants[r]);
    }
  }
  // Of the elements, at pack k.
  __device__ __forceinline__ auto Commons(int k) const {
    return a.elements.template ReadCommons<N>(Rows{places, shared}, k);
  }
  // The operands of Store at pack k, or at a column outside packs.
  template <int kCount>
  __device__ __forceinline__ auto StoreCommons(const Store& store, int64_t row, int k) const {
    if constexpr (kCount == 1) {
      return store.template LoadCommons<Access::kAny, 1>(row, places.extra);
    } else {
      return store.template ReadCommons<N>(Rows{places, shared + kLoadBytes}, k);
    }
  }
  // f(values) of all packs of one row again, from memory.
  template <class F>
  __device__ __forceinline__ void EachAgain(int r, int64_t row, F&& f) const {
    const auto here = a.elements.At(row);
#pragma unroll 1
    for (int k = 0; k < kPacks; ++k) {
      if (!places.Has(k)) continue;
      const int col = places.Column(k);
      const auto again = here.template LoadInputs<Access::kAligned, N>(row, col);
      const auto commons = here.template ReadCommons<N>(Rows{places, shared}, k);
      f(here.template Apply<N>(again, commons, constants[r]));
    }
    if (places.extra >= 0) f(extra[r]);
  }

 protected:
  __device__ __forceinline__ Pack<C, N> Value(int k) const {
    const auto commons = Commons(k);
    return a.elements.template Apply<N>(inputs[0][k], commons, constants[0]);
  }
};

// Held as HeldValues are (fused_whole.cuh); a column outside packs is a pack of one, behind them.
template <class A, class Places>
struct OddValues : OddRow<A, Places> {
  using Row = OddRow<A, Places>;
  using Row::kPacks;
  static constexpr bool kHolds = true;
  Pack<typename A::C, Row::N> values[kPacks];

  using Row::Row;
  __device__ __forceinline__ void Await() {
    Row::Await();
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (this->places.Has(k)) values[k] = this->Value(k);
    }
  }
  template <class F>
  __device__ __forceinline__ void Each(F&& f) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (this->places.Has(k)) f(values[k], k);
    }
    if (this->places.extra >= 0) f(this->extra[0], kPacks);
  }
  template <class F>
  __device__ __forceinline__ void EachInTurn(F&& f) {
    Each(f);
  }
};

// Held as HeldInputs are (fused_wide.cuh).
template <class A, class Places>
struct OddInputs : OddRow<A, Places> {
  using Row = OddRow<A, Places>;
  using Row::kPacks, Row::N;
  static constexpr bool kHolds = false;

  using Row::Row;
  template <class F>
  __device__ __forceinline__ void Each(F&& f) {
    EachOf<false>(f);
  }
  template <class F>
  __device__ __forceinline__ void EachInTurn(F&& f) {
    EachOf<true>(f);
  }
  template <class F>
  __device__ __forceinline__ void EachAgain(int64_t row, F&& f) const {
    Row::EachAgain(0, row, f);
  }

 private:
  template <bool kInTurn, class F>
  __device__ __forceinline__ void EachOf(F&& f) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (kInTurn) __syncwarp();
      if (!this->places.Has(k)) continue;
      auto v = this->Value(k);
      f(v, k);
    }
    if (this->places.extra >= 0) f(this->extra[0], kPacks);
  }
};

// merge(of) lets `of` learn what the whole row comes to.
template <class A, class Held, class F>
__device__ __forceinline__ void FinishOddRow(const A& a, int64_t row, Held& held, F&& merge) {
  held.places.Forget();
  held.Await();
  HeldRow<typename A::Base> of(a.base);
  const auto constants = a.base.store.Begin(row);
  merge(of);
  held.places.Forget();
  const auto store = a.base.store.At(row);
  held.Each([&](auto& v, int k) {
    constexpr int kCount = static_cast<int>(sizeof(v.v) / sizeof(typename A::C));
    constexpr Access kAccess = kCount == 1 ? Access::kAny : Access::kAligned;
    const int col = kCount == 1 ? held.places.extra : held.places.Column(k);
    store.template Store<kCount>(row, col, of.Result(v),
                                 store.template LoadInputs<kAccess, kCount>(row, col),
                                 held.template StoreCommons<kCount>(store, row, k), constants);
  });
}

// A row per block of kThreads threads, or per cluster of kBlocks of them; a multiprocessor has room
// for kResident blocks. kAgain: the expression is cheap enough to be computed at two visits.
template <bool kAgain, int kPacks, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedOddBlockKernel(const __grid_constant__ A a, int64_t, int64_t cols) {
  using Places = OddPlaces<A::kPack, kPacks, kBlocks == 1>;
  using Part = typename HeldRow<typename A::Base>::Part;
  using Exchange = WarpExchange<Part>;
  constexpr int kAlignment = kFusedSharedAlignment;
  extern __shared__ __align__(kAlignment) char odd_shared[];
  const int64_t row = internal::ClusterIndex();
  constexpr int kParts = kBlocks * kThreads / kWarp;
  constexpr int kExchanged = kPackBytes + static_cast<int>(sizeof(Part)) * kParts;
  using Held = std::conditional_t<kAgain, OddInputs<A, Places>, OddValues<A, Places>>;
  const int warp = threadIdx.x / kWarp;
  char* operands = odd_shared + (kExchanged + kAlignment - 1) / kAlignment * kAlignment;
  Held held(a,
            {a.base.store.Head(row), static_cast<int>(cols),
             Exchange::block() * (kThreads / kWarp) + warp, kParts,
             static_cast<int>(threadIdx.x) % kWarp},
            operands + warp * Held::kBytes);
  held.Load({row});
  Exchange exchange(odd_shared);  // behind the loads, which are to be under way first
  FinishOddRow(a, row, held, [&](auto& of) {
    exchange.Send(of.template Gather<kWarp, false>(held, row));
    of.template Begin<false>(of.Merge(exchange.Receive(), kParts));
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
