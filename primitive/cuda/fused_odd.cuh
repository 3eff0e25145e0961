// SPDX-License-Identifier: Apache-2.0
//
// A fused row (fused_row.cuh) whose ends lie inside packs of 16 bytes, of a block or a cluster
// (narrow ones: fused_lanes.cuh), where every matrix with a row for each begins at one: their packs
// lie alike, so that all are read as they are written. What serves all rows, a bias or a norm's
// weights, lies otherwise in each of them: it is copied to shared memory as it is in its own, while
// the inputs are on their way, and shifted into place there. The first and the last whole pack
// count among the columns outside packs, at most one a lane of one warp: nothing outside a row is
// read then.
//
// Elements and Store have in place of what fused_wide.cuh asks for
//   kSharedBytes<N, Rows>                 0: no operand serves all rows
//   void CopyCommons<N>(Rows)             Rows: SharedRows
//   Commons<N> ReadCommons<N>(Rows, k)    of the thread's pack k
// Operands that repeat after some rows are read at any alignment (Access::kInside).
#pragma once

#include "primitive/cuda/async_copy.cuh"
#include "primitive/cuda/fused_whole.cuh"

namespace oneflow_lite {
namespace cuda {

// What a thread has of a row that `parts` teams of kTeam threads share: every kTeam'th pack of its
// team's, and maybe a column outside packs. Threads have all kPacks packs but the last one.
template <int N_, int kPacks_, int kTeam_>
struct OddPlaces {
  static constexpr int N = N_, kPacks = kPacks_, kTeam = kTeam_;
  int first;   // column of the team's first pack
  int packs;   // the team's
  int rank;    // the thread's first one
  int extras;  // columns outside packs of this warp's lanes
  int extra;   // the thread's own, or -1

  __device__ __forceinline__ OddPlaces(int boundary, int cols, int part, int parts, int rank)
      : rank(rank) {
    const int head = boundary + N, all = (cols - head) / N - 1, begin = all * part / parts;
    first = head + begin * N;
    packs = all * (part + 1) / parts - begin;
    extras = part == 0 && rank < kWarp ? cols - all * N : 0;
    extra = rank >= extras ? -1 : rank < head ? rank : rank + all * N;
  }
  __device__ __forceinline__ bool Has(int k) const {
    return k + 1 < kPacks || rank + k * kTeam < packs;
  }
  __device__ __forceinline__ int Column(int k) const { return first + (rank + k * kTeam) * N; }
  // Columns of this warp's lanes.
  template <int kLanes>
  __device__ __forceinline__ int Count() const {
    int count = 0;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int left = packs - (rank - static_cast<int>(threadIdx.x % kLanes) + k * kTeam);
      count += left < 0 ? 0 : left < kLanes ? left : kLanes;
    }
    return count * N + extras;
  }
};

// Copies of operands' rows from a team's first pack on, so that packs are whole in shared memory
// but for the bytes by which the row's elements lie askew in words of 4.
template <class Places>
struct SharedRows {
  static constexpr int kPadding = kFusedSharedAlignment;
  const Places& places;
  char* at;

  // Smaller packs than 8 bytes are read where they are: the word behind a team's may lie outside.
  template <int N, class T>
  static constexpr bool kCopied = N * sizeof(T) >= 8;
  // Of one operand.
  template <int N, class T>
  static constexpr int kBytes =
      !kCopied<N, T> ? 0
                     : kPadding + Places::kPacks * Places::kTeam * N * static_cast<int>(sizeof(T)) +
                           kPackBytes;

  // By all threads of the team; moves on to the next operand. From a multiple of 128 bytes on, or
  // the copies would read more of them.
  template <int N, class T>
  __device__ __forceinline__ void Copy(const T* row) {
    if constexpr (!kCopied<N, T>) return;
    constexpr int kEach = N * static_cast<int>(sizeof(T)), kStep = 4 * Places::kTeam;
    constexpr int kSteps = (Places::kPacks * Places::kTeam * kEach + kPadding + kStep) / kStep;
    const char* begin = reinterpret_cast<const char*>(row + places.first);
    begin -= reinterpret_cast<uintptr_t>(begin) % 4;
    const int before = static_cast<int>(reinterpret_cast<uintptr_t>(begin) % kPadding);
    const int mine = 4 * places.rank - before;
    const int most = places.packs * kEach + 4;  // a word more, for those that lie askew
    const char* from = begin + mine;
    const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(at + kPadding + mine));
#pragma unroll
    for (int i = 0; i < kSteps; ++i) {
      const bool begins =
          i * kStep >= kPadding || from + i * kStep >= reinterpret_cast<const char*>(row);
      const bool ends = (i + 1) * kStep > (Places::kPacks - 1) * Places::kTeam * kEach;
      if (begins && (!ends || mine + i * kStep < most))
        CopyWordAsync(to + i * kStep, from + i * kStep);
    }
    at += kBytes<N, T>;
  }
  // The thread's pack k; moves on to the next operand.
  template <int N, class T>
  __device__ __forceinline__ StowedPack<T, N> Read(const T* row, int k) {
    StowedPack<T, N> pack;
    if constexpr (!kCopied<N, T>) {
      pack = StowedPack<T, N>::Of(LoadEach<N>(row + places.Column(k)));
    } else {
      constexpr int kEach = N * static_cast<int>(sizeof(T)), kWords = kEach / 4;
      const char* here = at + kPadding + (places.rank + k * Places::kTeam) * kEach;
      at += kBytes<N, T>;
      uint32_t words[kWords + 1];
      memcpy(words, __builtin_assume_aligned(here, kEach < kPackBytes ? kEach : kPackBytes), kEach);
      if constexpr (sizeof(T) < 4) {
        const auto past = reinterpret_cast<uintptr_t>(row + places.first) % 4;
        memcpy(words + kWords, __builtin_assume_aligned(here + kEach, 4), 4);
#pragma unroll
        for (int i = 0; i < kWords; ++i) {
          words[i] = __funnelshift_r(words[i], words[i + 1], 8 * past);
        }
      }
      memcpy(&pack.held, words, kEach);
    }
    return pack;
  }
};

