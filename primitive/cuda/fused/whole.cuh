// SPDX-License-Identifier: Apache-2.0
//
// A fused row (fused/row.cuh) where every row of every matrix is whole packs of 16 bytes of output,
// held in registers: of a group of lanes (fused/lanes.cuh), of a block, or of the blocks of a
// cluster. All that is read is on its way before anything is computed; the expression is computed
// once, and what comes of it stays in the type computed in, or wide rows are computed again
// (fused/wide.cuh). One exchange per row merges what the warps found.
//
// What a base algorithm makes of values that threads hold is its HeldRow: fused/softmax.cuh and
// fused/norm.cuh. HeldRow<Base> is made of the base, and has
//   Part                      what some columns come to; a multiple of 16 bytes
//   Part Gather<kLanes, kAlone>(held, row)   of these lanes' columns; may change what is held
//   Part Merge(const Part*, int count)    by a whole warp
//   void Begin<kAlone>(const Part& row)   the whole row's; kAlone: these lanes have all of it
//   Pack<C, N> Result<N>(Pack<C, N> held)
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"
#include "primitive/cuda/chip/warp_exchange.cuh"
#include "primitive/cuda/fused/policy.h"
#include "primitive/cuda/fused/row.cuh"

namespace oneflow_lite::cuda {

template <class Base>
class HeldRow;

// The launcher's words: a row algorithm over Loaded<C>, and what its values are computed from.
template <class Base_, class Elements_>
struct WholeRow {
  using Base = Base_;
  using Elements = Elements_;
  using Output = typename Base::Output;
  using C = typename Base::C;
  static constexpr int kPack = Base::kPack;
  Base base;
  Elements elements;

  // The same over those copies of what serves all rows that lie as a row does (fused/copies.cuh).
  OFL_DEVICE WholeRow Beside(int head) const {
    WholeRow beside = *this;
    beside.base.store = base.store.Beside(head);
    beside.elements = elements.Beside(head);
    return beside;
  }
};

// Which packs of a row a thread has: `rank` and every `size`th from there on, so that all blocks
// begin alike: copies of operands want to begin at a multiple of 128 bytes, or they read twice as
// many. `size` is kThreads of each of kBlocks blocks: steps that are known leave one address for
// all packs. kFull: kPacks of them.
template <int N_, int kPacks_, bool kFull, int kThreads_, int kBlocks_>
struct PacksOfThread {
  static constexpr int N = N_, kPacks = kPacks_, kThreads = kThreads_, kBlocks = kBlocks_;
  static constexpr int size = kThreads * kBlocks;
  static constexpr bool kOdd = false;  // no columns outside packs
  static constexpr int extra = -1, kExtras = 0;
  static constexpr Access kAskew = Access::kAligned;
  int packs, rank;

  OFL_DEVICE static PacksOfThread Of(int /*head*/, int64_t cols, int rank) {
    return {static_cast<int>(cols / N), rank};
  }
  OFL_DEVICE bool Has(int k) const { return kFull || k + 1 < kPacks || rank + k * size < packs; }
  OFL_DEVICE int Column(int k) const { return (rank + k * size) * N; }
  OFL_DEVICE static bool HasExtra(int) { return false; }
  OFL_DEVICE static int ExtraColumn(int) { return 0; }
  // Columns of the kLanes lanes that this thread is one of.
  template <int kLanes>
  OFL_DEVICE int Count() const {
    if (size == kLanes) return packs * N;
    if (kFull) return kLanes * kPacks * N;
    int count = 0;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int left = packs - (rank - static_cast<int>(threadIdx.x % kLanes) + k * size);
      count += left < 0 ? 0 : left < kLanes ? left : kLanes;
    }
    return count * N;
  }
  // Makes the compiler work out columns anew from here on, rather than keep them.
  OFL_DEVICE void Forget() { asm volatile("" : "+r"(rank)); }
};

// What is read of a thread's pack k; in odd rows what repeats lies otherwise than what is written.
template <class F, class Places>
OFL_DEVICE auto LoadPackInputs(const F& f, const Places& places, int64_t row, int k) {
  return f.template LoadInputs<Access::kAligned, Places::N, Places::kAskew>(row, places.Column(k));
}

// A thread's inputs of a row as they lie in memory.
template <class Elements, class Places>
struct RowInputs {
  typename Elements::template Inputs<Places::N> packs[Places::kPacks];
  typename Elements::template Inputs<1> extras[Places::kExtras + 1];  // and one: there may be none
  typename Elements::Constants constants;

