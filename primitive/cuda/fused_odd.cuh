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

#include "primitive/cuda/async_copy.cuh"
#include "primitive/cuda/fused_whole.cuh"

namespace oneflow_lite {
namespace cuda {

// What a lane has of a row that `parts` warps share: every 32nd pack of its warp's, and maybe a
// column outside packs. Lanes have all kPacks packs but the last one. kAlone: the warps are a
// block.
template <int N_, int kPacks_, bool kAlone_>
struct OddPlaces {
  static constexpr int N = N_, kPacks = kPacks_;
  static constexpr bool kAlone = kAlone_;
  int head;    // column of the row's first pack
  int first;   // of the warp's
  int packs;   // the warp's
  int lane;    // the place of the lane's first one
  int extras;  // columns outside packs of this warp's lanes
  int extra;   // the lane's own, or -1

  __device__ __forceinline__ OddPlaces(int boundary, int cols, int part, int parts, int lane)
      : head(boundary + N), lane(lane) {
    const int all = (cols - head) / N - 1, begin = all * part / parts;
    first = head + begin * N;
    packs = all * (part + 1) / parts - begin;
    extras = part == 0 ? cols - all * N : 0;
    extra = lane >= extras ? -1 : lane < head ? lane : lane + all * N;
  }
  __device__ __forceinline__ bool Has(int k) const {
    return k + 1 < kPacks || lane + k * kWarp < packs;
  }
  __device__ __forceinline__ int Column(int k) const { return first + (lane + k * kWarp) * N; }
  // Makes the compiler work out columns anew from here on, rather than keep them.
  __device__ __forceinline__ void Forget() {
    asm volatile("" : "+r"(first), "+r"(lane), "+r"(extra));
  }
  // Columns of this warp's lanes.
  template <int kLanes>
  __device__ __forceinline__ int Count() const {
    static_assert(kLanes == kWarp, "");
    return packs * N + extras;
  }
};

// Copies of operands' rows from a warp's first pack on, in which each lane finds its packs whole.
// Units of 16 bytes, or of a smaller pack, are copied as they lie in the operand, where packs begin
// inside them. Once all have arrived packs are moved to where their units begin, once a row: by how
// much is another in each, and packs shifted wherever they are read cost more.
template <class Places>
struct SharedRows {
  static constexpr int kAlignment = kFusedSharedAlignment;
  const Places& places;
  char* at;

  // How one operand lies, in bytes; smaller packs than 8 are read where they are.
  template <int N, class T>
  struct Layout {
    static constexpr int kPack = N * static_cast<int>(sizeof(T)), kOfWarp = kWarp * kPack;
    static constexpr bool kCopied = kPack >= 8, kOfWords = sizeof(T) % 4 == 0;
    static constexpr int kUnit = kPack < kPackBytes ? kPack : kPackBytes;
    static constexpr int kUnits = kPack / kUnit;  // of a pack
    // With what is before the first unit, and the unit behind the last pack.
    static constexpr int kAll = kCopied ? Places::kPacks * kOfWarp + kAlignment : 0;
    using Unit = typename WordOf<kUnit>::type;

    const char* from;  // the unit in which the first pack begins
    int lead, past;    // bytes before it from a multiple of kAlignment, and before the pack in it

    __device__ __forceinline__ Layout(const T* row, const Places& places) {
      const auto first = reinterpret_cast<uintptr_t>(row + places.first);
      // The same for all warps, which shows here.
      past = static_cast<int>(reinterpret_cast<uintptr_t>(row + places.head) % kUnit);
      lead = static_cast<int>(first % kAlignment) - past;
      from = reinterpret_cast<const char*>(first) - past;
    }
  };
  template <int N, class T>
  static constexpr int kBytes = Layout<N, T>::kAll;

