// SPDX-License-Identifier: Apache-2.0
//
// Fused rows in kernels that are compiled for their threads, held in one of two ways:
//   values   computed once: single blocks, and clusters where loads are costly or read several
//            matrices. 16-bit elements are twice as large then, and registers hold too few of them
//            to keep the memory busy, so some wait in shared memory.
//   inputs   as they lie in memory, for expressions that are cheap enough to be computed at two
//            visits: rows that are too wide for values. What serves all rows, a bias or a norm's
//            weights, is copied to shared memory meanwhile: read where it is used it would be
//            waited for pack by pack, twice.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/fused/copies.cuh"
#include "primitive/cuda/fused/whole.cuh"

namespace oneflow_lite::cuda {

// Where a thread finds the packs of one operand after the other in shared memory, each at `slot`
// of `slots`.
struct OperandSlots {
  char* at;
  int slot, slots;

  template <int N, class T>
  static constexpr int kBytes =
      (N * static_cast<int>(sizeof(T)) + kPackBytes - 1) / kPackBytes* kPackBytes;

  // N elements from p on, aligned as LoadOperand<kAligned> wants it: on their way until
  // WaitForCopiesOf<0>.
  template <int N, class T>
  OFL_DEVICE void Copy(const T* p) {
    char* to = Next<kBytes<N, T>>();
    if constexpr (N * sizeof(T) % kPackBytes == 0) {
#pragma unroll
      for (int i = 0; i < kBytes<N, T>; i += kPackBytes) {
        CopyAsync(to + i, reinterpret_cast<const char*>(p) + i, kPackBytes);
      }
    } else {
      const auto pack = LoadOperand<Access::kAligned, N>(p);
      memcpy(to, &pack, sizeof(pack));
    }
  }
  // By the thread that copied it.
  template <int N, class T>
  OFL_DEVICE StowedPack<T, N> Read() {
    uint4 words[kBytes<N, T> / kPackBytes];
    memcpy(words, __builtin_assume_aligned(Next<kBytes<N, T>>(), kPackBytes), sizeof(words));
    StowedPack<T, N> pack;
    memcpy(&pack.held, words, N * sizeof(T));
    return pack;
  }

 private:
  template <int kSize>
  OFL_DEVICE char* Next() {
    char* here = at + slot * kSize;
    at += slots * kSize;
    return here;
  }
};

// f(values) of every pack again, from memory and in little code: where what was found so far does
// not serve.
template <class Elements, class Places, class F>
OFL_DEVICE void EachPackFromMemory(const Elements& elements, int64_t row,
                                   const typename Elements::Constants& constants,
                                   const Places& places, int packs, F&& f) {
  constexpr int N = Places::N;
  const Elements here = elements.At(row);
#pragma unroll 1
  for (int k = 0; k < packs; ++k) {
    if (!places.Has(k)) continue;
    const int col = places.Column(k);
    const auto inputs = here.template LoadInputs<Access::kAligned, N>(row, col);
    const auto commons = elements.template LoadCommons<Access::kAligned, N>(row, col);
    f(elements.template Apply<N>(inputs, commons, constants));
  }
  if constexpr (Places::kOdd) {
    const int col = places.extra;
    if (col < 0) return;
    f(elements.template Apply<1>(here.template LoadInputs<Access::kAny, 1>(row, col),
                                 elements.template LoadCommons<Access::kAny, 1>(row, col),
                                 constants));
  }
}

// Inputs of kRows rows at once. What serves all rows of the first kKept packs stays in registers
// too: shared memory is taken from the L1, through which all loads pass. `first` is where the
// others are in shared memory.
template <class A, class Places, int kKept, int kRows = 1>
struct HeldInputs {
  static constexpr int N = A::kPack, kPacks = Places::kPacks;
  static constexpr bool kHolds = false;
  using Elements = typename A::Elements;
  using Store = decltype(A::Base::store);
  static constexpr int kOwnBytes = Elements::template kCommonBytes<N>;
  static constexpr int kStoreBytes = Store::template kCommonBytes<N>;
  // Whether Store's operands are beside the inputs. One row reads others when they are used: more
  // shared memory costs more.
  static constexpr bool kForStore = kRows > 1 || (kOwnBytes == 0 && kStoreBytes <= kPackBytes);
  static constexpr bool kNoOperands = kOwnBytes == 0 && kStoreBytes == 0;
  static_assert((kRows == 1 && !Places::kOdd) || kPacks > 1, "every lane has the first");
  Places places;
  const A& a;
  char* first;
  RowInputs<Elements, Places> inputs[kRows];
  typename Elements::template Commons<N> commons[kKept + 1];  // and one, for there may be none
  typename Store::template Commons<N> store_commons[kKept + 1];
  typename Elements::template Commons<1> common;  // of a column outside packs

