// SPDX-License-Identifier: Apache-2.0
//
// Fused rows that a group of lanes holds, whole or odd (fused/whole.cuh, fused/wide.cuh). Narrow
// ones have a group each, which reads what serves all rows, a bias or a norm's weights, beside its
// row, two operands of wide odd rows from copies that lie as it does (fused/copies.cuh). Where odd
// rows have two and are narrower, or three, groups stay: they keep them in shared memory, each lane
// its own, and work row after row, the next one's inputs on their way. Such rows lie alike after
// every N rows, and a group has only such.
#pragma once

#include "primitive/cuda/fused/copies.cuh"
#include "primitive/cuda/fused/whole.cuh"

namespace oneflow_lite::cuda {

// What a lane has of a row of whole packs: every kLanes'th pack.
template <int N, int kLanes_, int kPacks, bool kFull>
struct WholeLanes : PacksOfThread<N, kPacks, kFull, kLanes_, 1> {
  static constexpr int kLanes = kLanes_;
  static constexpr bool kCopied = false;
  static constexpr Access kCommons = Access::kAligned;

  OFL_DEVICE WholeLanes(int, int cols, int rank)
      : PacksOfThread<N, kPacks, kFull, kLanes, 1>{cols / N, rank} {}
};

// The same of an odd row, whose columns outside packs are dealt out one by one. There are kLanes *
// (kPacks - 1) packs at least. N: a pack of 16 bytes, or a smaller one. kCopied: operands are read
// from their copies, else in words of two elements where there are many.
template <int N_, int kLanes_, int kPacks_, bool kCopied_>
struct OddLanes {
  static constexpr int N = N_, kLanes = kLanes_, kPacks = kPacks_;
  static constexpr bool kCopied = kCopied_;
  static constexpr int kExtras = ExtrasPerThread<N>(kLanes);
  static constexpr Access kApart = kLanes * kPacks > 24 ? Access::kWords : Access::kEach;
  static constexpr Access kAskew = Access::kAny, kCommons = kCopied ? Access::kAligned : kApart;
  int head, cols, rank, packs;

  OFL_DEVICE OddLanes(int boundary, int cols, int rank)
      : head(boundary % N), cols(cols), rank(rank), packs((cols - head) / N) {}
  OFL_DEVICE bool Has(int k) const { return k + 1 < kPacks || rank + k * kLanes < packs; }
  OFL_DEVICE int Column(int k) const { return head + (rank + k * kLanes) * N; }
  OFL_DEVICE bool HasExtra(int e) const { return rank + e * kLanes < cols - packs * N; }
  OFL_DEVICE int ExtraColumn(int e) const {
    const int extra = rank + e * kLanes;
    return extra < head ? extra : extra + packs * N;
  }
  template <int kOf>
  OFL_DEVICE int Count() const {
    if (kOf == kLanes) return cols;
    const int mine = rank % kOf, extra = cols - packs * N - (rank - mine);  // kExtras is 1
    int count = extra < 0 ? 0 : extra < kOf ? extra : kOf;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int left = packs - (rank - mine + k * kLanes);
      count += N * (left < 0 ? 0 : left < kOf ? left : kOf);
    }
    return count;
  }
};

// Of a block whose groups of lanes share rows.
inline constexpr int kLaneThreads = FusedPolicy::kLaneThreads;

// What a functor reads that serves all rows: in registers or, if kShared, in shared memory.
template <class F, class Lanes, bool kShared>
struct LaneCommons {
  using Commons = typename F::template Commons<Lanes::N>;
  static constexpr int kThreads = kLaneThreads;
  static constexpr int kWords = (sizeof(Commons) + kPackBytes - 1) / kPackBytes;
  static constexpr bool kStowed = kShared && !__is_empty(Commons);
  // Of shared memory.
  static constexpr int kBytes = kStowed ? kWords * Lanes::kPacks * kThreads * kPackBytes : 0;
  uint4* shared;
  Commons packs[kStowed ? 1 : Lanes::kPacks];
  typename F::template Commons<1> extras[Lanes::kExtras + 1];

  OFL_DEVICE explicit LaneCommons(char* at) : shared(reinterpret_cast<uint4*>(at) + threadIdx.x) {}
  OFL_DEVICE void Load(const F& f, const Lanes& lanes) {
#pragma unroll
    for (int k = 0; k < Lanes::kPacks; ++k) {
      if (!lanes.Has(k)) continue;
      Keep(k, f.template LoadCommons<Lanes::kCommons, Lanes::N>(0, lanes.Column(k)));
    }
#pragma unroll
    for (int e = 0; e < Lanes::kExtras; ++e) {
      if (!lanes.HasExtra(e)) continue;
      extras[e] = f.template LoadCommons<Access::kAny, 1>(0, lanes.ExtraColumn(e));
    }
  }
  OFL_DEVICE Commons At(int k) const {
    if constexpr (!kStowed) return packs[k];
    return LoadApart<Commons>(shared + k * kWords * kThreads, kThreads);
  }

