// SPDX-License-Identifier: Apache-2.0
//
// Teams of threads (norms/policy.h) that stay for a whole launch and visit row after row. The next
// rows are copied into a ring of stages in shared memory while the team works on the current one. A
// thread's columns are the same in every row, so that weights wait on chip and gradients of weights
// gather in registers: a team's rows all start at the same distance from a multiple of 16 bytes
// (the plan sees to that).
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/cluster_exchange.cuh"
#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/chip/packs_on_chip.cuh"
#include "primitive/cuda/norms/math.cuh"
#include "primitive/cuda/norms/policy.h"
#include "primitive/cuda/rows/io.cuh"

namespace oneflow_lite::cuda {

// Sums of several values over a team of warps. A lane adds up one of them: which, changes with each
// step of the first few, so that they share the shuffles.

template <class C, int kValues>
class TeamSums {
  static constexpr int kPlaces = kValues > 2 ? 4 : kValues;
  static constexpr int kLanes = kWarp / kPlaces;  // that end up with the same value

 public:
  static constexpr int kMaxWarps = NormPolicy::kLeanWarps;
  static constexpr int kBytes = 2 * kPlaces * kMaxWarps * static_cast<int>(sizeof(C));

  // `shared`: kBytes of the team's own.
  OFL_DEVICE TeamSums(char* shared, int rank, int warps)
      : slots_(reinterpret_cast<C*>(shared)), warp_(rank / kWarp), warps_(warps) {}

  // Before the team meets; then Total.
  OFL_DEVICE void Post(const C (&values)[kValues]) {
    C v[kPlaces] = {};
#pragma unroll
    for (int i = 0; i < kValues; ++i) v[i] = values[i];
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int half = kPlaces / 2, mask = kWarp / 2; half > 0; half /= 2, mask /= 2) {
      const bool upper = lane & mask;
#pragma unroll
      for (int i = 0; i < half; ++i) {
        const C mine = upper ? v[i + half] : v[i], theirs = upper ? v[i] : v[i + half];
        v[i] = mine + ShuffleXor(theirs, mask);
      }
    }
    posted_ = v[0];
#pragma unroll
    for (int mask = kLanes / 2; mask > 0; mask /= 2) posted_ += ShuffleXor(posted_, mask);
    if (warps_ > 1 && lane % kLanes == 0) slots_[lane / kLanes * kMaxWarps + warp_] = posted_;
  }
  OFL_DEVICE void Total(C (&values)[kValues]) {
    const int lane = threadIdx.x % kWarp;
    C sum = posted_;
    if (warps_ > 1) {
      const C* const slots = slots_ + lane / kLanes * kMaxWarps;
      sum = 0;
#pragma unroll
      for (int w = 0; w < kMaxWarps; w += kLanes) {
        const int of = w + lane % kLanes;
        if (of < warps_) sum += slots[of];
      }
      constexpr int kFirst = kLanes < kMaxWarps ? kLanes / 2 : kMaxWarps / 2;
#pragma unroll
      for (int mask = kFirst; mask > 0; mask /= 2) sum += ShuffleXor(sum, mask);
      // The other half, which the next row's sums go to.
      slots_ += phase_ ? -kPlaces * kMaxWarps : kPlaces * kMaxWarps;
      phase_ = !phase_;
    }
#pragma unroll
    for (int i = 0; i < kValues; ++i) values[i] = __shfl_sync(0xffffffffu, sum, i * kLanes);
  }

 private:
  C* slots_;
  int warp_, warps_;
  bool phase_ = false;
  C posted_;
};

// Where a launch's teams are.
struct NormGrid {
  int team, slices, stages;
  int slack;     // bytes of a tensor in a stage beside those of its packs
  bool cluster;  // the slices of a row are a cluster, which exchanges its sums
};

// Bulk copies are faster where both ends lie alike between multiples of so many bytes.
inline constexpr int kNormLineBytes = 128;

inline constexpr int kNormBarrierBytes =
    NormPolicy::kMaxWarps * NormPolicy::kMaxStages * ClusterBarrier::kBytes;
inline constexpr int kNormScratchBytes =
    (ClusterExchange::kScratchBytes + 2 * NormPolicy::kMaxWarps * kReduceSlotBytes +
     kNormBarrierBytes + kNormLineBytes - 1) /
    kNormLineBytes * kNormLineBytes;

// Packs per thread of the wider teams: 16 columns, 8 of float64.
template <class T>
inline constexpr int kManyPacks = sizeof(T) == 2 ? 2 : 4;

