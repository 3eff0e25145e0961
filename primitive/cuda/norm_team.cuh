// SPDX-License-Identifier: Apache-2.0
//
// Teams of threads (norm_policy.h) that stay for a whole launch and visit row after row. Each
// thread copies its packs of the next rows into a ring of stages in shared memory while the team
// works on the current one. Its columns are the same in every row, so that weights wait on chip and
// gradients of weights gather in registers: a team's rows all start at the same distance from a
// multiple of 16 bytes (the plan sees to that).
#pragma once

#include "primitive/cuda/async_copy.cuh"
#include "primitive/cuda/cluster_exchange.cuh"
#include "primitive/cuda/norm_math.cuh"
#include "primitive/cuda/norm_policy.h"

namespace oneflow_lite {
namespace cuda {

// Where a launch's teams are.
struct NormGrid {
  int team, slices, stages;
  bool cluster;  // the slices of a row are a cluster, which exchanges its sums
};

inline constexpr int kNormScratchBytes =
    ClusterExchange::kScratchBytes + 2 * NormPolicy::kMaxWarps * kReduceSlotBytes;

// Threads that a block may have, and for which its shared memory is laid out.
template <int kPacks>
inline constexpr int kNormThreads = kPacks == 1 ? NormPolicy::kFewThreads : NormPolicy::kThreads;

// One thread's part in its team. kInputs tensors of T are copied per row; kAligned: every row of
// every tensor starts at a multiple of 16 bytes.
template <class T, int kPacks, int kInputs, bool kAligned>
class NormTeam {
 protected:
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<T>;
  using Values = Pack<C, N>;
  static constexpr int kWordBytes = kNormThreads<kPacks> * kPackBytes;  // 16 of every thread
  static constexpr int kStageBytes = kInputs * kPacks * kWordBytes;
  static constexpr int kWeightBytes = kPacks * static_cast<int>(sizeof(Values)) / kPackBytes *
                                      kWordBytes;  // of a weight or bias, in the compute type

  // `anchor`: the tensor, dense, whose 16-byte boundaries the packs follow.
  __device__ __forceinline__ NormTeam(const NormGrid& grid, char* shared, const T* anchor,
                                      int64_t rows, int64_t cols)
      : grid_(grid), shared_(shared) {
    const int team = threadIdx.x / grid.team, teams = blockDim.x / grid.team;
    const int rank = threadIdx.x % grid.team;
    slice_ = blockIdx.x % grid.slices;
    unit_ = blockIdx.x / grid.slices;
    step_ = int64_t{gridDim.x / grid.slices} * teams;
    row_ = int64_t{unit_} * teams + team;
    // All lanes of a warp take as many turns as its first.
    const int lead = grid.team < kWarp ? team % (kWarp / grid.team) : 0;
    turns_ = TurnsFrom(row_, rows);
    warp_turns_ = TurnsFrom(row_ - lead, rows);
    while (span_ * kWarp < grid.team) span_ *= 2;
    const PaddedRow<N> padded(anchor + row_ * cols, cols);
    shift_ = padded.shift;
    column_ = padded.Column(int64_t{slice_} * grid.team * kPacks + rank);
    const int64_t left = cols - column_;
    left_ = left < (1 << 30) ? static_cast<int>(left) : 1 << 30;
    edge_ = !kAligned && (column_ < 0 || left_ % (grid.team * N) < N);
  }

  __device__ __forceinline__ int TurnsFrom(int64_t row, int64_t rows) const {
    return row < rows ? static_cast<int>((rows - row + step_ - 1) / step_) : 0;
  }

  // The block's columns: [first, first + count).
  struct Columns {
    int64_t first, count;
  };
  __device__ __forceinline__ Columns ColumnsOfBlock(int64_t cols) const {
    if (grid_.slices == 1) return {0, cols};
    const int64_t capacity = int64_t{grid_.team} * kPacks * N;
    const int64_t begin = slice_ * capacity - shift_, first = begin > 0 ? begin : 0;
    const int64_t end = begin + capacity < cols ? begin + capacity : cols;
    return {first, end > first ? end - first : 0};
  }

  // Pack k of this thread: whether it has columns, where it starts, which of its elements count.
  __device__ __forceinline__ int Offset(int k) const { return k * grid_.team * N; }
  __device__ __forceinline__ bool Has(int k) const { return Offset(k) < left_; }
  __device__ __forceinline__ int First(int k) const {
    if (!edge_) return 0;
    return k == 0 && column_ < 0 ? static_cast<int>(-column_) : 0;
  }
  __device__ __forceinline__ int Last(int k) const {
    if (!edge_) return N;
    const int left = left_ - Offset(k);
    return left < N ? left : N;
  }