  OFL_DEVICE void Load(const Elements& elements, const Places& places, int64_t row) {
    const Elements here = elements.At(row);
#pragma unroll
    for (int k = 0; k < Places::kPacks; ++k) {
      if (places.Has(k)) packs[k] = LoadPackInputs(here, places, row, k);
    }
#pragma unroll
    for (int e = 0; e < Places::kExtras; ++e) {
      if (!places.HasExtra(e)) continue;
      extras[e] = here.template LoadInputs<Access::kAny, 1>(row, places.ExtraColumn(e));
    }
    constants = elements.Begin(row);
  }
};

// keep(values, k) of every pack k of a row, all of whose loads are under way first, and of a column
// outside packs as a pack of one. What serves all rows is asked for kAhead packs ahead.
template <int kAhead, class Elements, class Places, class F>
OFL_DEVICE void EachLoaded(const Elements& elements, int64_t row, const Places& places, F&& keep) {
  constexpr int N = Places::N, kPacks = Places::kPacks;
  RowInputs<Elements, Places> inputs;
  typename Elements::template Commons<N> commons[kAhead];
  inputs.Load(elements, places, row);
  __syncwarp();  // or the last load would move to where its pack is used, behind the others' wait
  if constexpr (Places::kOdd) WaitForPreviousKernel();
#pragma unroll
  for (int k = 0; k < kAhead; ++k) {
    if (!places.Has(k)) continue;
    commons[k] = elements.template LoadCommons<Access::kAligned, N>(row, places.Column(k));
  }
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (!places.Has(k)) continue;
    keep(elements.template Apply<N>(inputs.packs[k], commons[k % kAhead], inputs.constants), k);
    const int next = k + kAhead;
    if (next >= kPacks || !places.Has(next)) continue;
    commons[k % kAhead] =
        elements.template LoadCommons<Access::kAligned, N>(row, places.Column(next));
  }
  if constexpr (Places::kOdd) {
    if (places.extra < 0) return;
    const auto common = elements.template LoadCommons<Access::kAny, 1>(row, places.extra);
    keep(elements.template Apply<1>(inputs.extras[0], common, inputs.constants), kPacks);
  }
}

// Each(f) calls f(pack, k) for every pack k. Here f may change it: values that stay computed, the
// first kParked packs in the thread's own places of shared memory. kLast: they are not read again.
// kInTurn: pack by pack, where values of many at once would be spilled.
template <class A, class Places, int kParked = 0, bool kInTurn = false>
struct HeldValues {
  static constexpr int N = Places::N, kPacks = Places::kPacks;
  static constexpr bool kHolds = true;
  using C = typename A::C;
  static_assert(kParked == 0 || N * sizeof(C) == kFusedParkedBytes, "the launcher's bytes");
  Places places;
  uint4* parked;  // the thread's first place
  Pack<C, N> values[kPacks - kParked];
  Pack<C, 1> extras[Places::kExtras + 1];  // and one: there may be none

  OFL_DEVICE void Load(const A& a, const int64_t (&row)[1]) {
    constexpr int kAhead = kInTurn && kPacks > 2 ? 2 : kPacks;
    EachLoaded<kAhead>(a.elements, row[0], places, [&](const auto& v, int k) { Keep(v, k); });
  }
  template <bool kLast = false, class F>
  OFL_DEVICE void Each(F&& f) {
    // The compiler keeps nothing in registers that is in shared memory.
    if constexpr (kParked > 0) asm volatile("" : : : "memory");
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if constexpr (kInTurn) __syncwarp();
      if (!places.Has(k)) continue;
      if (k >= kParked) {
        f(values[k - kParked], k);
      } else if constexpr (kParked > 0) {
        auto v = LoadApart<Pack<C, N>>(Place(k), Places::kThreads);
        f(v, k);
        if (!kLast) Keep(v, k);
      }
    }
#pragma unroll
    for (int e = 0; e < Places::kExtras; ++e) {
      if (places.HasExtra(e)) f(extras[e], kPacks + e);
    }
  }
  template <class Store>
  OFL_DEVICE auto StoreCommons(const Store& store, int k) const {
    return store.template LoadCommons<Access::kAligned, N>(0, places.Column(k));
  }

 private:
  OFL_DEVICE uint4* Place(int k) const {
    return parked + k * (kFusedParkedBytes / kPackBytes) * Places::kThreads;
  }
  OFL_DEVICE void Keep(const Pack<C, N>& v, int k) {
    if (k < kParked) {
      StoreApart(Place(k), Places::kThreads, v);
    } else {
      values[k - kParked] = v;
    }
  }
  OFL_DEVICE void Keep(const Pack<C, 1>& v, int) { extras[0] = v; }
};