  // By all lanes; moves on to the next operand, as do the other two.
  template <int N, class T>
  __device__ __forceinline__ void Copy(const T* row) {
    using L = Layout<N, T>;
    if constexpr (!L::kCopied) return;
    const L layout(row, places);
    // From multiples of kAlignment on to such ones, or copies would read more. Rows in blocks find
    // the last one's operands in the L1: half at 4097 columns 1.01 of the bare softmax's time, past
    // the L1 1.07. Where clusters exchange they empty it: at 50257 1.06, past it 1.01.
    const int mine = places.lane - layout.lead / L::kUnit, last = places.packs * L::kUnits;
    const char* from = layout.from + mine * L::kUnit;
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(at)) + places.lane * L::kUnit;
    constexpr int kSteps = Places::kPacks * L::kUnits, kSure = kSteps - L::kUnits;
#pragma unroll
    for (int i = 0; i <= kSteps; ++i) {
      const int step = i * kWarp;
      if ((i == 0 && mine < 0) || (i + 1 > kSure && mine + step > last)) continue;
      CopyUnitAsync<L::kUnit, Places::kAlone>(to + step * L::kUnit, from + step * L::kUnit);
    }
    at += L::kAll;
  }
  // By all lanes, once what they copied is there: Read serves from here on.
  template <int N, class T>
  __device__ __forceinline__ void Place(const T* row) {
    using L = Layout<N, T>;
    if constexpr (L::kCopied) {
      const L layout(row, places);
      if (layout.past > 0) Move<L, L::kOfWords ? 1 : 0>(Slot(layout, 0), layout.past);
    }
    at += L::kAll;
  }
  // The lane's pack k.
  template <int N, class T>
  __device__ __forceinline__ StowedPack<T, N> Read(const T* row, int k) {
    using L = Layout<N, T>;
    StowedPack<T, N> pack;
    if constexpr (!L::kCopied) {
      pack = StowedPack<T, N>::Of(LoadEach<N>(row + places.Column(k)));
    } else {
      typename L::Unit units[L::kUnits];
      memcpy(units, __builtin_assume_aligned(Slot(L(row, places), k), L::kUnit), sizeof(units));
      memcpy(&pack.held, units, sizeof(units));
    }
    at += L::kAll;
    return pack;
  }

 private:
  template <class L>
  __device__ __forceinline__ char* Slot(const L& layout, int k) const {
    return at + layout.lead + places.lane * L::kPack + k * L::kOfWarp;
  }
  // Packs that begin `past` bytes behind units: kWords words and less than another. The unit behind
  // the last lane's pack k is the first lane's pack k + 1, which is still where it was.
  template <class L, int kWords>
  static __device__ __forceinline__ void Move(char* slot, unsigned past) {
    if constexpr (4 * kWords < L::kUnit) {
      if (past / 4 != kWords) return Move<L, kWords + 1>(slot, past);
      const unsigned bits = past * 8 % 32;
#pragma unroll
      for (int k = 0; k < Places::kPacks; ++k) {
        auto* at_pack = static_cast<char*>(__builtin_assume_aligned(slot, L::kUnit));
        typename L::Unit units[L::kUnits + 1];
        memcpy(units, at_pack, sizeof(units));
        uint32_t words[sizeof(units) / 4];
        memcpy(words, units, sizeof(units));
        __syncwarp();
#pragma unroll
        for (int i = 0; i < L::kPack / 4; ++i) {
          const uint32_t low = words[kWords + i];
          words[i] = L::kOfWords ? low : __funnelshift_r(low, words[kWords + i + 1], bits);
        }
        memcpy(at_pack, words, L::kPack);
        slot += L::kOfWarp;
      }
    }
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
      __syncwarp();
      a.elements.template PlaceCommons<N>(Rows{places, shared});
      a.base.store.template PlaceCommons<N>(Rows{places, shared + kLoadBytes});
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
  held.Load(row);
  Exchange exchange(odd_shared);  // behind the loads, which are to be under way first
  FinishOddRow(a, row, held, [&](auto& of) {
    exchange.Send(of.template Gather<kWarp, false>(held, row));
    of.template Begin<false>(of.Merge(exchange.Receive(), kParts));
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