// The inputs of a row as they lie in memory.
template <class A, class Places_>
struct OddRow {
  using Places = Places_;
  using Rows = SharedRows<Places>;
  using C = typename A::C;
  using Elements = typename A::Elements;
  using Store = decltype(A::Base::store);
  static constexpr int kPacks = Places::kPacks, N = A::kPack;
  static constexpr int kLoadBytes = Elements::template kSharedBytes<N, Rows>;
  // Of shared memory.
  static constexpr int kBytes = kLoadBytes + Store::template kSharedBytes<N, Rows>;
  const A& a;
  char* shared;
  Places places;
  typename Elements::Constants constants;
  typename Elements::template Inputs<N> inputs[kPacks];
  typename Elements::template Inputs<1> input = {};  // of a column outside packs ...
  typename Elements::template Commons<1> common = {};
  Pack<C, 1> extra;  // ... and its value

  __device__ __forceinline__ OddRow(const A& a, const Places& places, char* shared)
      : a(a), shared(shared), places(places) {}

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
    a.elements.template CopyCommons<N>(Rows{places, shared});
    a.base.store.template CopyCommons<N>(Rows{places, shared + kLoadBytes});
    CommitCopies();
    constants = a.elements.Begin(row);
  }
  __device__ __forceinline__ void Await() {
    if constexpr (kBytes > 0) {
      WaitForCopiesOf<0>();
      __syncthreads();
    }
    extra = a.elements.template Apply<1>(input, common, constants);
  }
  __device__ __forceinline__ Pack<C, N> Value(int k) const {
    const auto commons = a.elements.template ReadCommons<N>(Rows{places, shared}, k);
    return a.elements.template Apply<N>(inputs[k], commons, constants);
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
    if (this->places.extra >= 0) f(this->extra, kPacks);
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
    const auto here = this->a.elements.At(row);
#pragma unroll 1
    for (int k = 0; k < kPacks; ++k) {
      if (!this->places.Has(k)) continue;
      const int col = this->places.Column(k);
      const auto again = here.template LoadInputs<Access::kAligned, N>(row, col);
      const auto commons =
          here.template ReadCommons<N>(typename Row::Rows{this->places, this->shared}, k);
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
                                 held.template StoreCommons<kCount>(store, row, k), constants);
  });
}

// A row per block of kThreads threads, or per cluster of kBlocks of them; a multiprocessor has room
// for kResident blocks. kAgain: the expression is cheap enough to be computed at two visits.
template <bool kAgain, int kPacks, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedOddBlockKernel(const __grid_constant__ A a, int64_t, int64_t cols) {
  using Places = OddPlaces<A::kPack, kPacks, kThreads>;
  using Part = typename HeldRow<typename A::Base>::Part;
  using Exchange = WarpExchange<Part>;
  constexpr int kAlignment = kFusedSharedAlignment;
  extern __shared__ __align__(kAlignment) char odd_shared[];
  const int64_t row = internal::ClusterIndex();
  constexpr int kParts = kBlocks * kThreads / kWarp;
  constexpr int kExchanged = kPackBytes + static_cast<int>(sizeof(Part)) * kParts;
  std::conditional_t<kAgain, OddInputs<A, Places>, OddValues<A, Places>> held(
      a,
      {a.base.store.Head(row), static_cast<int>(cols), Exchange::block(), kBlocks,
       static_cast<int>(threadIdx.x)},
      odd_shared + (kExchanged + kAlignment - 1) / kAlignment * kAlignment);
  held.Load(row);
  Exchange exchange(odd_shared);  // behind the loads, which are to be under way first
  FinishOddRow(a, row, held, [&](auto& of) {
    exchange.Send(of.template Gather<kWarp, false>(held, row));
    of.template Begin<false>(of.Merge(exchange.Receive(), kParts));
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
