// SPDX-License-Identifier: Apache-2.0
//
// Work along the middle axis of outer x axis x inner by blocks that keep their slab on chip: some
// neighbouring inner columns over the whole axis, or over a share of it where the blocks of a
// cluster have a slab together. A thread owns one pack of columns at every so many positions of the
// axis: the first kHeld packs stay in its registers, further ones in its own place in shared
// memory, where they arrive by asynchronous copies. All loads are in flight before anything is
// computed, and the threads of a column exchange what they found once.
//
// What is computed is an algorithm's matter, a small struct A with
//   T, N, kInputs     elements of a pack; tensors that are read
//   Raw               a pack of each, as it waits: StowedPack<T, N> input[kInputs]
//   Stat, Merge       what is known of a column, and how two such merge (AxisExchange)
//   const T* Input(int i)
//   Gather(Part&, int first, int last, Stat (&)[N])
//                     of a slab: what the part tells, merged over the lanes that are first,
//                     2 first ... last / 2 away
//   AddBatch(const Raw (&)[kBatch], int count, Stat (&)[N])
//                     of a streamed slab (axis/stream.cuh): adds `count` packs
//   Stat Conclude(const Stat&)             what a column's merged Stat means to Store
//   Rebase(const Stat& own, Stat&)         per thread of a slab, with what its Gather found
//   Pack<T, N> Result<kSlab>(const Raw&, const Stat (&)[N]); T* Output()
//   T Nothing()                            an element that changes no Stat
#pragma once

#include "primitive/cuda/axis/policy.h"
#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/cluster.cuh"
#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/chip/pack.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"

namespace oneflow_lite::cuda {

// How the threads that share columns merge what each has found: across the warps of a block
// through shared memory, across the blocks of a cluster by stores that a barrier object of the
// receiver counts, so that nobody waits for what a thread has written to memory. The order of
// merging is fixed.

// Stat has 4, 8 or 16 bytes; Stat() adds nothing. Merge is a symmetric functor. A thread has the
// kColumns columns of its lane, those of neighbouring lanes follow one another, and the other
// threads of the block have the same columns again.
template <class Stat, class Merge, int kColumns>
class AxisExchange {
 public:
  static_assert(sizeof(Stat) % 4 == 0);

  // `scratch` is shared memory of AxisScratch bytes (axis/policy.h), aligned to 16 bytes, at the
  // same place in every block.
  OFL_DEVICE AxisExchange(char* scratch, const AxisShape& p)
      : barrier_(scratch),
        lanes_(p.lanes),
        rows_(static_cast<int>(blockDim.x) / kWarp),
        columns_(p.lanes * kColumns),
        result_(reinterpret_cast<Stat*>(scratch + kAxisBarrierBytes)) {
    incoming_ = result_ + columns_ + 1;
    const int blocks = static_cast<int>(internal::ClusterSize());
    own_ = incoming_ + (blocks > 1 ? (columns_ + 1) * blocks : 0);
  }
  // Before MergeCluster, early: all threads of all blocks.
  OFL_DEVICE void Open() {
    if (threadIdx.x == 0) {
      barrier_.Init();
      ClusterBarrier::Publish();
    }
    internal::ClusterArriveRelaxed();
  }

  // What the warps' first lanes have found becomes what the block has, concluded by the caller, and
  // every thread reads its columns.
  template <class Conclude>
  OFL_DEVICE void MergeBlock(Stat (&stat)[kColumns], Conclude conclude) {
    Put(stat);
    MergeMemory([&](int column) { return OwnOf(column); }, rows_, stat, conclude);
  }
  // The same over all blocks of the cluster. Once.
  template <class Conclude>
  OFL_DEVICE void MergeCluster(Stat (&stat)[kColumns], Conclude conclude) {
    const int rank = static_cast<int>(internal::ClusterRank());
    const int size = static_cast<int>(internal::ClusterSize());
    Put(stat);
    internal::ClusterWait();  // the others' barriers are there
    if (threadIdx.x == 0) barrier_.Expect(size * columns_ * static_cast<int>(sizeof(Stat)));
    MergeRows([&](int column) { return OwnOf(column); }, rows_,
              [&](int column, int member, int members, const Stat& merged) {
                Stat* slot = incoming_ + rank * (columns_ + 1) + column;
                for (int r = member; r < size; r += members) barrier_.Send(slot, r, merged);
              });
    barrier_.Await(0);
    const auto incoming = [&](int column) {
      return [column, this](int row) { return incoming_[row * (columns_ + 1) + column]; };
    };
    MergeMemory(incoming, size, stat, conclude);
  }
  // The same of rows in memory: row r of a column is at(column)(r).
  template <class At, class Conclude>
  OFL_DEVICE void MergeMemory(At at, int rows, Stat (&stat)[kColumns], Conclude conclude) {
    MergeRows(at, rows, [&](int column, int member, int, const Stat& merged) {
      if (member == 0) result_[column] = conclude(merged);
    });
    Take(stat);
  }