// One thread's part in its team. kAligned: every row of every tensor starts at a multiple of 16
// bytes.
//
// Packs are whole and follow the 16-byte boundaries of an anchor, a dense tensor. A stage holds the
// words of 16 bytes of each tensor that a team's packs touch, as they lie in memory. Where its rows
// lie otherwise than the anchor's, a pack is made of two words. The few columns of a row in front
// of its packs and behind them are dealt out to the threads of the first block, one each.
template <class T, int kPacks, bool kAligned>
class NormTeam {
 protected:
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<T>;
  using Values = Pack<C, N>;
  static constexpr int kWordBytes = kWarp * kPackBytes;  // of a warp

  OFL_DEVICE NormTeam(const NormGrid& grid, char* shared, const T* anchor, int64_t rows,
                      int64_t cols)
      : grid_(grid), shared_(shared) {
    const int teams = blockDim.x / grid.team;
    team_ = threadIdx.x / grid.team;
    rank_ = threadIdx.x % grid.team;
    unit_ = blockIdx.x / grid.slices;
    step_ = static_cast<int>(gridDim.x / grid.slices) * teams;
    row_ = int64_t{unit_} * teams + team_;
    // All teams come to as many turns as the first.
    turns_ = TurnsFrom(row_, rows);
    block_turns_ = TurnsFrom(row_ - team_, rows);
    const RowSpan<N> span(kAligned ? 0 : ElementsToBoundary(anchor + row_ * cols), cols);
    const int64_t first = int64_t{slice()} * grid.team * kPacks;
    const int64_t packs = span.packs - first, capacity = int64_t{grid.team} * kPacks;
    packs_ = static_cast<int>(packs < 0 ? 0 : packs < capacity ? packs : capacity);
    column_ = span.PackColumn(first + rank_);
    extra_ = -1;
    // The last threads': the first ones start copies.
    const int extra = grid.team - 1 - rank_;
    if (!kAligned && slice() == 0 && extra < span.extras()) extra_ = span.Column(extra);
  }

  OFL_DEVICE int TurnsFrom(int64_t row, int64_t rows) const {
    return row < rows ? static_cast<int>((rows - row + step_ - 1) / step_) : 0;
  }
  OFL_DEVICE int slice() const { return blockIdx.x % grid_.slices; }

  // Pack k of this thread: whether there is one, and where it starts.
  OFL_DEVICE int Offset(int k) const { return k * grid_.team * N; }
  OFL_DEVICE bool Has(int k) const { return k * grid_.team + rank_ < packs_; }

  // Packs of this thread in shared memory, in words that lie a warp's words apart.
  template <class P>
  OFL_DEVICE static P Read(const char* slots, int index) {
    return LoadApart<P>(slots + index * static_cast<int>(sizeof(P)) * kWarp, kWarp);
  }
  template <class P>
  OFL_DEVICE static void Write(char* slots, int index, const P& pack) {
    StoreApart(slots + index * static_cast<int>(sizeof(P)) * kWarp, kWarp, pack);
  }

  // This thread's part of a weight or bias (LoadWeights), as it is kept in shared memory.
  OFL_DEVICE Values WeightsInMemory(const void* weights, bool is_float, int k, C missing) const {
    return LoadWeights<C, N, T>(weights, is_float, column_ + Offset(k), 0, Has(k) ? N : 0, missing);
  }

  // The team's part of a stage, which has a row of x and one of dy.
  OFL_DEVICE int TensorBytes() const { return grid_.team * kPacks * kPackBytes + grid_.slack; }
  OFL_DEVICE int StageBytes() const { return 2 * TensorBytes(); }
  // Pack k of a tensor, of which `words` is this thread's first word in a stage. past: bytes of
  // that in front of the pack, 0 where like.
  OFL_DEVICE Pack<T, N> PackOf(const char* words, int k, bool like, unsigned past) const {
    const char* const at = words + k * grid_.team * kPackBytes;
    if (kAligned || like) return LoadAlignedPack<N>(reinterpret_cast<const T*>(at));
    return ShiftedPackOnChip<T, N>(at, past);
  }