  // Packs of this thread in shared memory, words of 16 bytes that lie a block's words apart.
  template <class P>
  __device__ __forceinline__ static P Read(const char* slots, int index) {
    constexpr int kWords = sizeof(P) / kPackBytes;
    uint4 words[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      words[i] = *reinterpret_cast<const uint4*>(slots + (index * kWords + i) * kWordBytes);
    }
    P pack;
    memcpy(&pack, words, sizeof(P));
    return pack;
  }
  template <class P>
  __device__ __forceinline__ static void Write(char* slots, int index, const P& pack) {
    constexpr int kWords = sizeof(P) / kPackBytes;
    uint4 words[kWords];
    memcpy(words, &pack, sizeof(P));
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      *reinterpret_cast<uint4*>(slots + (index * kWords + i) * kWordBytes) = words[i];
    }
  }
  // Pack `index` of this thread in a stage.
  __device__ __forceinline__ static T* Slot(char* slots, int index) {
    return reinterpret_cast<T*>(slots + index * kWordBytes);
  }

  // This thread's part of a weight or bias (LoadWeights), as it is kept in shared memory.
  __device__ __forceinline__ Values WeightsInMemory(const void* weights, bool is_float, int k,
                                                    C missing) const {
    return LoadWeights<C, N, T>(weights, is_float, column_ + Offset(k), First(k),
                                Has(k) ? Last(k) : 0, missing);
  }

  // The elements [first, last) of a pack. Not unrolled: rare, and it would cost registers.
  __device__ __forceinline__ static void CopyEach(T* to, const T* from, int first, int last) {
#pragma unroll 1
    for (int i = first; i < last; ++i) to[i] = from[i];
  }
  // Starts copying the packs of a row of one tensor into slots from `index` on; p: the first pack.
  // alike: p is at a multiple of 16 bytes. What lies around a row in its first and last 16 bytes is
  // copied too, and not used; `last`: the tensor may end with the row.
  __device__ __forceinline__ void Copy(char* slots, int index, const T* p, bool alike,
                                       bool last) const {
    if (kAligned || (alike && !last)) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (Has(k)) CopyAsync(Slot(slots, index + k), p + Offset(k), kPackBytes);
      }
    } else if (alike) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (!Has(k)) continue;
        CopyAsync(Slot(slots, index + k), p + Offset(k), Last(k) * static_cast<int>(sizeof(T)));
      }
    } else {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (Has(k)) CopyEach(Slot(slots, index + k), p + Offset(k), First(k), Last(k));
      }
    }
  }

  // Stores pack k of a row; p: the row's first pack of this thread. aligned: p is, to 16 bytes.
  __device__ __forceinline__ void Store(T* p, int k, const Pack<T, N>& pack, bool aligned) const {
    const int first = First(k), last = Last(k);
    T* const to = p + Offset(k);
    if (kAligned || (aligned && (!edge_ || (first == 0 && last == N)))) {
      StoreAlignedPack(to, pack);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (i >= first && i < last) to[i] = pack.v[i];
      }
    }
  }

  // To be called before a cluster's first exchange, and once its last is over.
  __device__ __forceinline__ void StartCluster() {
    if (grid_.cluster) cluster_.Start(shared_);
  }
  __device__ __forceinline__ void FinishCluster() {
    if (grid_.cluster) cluster_.Finish();
  }

  // The sum over the team: the same bits in every thread. Sums: at most kReduceSlotBytes.
  template <class Sums>
  __device__ __forceinline__ Sums Reduce(Sums sums) {
#pragma unroll
    for (int mask = kWarp / 2; mask > 0; mask /= 2) {
      if (mask < grid_.team) sums = sums + ShuffleXor(sums, mask);
    }
    if (grid_.team <= kWarp) return sums;
    // The two halves alternate: see Block.
    char* slots = shared_ + ClusterExchange::kScratchBytes +
                  phase_ * NormPolicy::kMaxWarps * kReduceSlotBytes;
    phase_ ^= 1;
    const int lane = threadIdx.x % kWarp, team = threadIdx.x / grid_.team;
    if (lane == 0) {
      *reinterpret_cast<Sums*>(slots + threadIdx.x / kWarp * kReduceSlotBytes) = sums;
    }
    NamedBarrier(team + 1, grid_.team);
    const int warps = grid_.team / kWarp, warp = lane & (span_ - 1);
    Sums all;
    if (warp < warps) {
      all = *reinterpret_cast<const Sums*>(slots + (team * warps + warp) * kReduceSlotBytes);
    }
#pragma unroll 1
    for (int mask = span_ / 2; mask > 0; mask /= 2) all = all + ShuffleXor(all, mask);
    return all;
  }

  const NormGrid& grid_;
  char* const shared_;
  ClusterExchange cluster_;
  int phase_ = 0;
  int span_ = 1;  // a power of two, at least the team's warps
  int slice_, shift_, left_, turns_, warp_turns_;
  bool edge_;  // whether a pack of this thread reaches over an end of the row
  int64_t unit_, step_, row_, column_;
};

}  // namespace cuda
}  // namespace oneflow_lite