  // All that is read is on its way then. Of two rows Store's operands are a batch of their own.
  OFL_DEVICE void Load(const A&, const int64_t (&rows)[kRows]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) inputs[r].Load(a.elements, places, rows[r]);
    if constexpr (Places::kOdd) {
      WaitForPreviousKernel();
      if (places.extra >= 0) {
        common = a.elements.template LoadCommons<Access::kAny, 1>(0, places.extra);
      }
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int col = places.Column(k);
      if (k < kKept) {
        commons[k] = a.elements.template LoadCommons<Access::kAligned, N>(0, col);
        if (kForStore) store_commons[k] = StoreFromMemory(a.base.store, k);
      } else if (places.Has(k)) {
        a.elements.template CopyCommons<N>(col, Slots(k));
        if (kForStore && kRows == 1) a.base.store.template CopyCommons<N>(col, StoreSlots(k));
      }
    }
    CommitCopies();
    if constexpr (kRows > 1) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (!places.Has(k)) continue;
        a.base.store.template CopyCommons<N>(places.Column(k), StoreSlots(k));
      }
      CommitCopies();
    }
  }
  // f(values, k, r) of every pack k of row r, and of a column outside packs as a pack of one. Pack
  // by pack, or operands of many would be read early, and spilled. Where there are no operands to
  // wait for, values of many would be computed early, and spilled
  // (docs/lab/24-fused-loads-details.md). In one loop: with two calls of f packs are in memory.
  template <bool kLast, class F>
  OFL_DEVICE void EachOfRows(F&& f) const {
    typename Elements::template Commons<N> operands;
#pragma unroll
    for (int i = 0; i < kRows * kPacks; ++i) {
      const int k = i / kRows, r = i % kRows;
      if (r == 0 && (!kLast || kNoOperands || kRows > 1)) __syncwarp();
      if (!places.Has(k)) continue;
      if (r == 0) operands = k < kKept ? commons[k] : a.elements.template ReadCommons<N>(Slots(k));
      auto v = a.elements.template Apply<N>(inputs[r].packs[k], operands, inputs[r].constants);
      f(v, k, r);
    }
    if constexpr (Places::kOdd) {
      if (places.extra < 0) return;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        auto v = a.elements.template Apply<1>(inputs[r].extras[0], common, inputs[r].constants);
        f(v, kPacks, r);
      }
    }
  }
  template <bool kLast = false, class F>
  OFL_DEVICE void Each(F&& f) const {
    EachOfRows<kLast>([&](auto& v, int k, int) { f(v, k); });
  }
  template <class F>
  OFL_DEVICE void EachAgain(int r, int64_t row, F&& f) const {
    EachPackFromMemory(a.elements, row, inputs[r].constants, places, kPacks, f);
  }
  OFL_DEVICE auto StoreCommons(const Store& store, int k) const {
    if (!kForStore) return StoreFromMemory(store, k);
    return k < kKept ? store_commons[k] : store.template ReadCommons<N>(StoreSlots(k));
  }

 private:
  OFL_DEVICE OperandSlots Slots(int k) const {
    constexpr int kThreads = Places::kThreads, kSlots = (kPacks - kKept) * kThreads;
    return {first, (k - kKept) * kThreads + static_cast<int>(threadIdx.x), kSlots};
  }
  // Behind those of the elements.
  OFL_DEVICE OperandSlots StoreSlots(int k) const {
    OperandSlots slots = Slots(k);
    slots.at += slots.slots * kOwnBytes;
    return slots;
  }
  OFL_DEVICE auto StoreFromMemory(const Store& store, int k) const {
    return store.template LoadCommons<Access::kAligned, N>(0, places.Column(k));
  }
};

// Rows whose ends lie inside packs of 16 bytes (narrow ones: fused/lanes.cuh), where every matrix
// with a row for each begins at one: their packs lie alike, so that all are read as they are
// written. What serves all rows, a bias or a norm's weights, is read from a copy that lies as the
// row does (fused/copies.cuh). The first and the last whole pack count among the columns outside
// packs, at most one a thread of the first warp: nothing outside a row is read then.