// The compiler would ask for an operand where it can have the registers of the row for it, behind
// the wait for the row. So the row depends on it, by bits that are masked out: there are fewer than
// 2^62 rows, which the compiler cannot know.
template <class C, int N, class Commons>
OFL_DEVICE void DependOn(Pack<C, N>& values, const Commons& operands, int64_t rows) {
  if constexpr (sizeof(operands) >= sizeof(uint32_t)) {
    constexpr int kWords = sizeof(operands) / sizeof(uint32_t);
    const uint32_t none = static_cast<uint32_t>(rows >> 62);
    uint32_t words[kWords], word;
    memcpy(words, &operands, sizeof(words));
    memcpy(&word, &values, sizeof(word));
#pragma unroll
    for (int i = 0; i < kWords; i += 2) word ^= words[i] & none;
    memcpy(&values, &word, sizeof(word));
  }
}

// The row once its loads are under way: merge(of, held) lets `of` learn what the whole of it comes
// to. What Store reads of operands that serve all rows is asked for a pack ahead, because no load
// passes the store of the pack before; that of the first pack before the row is merged, where there
// are registers for it.
template <class A, class Held, class F>
OFL_DEVICE void RunHeldRow(const A& a, int64_t row, int64_t rows, Held& held, F&& merge) {
  constexpr int N = A::kPack;
  constexpr bool kEarly = Held::kHolds && Held::kPacks <= 2;
  held.Load(a, {row});
  HeldRow<typename A::Base> of(a.base);
  const auto constants = a.base.store.Begin(row);
  auto next = held.StoreCommons(a.base.store, 0);
  if constexpr (kEarly) DependOn(held.values[0], next, rows);
  held.places.Forget();
  merge(of);
  held.places.Forget();
  const auto store = a.base.store.At(row);
  if (!kEarly) next = held.StoreCommons(store, 0);
  held.template Each<true>([&](const auto& v, int k) {
    if constexpr (sizeof(v.v) == sizeof(typename A::C)) {
      const int col = held.places.extra;
      store.template Store<1>(row, col, of.Result(v),
                              store.template LoadInputs<Access::kAny, 1>(row, col),
                              store.template LoadCommons<Access::kAny, 1>(row, col), constants);
    } else {
      const int col = held.places.Column(k);
      const auto commons = next;
      if (k + 1 < Held::kPacks && held.places.Has(k + 1)) next = held.StoreCommons(store, k + 1);
      store.template Store<N>(row, col, of.Result(v),
                              store.template LoadInputs<Access::kAligned, N>(row, col), commons,
                              constants);
    }
  });
}

// Of kernels compiled for their threads: kThreads of each of the kBlocks blocks that have kRows
// rows.
template <class A, int kThreads, int kBlocks, int kRows = 1>
struct FusedBlocks {
  using Part = typename HeldRow<typename A::Base>::Part;
  using Exchange = WarpExchange<Part, kRows>;
  static constexpr int kParts = kBlocks * kThreads / kWarp;
  // Of shared memory, with what the warps exchange; what else there is lies behind them.
  static constexpr int kBytes =
      (kPackBytes + kRows * static_cast<int>(sizeof(Part)) * kParts + kFusedSharedAlignment - 1) /
      kFusedSharedAlignment * kFusedSharedAlignment;

  OFL_DEVICE static int rank() {
    return Exchange::block() * kThreads + static_cast<int>(threadIdx.x);
  }
  template <class Held>
  OFL_DEVICE static void Run(const A& a, int64_t row, int64_t rows, Held& held, char* shared) {
    RunHeldRow(a, row, rows, held, [&](auto& of) {
      Exchange exchange(shared);  // behind the loads, which are to be under way first
      if constexpr (!Held::kHolds) WaitForCopiesOf<0>();
      exchange.Send(of.template Gather<kWarp, false>(held, row));
      of.template Begin<false>(of.Merge(exchange.Receive(), kParts));
    });
  }
};

}  // namespace oneflow_lite::cuda
