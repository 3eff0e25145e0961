// SPDX-License-Identifier: Apache-2.0
//
// A fused row (fused_row.cuh) whose ends lie inside packs of 16 bytes, where every matrix with a
// row for each begins at one: their packs lie alike, so that all are read as they are written. What
// serves all rows, a bias or a norm's weights, lies otherwise in each of them: it is copied to
// shared memory as it is in its own, while the inputs are on their way, and shifted into place
// there. The first and the last whole pack count among the columns outside packs, at most one a
// lane of one warp: nothing outside a row is read then.
//
// Elements and Store have in place of what fused_wide.cuh asks for
//   kCommons                              how many operands serve all rows
//   void CopyCommons(SharedRows&)         moves on behind them
//   Commons<N> ReadCommons<N>(SharedRows, int col)
// Operands that repeat after some rows are read at any alignment (Access::kInside).
#pragma once

#include "primitive/cuda/async_copy.cuh"
#include "primitive/cuda/fused_whole.cuh"

namespace oneflow_lite {
namespace cuda {

// Copies of one operand's row after the other, of the columns from `first` to before `end` of
// `cols`; each with the bytes before and behind that make it words of 16 bytes.
struct SharedRows {
  char* at;
  int first, end, cols;

  // By all threads of the block: on their way until WaitForCopiesOf<0> and a barrier.
  template <class T>
  __device__ __forceinline__ void Copy(const T* row) {
    const char* from = Begin(row);
    const char* last = reinterpret_cast<const char*>(row + cols);
    const char* stop = reinterpret_cast<const char*>(row + end) + kPackBytes;
    if (stop > last) stop = last;
    const int bytes = static_cast<int>(stop - from), rest = static_cast<int>(last - from);
    for (int i = threadIdx.x * kPackBytes; i < bytes; i += blockDim.x * kPackBytes) {
      CopyAsync(at + i, from + i, rest - i < kPackBytes ? rest - i : kPackBytes);
    }
    at += Size<T>();
  }
  // N elements from `col` on; moves on to the next operand.
  template <int N, class T>
  __device__ __forceinline__ StowedPack<T, N> Read(const T* row, int col) {
    const auto past = reinterpret_cast<const char*>(row + first) - Begin(row);
    const char* here = at + past + (col - first) * static_cast<int>(sizeof(T));
    at += Size<T>();
    return StowedPack<T, N>::Of(LoadOperand<Access::kInside, N>(reinterpret_cast<const T*>(here)));
  }

 private:
  // Copies want to begin at a multiple of 128 bytes, or they read more of them.
  template <class T>
  __device__ __forceinline__ const char* Begin(const T* row) const {
    const char* from = reinterpret_cast<const char*>(row + first);
    const char* start = reinterpret_cast<const char*>(row);
    start -= BytesPastBoundary(start);
    from -= reinterpret_cast<uintptr_t>(from) % FusedPolicy::kSharedAlignment;
    return from < start ? start : from;
  }
  template <class T>
  __device__ __forceinline__ int Size() const {
    return ((end - first) * static_cast<int>(sizeof(T)) + FusedPolicy::kCopyBytes) / kPackBytes *
           kPackBytes;
  }
};

// What a thread has of a row that `parts` blocks share: every `step`th pack of its block's, and
// maybe a column outside packs.
template <int N, int kPacks>
struct OddPlaces {
  int head;   // column of the row's first pack
  int begin;  // the block's first pack
  int end;    // behind its last one
  int at;     // the thread's first one
  int step;
  int extras;  // columns outside packs of this warp's lanes
  int extra;   // the thread's own, or -1