// PacksOfThread of such a row, and maybe a column outside packs. Threads have all kPacks packs but
// the last one.
template <int N_, int kPacks_, int kThreads_, int kBlocks_>
struct OddPacksOfShare {
  static constexpr int N = N_, kPacks = kPacks_, kThreads = kThreads_, kBlocks = kBlocks_;
  static constexpr int kSize = kThreads * kBlocks;
  static constexpr bool kOdd = true;
  static constexpr int kExtras = 1;
  static constexpr Access kAskew = Access::kInside;
  int packs, rank, first;  // the column of the thread's first pack
  int extra;               // a column outside packs, or -1
  int extras;              // of them

  OFL_DEVICE OddPacksOfShare(int head, int cols, int rank) : rank(rank) {
    packs = (cols - head) / N - 2;
    first = head + (rank + 1) * N;
    extras = cols - packs * N;
    extra = rank >= extras ? -1 : rank < head + N ? rank : rank + packs * N;
  }
  OFL_DEVICE static OddPacksOfShare Of(int head, int64_t cols, int rank) {
    return {head, static_cast<int>(cols), rank};
  }
  OFL_DEVICE bool Has(int k) const { return k + 1 < kPacks || rank + k * kSize < packs; }
  OFL_DEVICE int Column(int k) const { return first + k * kSize * N; }
  OFL_DEVICE bool HasExtra(int) const { return extra >= 0; }
  OFL_DEVICE int ExtraColumn(int) const { return extra; }
  // Columns of this thread's warp.
  template <int kLanes>
  OFL_DEVICE int Count() const {
    static_assert(kLanes == kWarp, "");
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int left = packs - (rank - lane + (kPacks - 1) * kSize);
    const int last = left < 0 ? 0 : left < kWarp ? left : kWarp;
    return ((kPacks - 1) * kWarp + last) * N + (rank < kWarp ? extras : 0);
  }
  // Makes the compiler work out columns anew from here on, rather than keep them.
  OFL_DEVICE void Forget() { asm volatile("" : "+r"(first), "+r"(rank)); }
};

// The shared memory of a block: what its warps exchange, and behind it packs that wait.
OFL_DEVICE char* FusedShared() {
  extern __shared__ __align__(kFusedSharedAlignment) char fused_shared[];
  return fused_shared;
}

// A cluster's row, held as values.
template <class Places, int kParked, class A>
OFL_DEVICE void RunValues(const A& a, int64_t rows, int64_t cols) {
  using Blocks = FusedBlocks<A, Places::kThreads, Places::kBlocks>;
  const int64_t row = internal::ClusterIndex();
  const int head = Places::kOdd ? a.base.store.Head(row) : 0;
  const A& beside = BesideRow<Places::kOdd>(a, head);
  HeldValues<A, Places, kParked, !Places::kOdd> held{
      Places::Of(head, cols, Blocks::rank()),
      reinterpret_cast<uint4*>(FusedShared() + Blocks::kBytes) + threadIdx.x};
  Blocks::Run(beside, row, rows, held, FusedShared());
}
// The same, held as inputs.
template <class Places, int kKept, class A>
OFL_DEVICE void RunInputs(const A& a, int64_t rows, int64_t cols) {
  using Blocks = FusedBlocks<A, Places::kThreads, Places::kBlocks>;
  static_assert(sizeof(typename Blocks::Part) == kFusedPartBytes || sizeof(typename A::C) == 8, "");
  const int64_t row = internal::ClusterIndex();
  const int head = Places::kOdd ? a.base.store.Head(row) : 0;
  const A& beside = BesideRow<Places::kOdd>(a, head);
  HeldInputs<A, Places, kKept> held{Places::Of(head, cols, Blocks::rank()), beside,
                                    FusedShared() + Blocks::kBytes};
  Blocks::Run(beside, row, rows, held, FusedShared());
}

// A row per block of kThreads threads, or per cluster of kBlocks of them; a multiprocessor has room
// for kResident blocks. Rows of whole packs, held as values and as inputs:
template <int kPacks, int kParked, bool kFull, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedShareKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  RunValues<PacksOfThread<A::kPack, kPacks, kFull, kThreads, kBlocks>, kParked>(a, rows, cols);
}
template <int kPacks, int kKept, bool kFull, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedWideKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  RunInputs<PacksOfThread<A::kPack, kPacks, kFull, kThreads, kBlocks>, kKept>(a, rows, cols);
}
// Odd ones, which have no operands in registers.
template <int kPacks, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedOddValuesKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  RunValues<OddPacksOfShare<A::kPack, kPacks, kThreads, kBlocks>, 0>(a, rows, cols);
}
template <int kPacks, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedOddWideKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  RunInputs<OddPacksOfShare<A::kPack, kPacks, kThreads, kBlocks>, 0>(a, rows, cols);
}

}  // namespace oneflow_lite::cuda