  // Where a team's words begin in its part of a stage, by where one of this thread's packs is.
  OFL_DEVICE int Shift(const T* pack) const {
    if (grid_.team <= kWarp) return 0;
    const auto low = static_cast<unsigned>(reinterpret_cast<uintptr_t>(pack));
    return static_cast<int>((low - rank_ * kPackBytes) & (kNormLineBytes - kPackBytes));
  }
  // The words of a team's packs in a row of one tensor.
  struct Span {
    const char* from;
    int bytes;
  };
  OFL_DEVICE Span SpanOf(const T* row) const {
    const auto begin = reinterpret_cast<uintptr_t>(row + (column_ - rank_ * N));
    const auto past = static_cast<unsigned>(begin) & (kPackBytes - 1);
    const int words = packs_ + (past > 0 && packs_ > 0 ? 1 : 0);
    return {reinterpret_cast<const char*>(begin - past), words * kPackBytes};
  }
  // Leaves the word in which the tensor ends out of a span, and copies what is of it by itself.
  OFL_DEVICE void CopyEnd(char* words, Span& span, const T* end) const {
    const unsigned past = BytesPastBoundary(end);
    const char* const word = reinterpret_cast<const char*>(end) - past;
    if (past == 0 || span.bytes == 0 || span.from + span.bytes <= word) return;
    span.bytes -= kPackBytes;
    T* const to = reinterpret_cast<T*>(words + span.bytes);
    const T* const from = reinterpret_cast<const T*>(word);
#pragma unroll 1
    for (int i = 0; i < static_cast<int>(past / sizeof(T)); ++i) to[i] = from[i];
  }

  // Whether one thread of the team copies for all.
  OFL_DEVICE bool IsBulk() const { return HasBulkCopies() && grid_.team > kWarp; }
  // By every thread of a team, a span into its words.
  OFL_DEVICE void CopyTogether(char* words, const Span& span) const {
#pragma unroll 1
    for (int at = rank_ * kPackBytes; at < span.bytes; at += grid_.team * kPackBytes) {
      CopyAsync(words + at, span.from + at, kPackBytes);
    }
  }

  OFL_DEVICE void PrefetchTogether(const Span& span) const {
#pragma unroll 1
    for (int at = rank_ * kNormLineBytes; at < span.bytes; at += grid_.team * kNormLineBytes) {
      PrefetchToL2(span.from + at);
    }
  }

  // All threads of the team come here.
  OFL_DEVICE void Meet() const {
    if (grid_.team > kWarp) {
      NamedBarrier(team_ + 1, grid_.team);
    } else {
      __syncwarp();
    }
  }
  // The sum over the team, in two steps: all threads post, meet, and get the same bits. Sums: at
  // most kReduceSlotBytes.
  template <class Sums>
  OFL_DEVICE Sums Post(const Sums& mine) {
    if (grid_.team < kWarp) {
      Sums sums = mine;
#pragma unroll
      for (int mask = kWarp / 4; mask > 0; mask /= 2) {
        if (2 * mask <= grid_.team) sums = sums + ShuffleXor(sums, mask);
      }
      return sums;
    }
    const Sums sums = ReduceLanes<kWarp>(mine, Plus{});
    if (grid_.team > kWarp && threadIdx.x % kWarp == 0) {
      *reinterpret_cast<Sums*>(SumSlots() + threadIdx.x / kWarp * kReduceSlotBytes) = sums;
    }
    return sums;
  }
  template <class Sums>
  OFL_DEVICE Sums Total(const Sums& posted) {
    if (grid_.team <= kWarp) return posted;
    const int warps = grid_.team / kWarp, lane = threadIdx.x % kWarp;
    // Words: the compiler would read the struct byte by byte.
    constexpr int kWords = sizeof(Sums) / kPackBytes;
    uint4 words[kWords] = {};
    if (lane < warps) {
      const char* const slot = SumSlots() + (team_ * warps + lane) * kReduceSlotBytes;
#pragma unroll
      for (int i = 0; i < kWords; ++i) words[i] = reinterpret_cast<const uint4*>(slot)[i];
    }
    phase_ ^= 1;
    Sums all;
    memcpy(&all, words, sizeof(Sums));
    return ReduceLanes<kWarp>(all, Plus{});
  }
  // The two halves alternate: see Block.
  OFL_DEVICE char* SumSlots() const {
    return shared_ + ClusterExchange::kScratchBytes +
           phase_ * NormPolicy::kMaxWarps * kReduceSlotBytes;
  }
  // The barrier object of a stage of the team.
  OFL_DEVICE ClusterBarrier Barrier(int stage) const {
    return ClusterBarrier(
        shared_ + ClusterExchange::kScratchBytes + 2 * NormPolicy::kMaxWarps * kReduceSlotBytes,
        team_ * NormPolicy::kMaxStages + stage);
  }

  const NormGrid& grid_;
  char* const shared_;
  ClusterExchange cluster_;
  int phase_ = 0;
  int team_, rank_, unit_, step_, turns_, block_turns_;
  int packs_;  // of the team in a row
  int64_t row_;
  int64_t column_;  // where this thread's first pack starts
  int64_t extra_;   // its column outside of packs, or -1
};

}  // namespace oneflow_lite::cuda
