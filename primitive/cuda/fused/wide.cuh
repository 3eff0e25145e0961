// SPDX-License-Identifier: Apache-2.0
//
// Fused rows in kernels that are compiled for their threads. Whole ones (fused/whole.cuh) whose
// values are computed once: single blocks, and clusters where loads are costly or read several
// matrices. There 16-bit elements are twice as large as values. Registers alone hold too few of
// them to keep the memory busy, so some wait in shared memory, which has nothing else to hold here.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/fused/copies.cuh"
#include "primitive/cuda/fused/whole.cuh"

namespace oneflow_lite::cuda {

// A row per block of kThreads threads, or per cluster of kBlocks of them; a multiprocessor has room
// for kResident blocks.
template <int kPacks, int kParked, bool kFull, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedShareKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  using Blocks = FusedBlocks<A, kThreads, kBlocks>;
  extern __shared__ __align__(kFusedSharedAlignment) char share_shared[];
  HeldValues<A, PacksOfThread<A::kPack, kPacks, kFull, kThreads, kBlocks>, kParked, true> held{
      {{}, static_cast<int>(cols / A::kPack), Blocks::rank()},
      reinterpret_cast<uint4*>(share_shared + Blocks::kBytes) + threadIdx.x};
  Blocks::Run(a, internal::ClusterIndex(), rows, held, share_shared);
}

// Fused rows of whole packs (fused/whole.cuh) that are too wide for values in registers, of an
// expression that is cheap enough to be computed at two visits. The input stays in registers as it
// lies in memory. What serves all rows, a bias or a norm's weights, is copied to shared memory
// meanwhile: read where it is used it would be waited for pack by pack, twice.

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

// Inputs that stay as they lie in memory, of which the values are computed at each visit. What
// serves all rows of the first kKept packs stays in registers too: shared memory is taken from the
// L1, through which all loads pass. `first` is where the others are in shared memory.
template <class A, class Places, int kKept>
struct HeldInputs {
  static constexpr int N = A::kPack, kPacks = Places::kPacks;
  static constexpr bool kHolds = false;
  using Elements = typename A::Elements;
  using Store = decltype(A::Base::store);
  // Whether it is Store's operand that is beside the inputs. Others of Store's are read when they
  // are used: more shared memory costs more.
  static constexpr bool kForStore =
      Elements::template kCommonBytes<N> == 0 && Store::template kCommonBytes<N> <= kPackBytes;
  static constexpr bool kNoOperands =
      Elements::template kCommonBytes<N> == 0 && Store::template kCommonBytes<N> == 0;
  Places places;
  const A& a;
  char* first;
  typename Elements::Constants constants;
  typename Elements::template Inputs<N> inputs[kPacks];
  typename Elements::template Commons<N> commons[kKept + 1];  // and one, for there may be none
  typename Store::template Commons<N> store_commons[kKept + 1];
  typename Elements::template Inputs<1> input;  // of a column outside packs
  typename Elements::template Commons<1> common;

  OFL_DEVICE OperandSlots Slots(int k) const {
    constexpr int kThreads = Places::kThreads, kSlots = (kPacks - kKept) * kThreads;
    return {first, (k - kKept) * kThreads + static_cast<int>(threadIdx.x), kSlots};
  }

  OFL_DEVICE void Load(const Elements& at_row, int64_t row) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!places.Has(k)) continue;
      inputs[k] = at_row.template LoadInputs<Access::kAligned, N>(row, places.Column(k));
    }
    if constexpr (Places::kOdd) {
      const int col = places.extra;
      if (col >= 0) input = at_row.template LoadInputs<Access::kAny, 1>(row, col);
      WaitForPreviousKernel();
      if (col >= 0) common = a.elements.template LoadCommons<Access::kAny, 1>(row, col);
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int col = places.Column(k);
      if (k < kKept) {
        commons[k] = a.elements.template LoadCommons<Access::kAligned, N>(row, col);
        if (kForStore) store_commons[k] = StoreFromMemory(a.base.store, k);
      } else if (places.Has(k)) {
        a.elements.template CopyCommons<N>(col, Slots(k));
        if (kForStore) a.base.store.template CopyCommons<N>(col, Slots(k));
      }
    }
    CommitCopies();
    constants = a.elements.Begin(row);
  }
  OFL_DEVICE auto Value(int k) const {
    if (k < kKept) return a.elements.template Apply<N>(inputs[k], commons[k], constants);
    return a.elements.template Apply<N>(inputs[k], a.elements.template ReadCommons<N>(Slots(k)),
                                        constants);
  }
  // Pack by pack, or operands of many would be read early, and spilled. Where there are no
  // operands to wait for, values of many would be computed early, and spilled
  // (docs/lab/24-fused-loads-details.md).
  template <bool kLast = false, class F>
  OFL_DEVICE void Each(F&& f) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!kLast || kNoOperands) __syncwarp();
      if (!places.Has(k)) continue;
      auto v = Value(k);
      f(v, k);
    }
    if constexpr (Places::kOdd) {
      if (places.extra < 0) return;
      auto v = a.elements.template Apply<1>(input, common, constants);
      f(v, kPacks);
    }
  }
  template <class F>
  OFL_DEVICE void EachAgain(int64_t row, F&& f) const {
    EachPackFromMemory(a.elements, row, constants, places, kPacks, f);
  }
  OFL_DEVICE auto StoreCommons(const Store& store, int k) const {
    if (!kForStore) return StoreFromMemory(store, k);
    return k < kKept ? store_commons[k] : store.template ReadCommons<N>(Slots(k));
  }

 private:
  OFL_DEVICE auto StoreFromMemory(const Store& store, int k) const {
    return store.template LoadCommons<Access::kAligned, N>(0, places.Column(k));
  }
};