 private:
  OFL_DEVICE void Keep(int k, const Commons& commons) {
    if constexpr (kStowed) {
      StoreApart(shared + k * kWords * kThreads, kThreads, commons);
    } else {
      packs[k] = commons;
    }
  }
};

// The values of a row whose inputs and operands are there.
template <class A, class Held, class Inputs, class Commons>
OFL_DEVICE void ComputeLanes(const A& a, const Inputs& inputs, const Commons& commons, Held& held) {
#pragma unroll
  for (int k = 0; k < Held::kPacks; ++k) {
    if (!held.places.Has(k)) continue;
    held.values[k] =
        a.elements.template Apply<Held::N>(inputs.packs[k], commons.At(k), inputs.constants);
  }
#pragma unroll
  for (int e = 0; e < decltype(held.places)::kExtras; ++e) {
    if (!held.places.HasExtra(e)) continue;
    held.extras[e] =
        a.elements.template Apply<1>(inputs.extras[e], commons.extras[e], inputs.constants);
  }
}
template <class Of, class Store, class Held, class Commons>
OFL_DEVICE void StoreLanes(const Of& of, const Store& store, int64_t row, const Held& held,
                           const Commons& commons) {
  const auto constants = store.Begin(row);
  const Store here = store.At(row);
#pragma unroll
  for (int k = 0; k < Held::kPacks; ++k) {
    if (!held.places.Has(k)) continue;
    here.template Store<Held::N>(row, held.places.Column(k), of.Result(held.values[k]),
                                 LoadPackInputs(here, held.places, row, k), commons.At(k),
                                 constants);
  }
#pragma unroll
  for (int e = 0; e < decltype(held.places)::kExtras; ++e) {
    if (!held.places.HasExtra(e)) continue;
    const int col = held.places.ExtraColumn(e);
    here.template Store<1>(row, col, of.Result(held.extras[e]),
                           here.template LoadInputs<Access::kAny, 1>(row, col), commons.extras[e],
                           constants);
  }
}

// A row per group of lanes, or kStays: every so many rows as there are groups.
template <class Lanes, bool kStays, class A>
OFL_DEVICE void RunLanes(const A& a, int64_t rows, int64_t cols) {
  using Commons = LaneCommons<typename A::Elements, Lanes, kStays>;
  constexpr int kLanes = Lanes::kLanes, kGroups = kLaneThreads / kLanes;
  extern __shared__ __align__(16) char lanes_shared[];
  const int64_t group = int64_t{blockIdx.x} * kGroups + threadIdx.x / kLanes;
  const int64_t groups = int64_t{gridDim.x} * kGroups;
  // Lanes without a row do one once more: the whole warp takes part in its reductions.
  const int64_t first = group < rows ? group : 0;
  const int boundary = a.base.store.Head(first);
  const Lanes lanes(boundary, static_cast<int>(cols), threadIdx.x % kLanes);
  const A beside = BesideRow<Lanes::kCopied>(a, boundary);

  RowInputs<typename A::Elements, Lanes> inputs;
  inputs.Load(a.elements, lanes, first);
  Commons commons(lanes_shared);
  if constexpr (Lanes::kCopied) WaitForPreviousKernel();
  commons.Load(beside.elements, lanes);
  using Late = LaneCommons<decltype(A::Base::store), Lanes, kStays>;
  Late late(lanes_shared + Commons::kBytes);
  late.Load(beside.base.store, lanes);
  int64_t row = first;
  for (int64_t done = groups;; done += groups) {
    const int64_t next = row + groups < rows ? row + groups : first;
    const auto here = inputs;
    if (kStays && done < rows) inputs.Load(a.elements, lanes, next);
    HeldValues<A, Lanes> held{lanes};
    ComputeLanes(a, here, commons, held);
    if constexpr (!kStays && Lanes::kPacks <= 2) DependOn(held.values[0], late.packs[0], rows);
    HeldRow<typename A::Base> of(a.base);
    of.template Begin<true>(of.template Gather<kLanes, true>(held, row));
    StoreLanes(of, a.base.store, row, held, late);
    if (!kStays || done >= rows) break;
    row = next;
  }
}

// Of rows of whole packs. A multiprocessor has room for kResident blocks.
template <int kLanes, int kPacks, bool kFull, int kResident, class A>
__global__ void __launch_bounds__(kLaneThreads, kResident)
    FusedLanesKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  RunLanes<WholeLanes<A::kPack, kLanes, kPacks, kFull>, false>(a, rows, cols);
}

// Of odd rows, in packs of N elements. If kStays, N groups or a multiple of them are in the grid.
template <int kLanes, int kPacks, int N, bool kCopied, bool kStays, int kResident, class A>
__global__ void __launch_bounds__(kLaneThreads, kResident)
    FusedOddLanesKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  RunLanes<OddLanes<N, kLanes, kPacks, kCopied>, kStays>(a, rows, cols);
}

}  // namespace oneflow_lite::cuda