  __device__ __forceinline__ OddPlaces(int boundary, int cols, int part, int parts, int rank,
                                       int step)
      : head(boundary + N), step(step) {
    const int packs = (cols - head) / N - 1, count = cols - packs * N;
    begin = packs * part / parts;
    end = packs * (part + 1) / parts;
    at = begin + rank;
    extras = part == 0 && rank < kWarp ? count : 0;
    extra = rank >= extras ? -1 : rank < head ? rank : rank + packs * N;
  }
  __device__ __forceinline__ bool Has(int k) const { return k + 1 < kPacks || at + k * step < end; }
  __device__ __forceinline__ int Column(int k) const { return head + (at + k * step) * N; }
  // Columns of this warp's lanes.
  template <int kLanes>
  __device__ __forceinline__ int Count() const {
    int count = 0;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int left = end - (at - static_cast<int>(threadIdx.x % kLanes) + k * step);
      count += left < 0 ? 0 : left < kLanes ? left : kLanes;
    }
    return count * N + extras;
  }
};

// The inputs of a row as they lie in memory. Threads have all their packs but the last one.
template <class A, int kPacks_>
struct OddRow {
  static constexpr int kPacks = kPacks_, N = A::kPack;
  using C = typename A::C;
  using Elements = typename A::Elements;
  using Store = decltype(A::Base::store);
  const A& a;
  OddPlaces<N, kPacks> places;
  SharedRows loads, stores;  // the operands of Elements and of Store
  typename Elements::Constants constants;
  typename Elements::template Inputs<N> inputs[kPacks];
  typename Elements::template Inputs<1> input = {};  // of a column outside packs ...
  typename Elements::template Commons<1> common = {};
  Pack<C, 1> extra;  // ... and its value

  __device__ __forceinline__ OddRow(const A& a, const OddPlaces<N, kPacks>& places,
                                    const SharedRows& rows)
      : a(a), places(places), loads(rows) {}

  __device__ __forceinline__ void Load(int64_t row) {
    const Elements here = a.elements.At(row);
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!places.Has(k)) continue;
      inputs[k] = here.template LoadInputs<Access::kAligned, N>(row, places.Column(k));
    }
    if (places.extra >= 0) {
      input = here.template LoadInputs<Access::kAny, 1>(row, places.extra);
      common = here.template LoadCommons<Access::kAny, 1>(row, places.extra);
    }
    stores = loads;
    a.elements.CopyCommons(stores);
    SharedRows behind = stores;
    a.base.store.CopyCommons(behind);
    CommitCopies();
    constants = a.elements.Begin(row);
  }
  __device__ __forceinline__ void Await() {
    if constexpr (Elements::kCommons + Store::kCommons > 0) {
      WaitForCopiesOf<0>();
      __syncthreads();
    }
    extra = a.elements.template Apply<1>(input, common, constants);
  }
  __device__ __forceinline__ Pack<C, N> Value(int k) const {
    const auto commons = a.elements.template ReadCommons<N>(loads, places.Column(k));
    return a.elements.template Apply<N>(inputs[k], commons, constants);
  }
  // The operands of Store at a pack or at a column.
  template <int kCount>
  __device__ __forceinline__ auto StoreCommons(const Store& store, int64_t row, int col) const {
    if constexpr (kCount == 1) {
      return store.template LoadCommons<Access::kAny, 1>(row, col);
    } else {
      return store.template ReadCommons<kCount>(stores, col);
    }
  }
};

// Held as HeldValues are (fused_whole.cuh); a column outside packs is a pack of one, behind them.
template <class A, int kPacks>
struct OddValues : OddRow<A, kPacks> {
  using Row = OddRow<A, kPacks>;
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
    if (this->places.extra >= 0) f(this->extra, kPacks);
  }
  template <class F>
  __device__ __forceinline__ void EachInTurn(F&& f) {
    Each(f);
  }
};

// Held as HeldInputs are (fused_wide.cuh).
template <class A, int kPacks>
struct OddInputs : OddRow<A, kPacks> {
  using Row = OddRow<A, kPacks>;
  static constexpr int N = Row::N;
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
    const auto here = this->a.elements.At(row);
#pragma unroll 1
    for (int k = 0; k < kPacks; ++k) {
      if (!this->places.Has(k)) continue;
      const int col = this->places.Column(k);
      const auto again = here.template LoadInputs<Access::kAligned, N>(row, col);
      const auto commons = here.template ReadCommons<N>(this->loads, col);
      f(here.template Apply<N>(again, commons, this->constants));
    }
    if (this->places.extra >= 0) f(this->extra);
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
    if (this->places.extra >= 0) f(this->extra, kPacks);
  }
};