// A row per block of kThreads threads, or per cluster of kBlocks of them; a multiprocessor has
// room for kResident blocks.
template <int kPacks, int kKept, bool kFull, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedWideKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  using Blocks = FusedBlocks<A, kThreads, kBlocks>;
  static_assert(sizeof(typename Blocks::Part) == kFusedPartBytes || sizeof(typename A::C) == 8, "");
  extern __shared__ __align__(kFusedSharedAlignment) char wide_shared[];
  HeldInputs<A, PacksOfThread<A::kPack, kPacks, kFull, kThreads, kBlocks>, kKept> held{
      {{}, static_cast<int>(cols / A::kPack), Blocks::rank()}, a, wide_shared + Blocks::kBytes};
  Blocks::Run(a, internal::ClusterIndex(), rows, held, wide_shared);
}

// Rows whose ends lie inside packs of 16 bytes (narrow ones: fused/lanes.cuh), where every matrix
// with a row for each begins at one: their packs lie alike, so that all are read as they are
// written. What serves all rows, a bias or a norm's weights, is read from a copy that lies as the
// row does (fused/copies.cuh). The first and the last whole pack count among the columns outside
// packs, at most one a thread of the first warp: nothing outside a row is read then.

// PacksOfThread of such a row, and maybe a column outside packs. Threads have all kPacks packs but
// the last one.
template <int N_, int kPacks_, int kThreads_, int kBlocks>
struct OddPacksOfShare {
  static constexpr int N = N_, kPacks = kPacks_, kThreads = kThreads_, kSize = kThreads * kBlocks;
  static constexpr bool kOdd = true;
  static constexpr int kExtras = 1;
  int packs, rank, first;  // the column of the thread's first pack
  int extra;               // a column outside packs, or -1
  int extras;              // of them

  OFL_DEVICE OddPacksOfShare(int head, int cols, int rank) : rank(rank) {
    packs = (cols - head) / N - 2;
    first = head + (rank + 1) * N;
    extras = cols - packs * N;
    extra = rank >= extras ? -1 : rank < head + N ? rank : rank + packs * N;
  }
  OFL_DEVICE bool Has(int k) const { return k + 1 < kPacks || rank + k * kSize < packs; }
  OFL_DEVICE int Column(int k) const { return first + k * kSize * N; }
  OFL_DEVICE bool HasExtra(int) const { return extra >= 0; }
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

// A row per block of kThreads threads, or per cluster of kBlocks of them, held as values; a
// multiprocessor has room for kResident blocks.
template <int kPacks, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedOddValuesKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  using Blocks = FusedBlocks<A, kThreads, kBlocks>;
  extern __shared__ __align__(16) char odd_values_shared[];
  const int64_t row = internal::ClusterIndex();
  const int head = a.base.store.Head(row);
  const A beside = a.Beside(head);
  HeldValues<A, OddPacksOfShare<A::kPack, kPacks, kThreads, kBlocks>> held{
      {head, static_cast<int>(cols), Blocks::rank()}};
  Blocks::Run(beside, row, rows, held, odd_values_shared);
}

// The same, held as inputs, all operands in shared memory.
template <int kPacks, int kThreads, int kBlocks, int kResident, class A>
__global__ void __launch_bounds__(kThreads, kResident)
    FusedOddWideKernel(const __grid_constant__ A a, int64_t rows, int64_t cols) {
  using Blocks = FusedBlocks<A, kThreads, kBlocks>;
  extern __shared__ __align__(kFusedSharedAlignment) char odd_wide_shared[];
  static_assert(kPacks > 1, "every lane has the first");
  const int64_t row = internal::ClusterIndex();
  const int head = a.base.store.Head(row);
  const A beside = a.Beside(head);
  HeldInputs<A, OddPacksOfShare<A::kPack, kPacks, kThreads, kBlocks>, 0> held{
      {head, static_cast<int>(cols), Blocks::rank()}, beside, odd_wide_shared + Blocks::kBytes};
  Blocks::Run(beside, row, rows, held, odd_wide_shared);
}

}  // namespace oneflow_lite::cuda