 private:
  // A row of own_ is one longer than it has columns, so that no two rows lie in the same banks.
  OFL_DEVICE int OwnRow() const { return lanes_ * kColumns + 1; }
  // What the rows found of a column: a functor of the row.
  OFL_DEVICE auto OwnOf(int column) const {
    return [column, own = own_, stride = OwnRow()](int row) { return own[row * stride + column]; };
  }
  OFL_DEVICE void Put(const Stat (&stat)[kColumns]) {
    const int t = static_cast<int>(threadIdx.x), row = t / kWarp, lane = t % kWarp;
    if (lane < lanes_) {
#pragma unroll
      for (int i = 0; i < kColumns; ++i) own_[row * OwnRow() + i * lanes_ + lane] = stat[i];
    }
    __syncthreads();
  }
  OFL_DEVICE void Take(Stat (&stat)[kColumns]) {
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x) % lanes_;
#pragma unroll
    for (int i = 0; i < kColumns; ++i) stat[i] = result_[i * lanes_ + lane];
  }
  // A column's rows are dealt to `members` neighbouring lanes. All threads of the block.
  template <class At, class Use>
  OFL_DEVICE void MergeRows(At at, int rows, Use use) {
    int members = 1;
    while (members < rows && members < kWarp) members *= 2;
    const int member = static_cast<int>(threadIdx.x) & (members - 1);
    const int first = static_cast<int>(threadIdx.x) / members;
    for (int base = 0; base < columns_; base += static_cast<int>(blockDim.x) / members) {
      const int column = base + first;  // whole warps stay together for the shuffles
      Stat merged = Stat();
      if (column < columns_) {
        const auto from = at(column);
        for (int r = member; r < rows; r += members) merged = Merge{}(merged, from(r));
      }
      for (int mask = members / 2; mask > 0; mask /= 2) {
        merged = Merge{}(merged, ShuffleXor(merged, mask));
      }
      if (column < columns_) use(column, member, members, merged);
    }
  }

  ClusterBarrier barrier_;
  int lanes_, rows_, columns_;
  Stat *result_, *incoming_, *own_;
};

// Which elements are a thread's: its k-th pack of N lies at offset + k * step, for
// k * stride < rest.
template <int N>
struct AxisThread {
  int64_t offset, step, rest;
  int64_t stride;
  int lane;

  // Of tile `tile`, whose positions are dealt to `parts` blocks.
  OFL_DEVICE AxisThread(const AxisShape& p, int64_t tile, int part, int parts) {
    const unsigned t = threadIdx.x, row_of_lanes = t / static_cast<unsigned>(p.lanes);
    const unsigned slab = row_of_lanes / static_cast<unsigned>(p.ways);
    const int way = part * p.ways + static_cast<int>(row_of_lanes - slab * p.ways);
    lane = static_cast<int>(t - row_of_lanes * p.lanes);
    const int64_t column = (tile * p.slabs + slab) * p.lanes + lane;
    const int64_t row = p.inner / N;  // packs
    const int64_t outer = (column | row) >> 32 == 0
                              ? static_cast<uint32_t>(column) / static_cast<uint32_t>(row)
                              : column / row;
    stride = int64_t{p.ways} * parts;
    step = p.inner * stride;
    const int64_t first = (column - outer * row) * N;
    offset = (outer * p.axis + way) * p.inner + first;
    const bool active = column < p.columns && slab < static_cast<unsigned>(p.slabs);
    rest = active ? p.axis - way : 0;
  }
};

template <int kBytes>
OFL_DEVICE void CopyPackAsync(void* shared, const void* global) {
  if constexpr (kBytes == 16) {
    CopyAsync(shared, global, 16);
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 :
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
                   "l"(__cvta_generic_to_global(global)), "n"(kBytes)
                 : "memory");
  }
}

// A thread's packs.
template <class A, int kHeld>
class AxisPart {
 public:
  static constexpr int N = A::N, kInputs = A::kInputs;
  using T = typename A::T;
  using Raw = typename A::Raw;
  static constexpr bool kShares = sizeof(T) * N >= 4;  // what an asynchronous copy takes

  OFL_DEVICE AxisPart(char* shared, int shared_packs, const AxisThread<N>& me)
      : slots_(reinterpret_cast<OnChipPack<T, N>*>(shared)),
        shared_(shared_packs),
        rest_(static_cast<int>(me.rest)),
        stride_(static_cast<int>(me.stride)) {}