// merge(of) lets `of` learn what the whole row comes to.
template <class A, class Held, class F>
__device__ __forceinline__ void FinishOddRow(const A& a, int64_t row, Held& held, F&& merge) {
  held.Await();
  HeldRow<typename A::Base> of(a.base);
  const auto constants = a.base.store.Begin(row);
  merge(of);
  const auto store = a.base.store.At(row);
  held.Each([&](auto& v, int k) {
    constexpr int kCount = static_cast<int>(sizeof(v.v) / sizeof(typename A::C));
    constexpr Access kAccess = kCount == 1 ? Access::kAny : Access::kAligned;
    const int col = kCount == 1 ? held.places.extra : held.places.Column(k);
    store.template Store<kCount>(row, col, of.Result(v),
                                 store.template LoadInputs<kAccess, kCount>(row, col),
                                 held.template StoreCommons<kCount>(store, row, col), constants);
  });
}

// A row per warp; the grid covers all rows.
template <int kPacks, class A>
__global__ void __launch_bounds__(RowPolicy::kGroupThreads, kFusedLaneBlocks<kPacks>)
    FusedOddWarpKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  extern __shared__ __align__(FusedPolicy::kSharedAlignment) char odd_shared[];
  const int64_t mine =
      int64_t{blockIdx.x} * (RowPolicy::kGroupThreads / kWarp) + threadIdx.x / kWarp;
  const int64_t row = mine < rows ? mine : rows - 1;  // warps behind the last row do it once more
  const int width = static_cast<int>(cols);
  OddValues<A, kPacks> held(
      a, {a.base.store.Head(row), width, 0, 1, static_cast<int>(threadIdx.x % kWarp), kWarp},
      {odd_shared, 0, width, width});
  held.Load(row);
  FinishOddRow(a, row, held, [&](auto& of) {
    of.template Begin<true>(of.template Gather<kWarp, true>(held, row));
  });
}

// A row per block, or per cluster of blocks, of `threads` threads each.
template <template <class, int> class Held, int kPacks, class A>
__device__ __forceinline__ void RunOddBlock(const A& a, int64_t cols, int threads, char* shared) {
  constexpr int N = A::kPack;
  using Part = typename HeldRow<typename A::Base>::Part;
  using Exchange = WarpExchange<Part>;
  const int64_t row = internal::ClusterIndex();
  const OddPlaces<N, kPacks> places(a.base.store.Head(row), static_cast<int>(cols),
                                    Exchange::block(), Exchange::blocks(),
                                    static_cast<int>(threadIdx.x), threads);
  constexpr int kAlignment = FusedPolicy::kSharedAlignment;
  const int exchanged =
      kPackBytes + static_cast<int>(sizeof(Part)) * (Exchange::blocks() * threads / kWarp);
  Held<A, kPacks> held(
      a, places,
      {shared + (exchanged + kAlignment - 1) / kAlignment * kAlignment,
       places.head + places.begin * N, places.head + places.end * N, static_cast<int>(cols)});
  held.Load(row);
  Exchange exchange(shared);  // behind the loads, which are to be under way first
  FinishOddRow(a, row, held, [&](auto& of) {
    exchange.Send(of.template Gather<kWarp, false>(held, row));
    const auto* parts = exchange.Receive();
    of.template Begin<false>(of.Merge(parts, Exchange::values()));
  });
}

template <int kPacks, class A>
__global__ void __launch_bounds__(FusedBounds<typename A::C, kPacks>::kThreads,
                                  FusedBounds<typename A::C, kPacks>::kBlocks)
    FusedOddBlockKernel(const __grid_constant__ A a, int64_t, int64_t cols) {
  extern __shared__ __align__(FusedPolicy::kSharedAlignment) char odd_shared[];
  RunOddBlock<OddValues, kPacks>(a, cols, static_cast<int>(blockDim.x), odd_shared);
}

// Of an expression that is cheap enough to be computed at two visits.
template <int kPacks, int kThreads, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedOddWideKernel(const __grid_constant__ A a, int64_t, int64_t cols) {
  extern __shared__ __align__(FusedPolicy::kSharedAlignment) char odd_shared[];
  RunOddBlock<OddInputs, kPacks>(a, cols, kThreads, odd_shared);
}

}  // namespace cuda
}  // namespace oneflow_lite