  OFL_DEVICE void Load(const A& a, const AxisThread<N>& me) {
    const T* from[kInputs];
#pragma unroll
    for (int i = 0; i < kInputs; ++i) from[i] = a.Input(i) + me.offset;
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      if (k * stride_ < rest_) {
#pragma unroll
        for (int i = 0; i < kInputs; ++i) {
          held_[k].input[i] = StowedPack<T, N>::Of(LoadAlignedPack<N>(from[i]));
        }
      }
#pragma unroll
      for (int i = 0; i < kInputs; ++i) from[i] += me.step;
    }
    if constexpr (kShares) {
      for (int j = 0; j < shared_ && (kHeld + j) * stride_ < rest_; ++j) {
#pragma unroll
        for (int i = 0; i < kInputs; ++i) {
          CopyPackAsync<sizeof(T) * N>(Slot(j, i), from[i]);
          from[i] += me.step;
        }
      }
      CommitCopies();
    }
  }
  // Until all of it is there.
  OFL_DEVICE void Wait() {
    if constexpr (kShares) WaitForCopiesOf<0>();
  }
  // f(Raw&) for every pack, along the axis. kWrite: f changes it.
  template <bool kWrite, class F>
  OFL_DEVICE void Visit(F f) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k) {
      if (k * stride_ < rest_) f(held_[k]);
    }
    if constexpr (kShares) {
      for (int j = 0; j < shared_ && (kHeld + j) * stride_ < rest_; ++j) {
        Raw raw;
#pragma unroll
        for (int i = 0; i < kInputs; ++i) raw.input[i] = StowedPack<T, N>::Of(Slot(j, i)->Get());
        f(raw);
        if constexpr (kWrite) {
#pragma unroll
          for (int i = 0; i < kInputs; ++i) Slot(j, i)->Put(raw.input[i].Get());
        }
      }
    }
  }

 private:
  OFL_DEVICE OnChipPack<T, N>* Slot(int j, int i) {
    return slots_ + (j * kInputs + i) * blockDim.x + threadIdx.x;
  }
  OnChipPack<T, N>* slots_;
  int shared_, rest_, stride_;
  Raw held_[kHeld];
};

// Packs that a thread keeps in registers, per input: 16 to 32 registers in all; and packs that it
// may have, and has where a part of a warp has a slab.
template <class A>
struct AxisPacks {
  static constexpr int kBytes = A::N * static_cast<int>(sizeof(typename A::T));
  static constexpr int kHeld = kBytes == 2 ? 32 / A::kInputs : 64 / kBytes;
  static constexpr int kMost = kBytes == 16 ? 16 : kBytes == 2 ? kHeld : 32;
  static constexpr int kFew = kBytes == 16 ? 8 / A::kInputs : 4;
};

template <class A>
using AxisExchangeOf = AxisExchange<typename A::Stat, typename A::Merge, A::N>;

// A slab per block or per cluster of blocks, or several narrow ones per block.
template <class A>
__global__ void __launch_bounds__(AxisPolicy::kMaxThreads, 2) AxisSlabKernel(A a, AxisShape p) {
  constexpr int N = A::N;
  extern __shared__ __align__(16) char shared[];
  const int size = static_cast<int>(internal::ClusterSize());
  const int rank = static_cast<int>(internal::ClusterRank());
  const int threads = p.lanes * p.ways;
  AxisExchangeOf<A> exchange(shared + p.kept_bytes, p);
  if (size > 1) exchange.Open();
  const auto conclude = [&](const typename A::Stat& s) { return a.Conclude(s); };
  const AxisThread<N> me(p, blockIdx.x / size, rank, size);
  AxisPart<A, AxisPacks<A>::kHeld> part(shared, p.shared_packs, me);
  part.Load(a, me);
  typename A::Stat own[N], stat[N];
  a.Gather(part, p.lanes, threads < kWarp ? threads : kWarp, own);
#pragma unroll
  for (int i = 0; i < N; ++i) stat[i] = own[i];
  if (size > 1) {
    exchange.MergeCluster(stat, conclude);
  } else if (threads > kWarp) {
    exchange.MergeBlock(stat, conclude);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) stat[i] = conclude(stat[i]);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) a.Rebase(own[i], stat[i]);
  typename A::T* to = a.Output() + me.offset;
  part.template Visit<false>([&](const typename A::Raw& raw) {
    StoreAlignedPack<N>(to, a.template Result<true>(raw, stat));
    to += me.step;
  });
}

}  // namespace oneflow_lite::cuda
