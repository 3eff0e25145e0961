// SPDX-License-Identifier: Apache-2.0
//
// The kernel of the norms' backward. Teams of threads (norm_policy.h) stay for the whole launch and
// visit row after row. Each thread copies its packs of the next rows of x and dy into a ring of
// stages in shared memory while the team works on the current one, and keeps what the rows add to
// the gradients of weight and bias in registers: its columns are the same in every row, because a
// team's rows all start at the same distance from a multiple of 16 bytes (the plan sees to that).
// At the end each block adds up its teams and leaves its part in memory, for a second kernel.
#pragma once

#include "primitive/cuda/async_copy.cuh"
#include "primitive/cuda/cluster_exchange.cuh"
#include "primitive/cuda/norm_math.cuh"
#include "primitive/cuda/norm_policy.h"

namespace oneflow_lite {
namespace cuda {

// Where a launch's teams are, how they get their rows' sums and where they leave their parts.
template <class T, bool kCentre>
struct NormBackwardGrid {
  using C = ComputeType<T>;
  int team, slices, stages, chunks;
  bool cluster;
  bool needs_sums;
  bool aligned_dx, aligned_dsum;     // their rows lie like those of dy between 16-byte boundaries
  bool float_weight, last;           // last: a single unit, which writes dweight and dbias itself
  C share;                           // 1 / cols
  const NormSums<T, kCentre>* sums;  // [rows][chunks] where they are known; else null
  C* parts;                          // [units][kNormKinds][cols]
};
template <bool kCentre>
inline constexpr int kNormKinds = kCentre ? 2 : 1;  // dweight, dbias

inline constexpr int kNormScratchBytes =
    ClusterExchange::kScratchBytes + 2 * NormPolicy::kMaxWarps * kReduceSlotBytes;

// Threads that a block may have, and for which its shared memory is laid out.
template <int kPacks>
inline constexpr int kNormBackwardThreads =
    kPacks == 1 ? NormPolicy::kFewThreads : NormPolicy::kThreads;

template <class T, int kPacks, bool kCentre, bool kFromOutput, bool kAligned>
class NormBackwardTeam {
  using C = ComputeType<T>;
  using Sums = NormSums<T, kCentre>;
  static constexpr int N = kPackSize<T>;
  // What stays in registers, besides the gradients of weight and bias: a row's values, the weight.
  static constexpr int kColumnWords = N * kPacks * static_cast<int>(sizeof(C)) / 4;
  static constexpr bool kHold = kColumnWords <= 16;
  static constexpr bool kHoldWeight = kPacks == 1;
  static constexpr int kWeightWords = N * sizeof(C) / kPackBytes;
  static constexpr int kWordBytes = kNormBackwardThreads<kPacks> * kPackBytes;  // of all threads
  static constexpr int kStageBytes = 2 * kPacks * kWordBytes;                   // x, dy
  static constexpr int kWeightBytes = kPacks * kWeightWords * kWordBytes;
  using Values = Pack<C, N>;
  static constexpr int kKinds = kNormKinds<kCentre>;

 public:
  __device__ __forceinline__ NormBackwardTeam(const NormBackward<T>& a,
                                              const NormBackwardGrid<T, kCentre>& grid,
                                              char* shared)
      : a_(a), grid_(grid), shared_(shared) {
    if (grid.cluster) cluster_.Start(shared);
    const int team = threadIdx.x / grid.team, teams = blockDim.x / grid.team;
    rank_ = threadIdx.x % grid.team;
    slice_ = blockIdx.x % grid.slices;
    unit_ = blockIdx.x / grid.slices;
    step_ = int64_t{gridDim.x / grid.slices} * teams;
    row_ = int64_t{unit_} * teams + team;
    // All lanes of a warp take as many turns as its first.
    const int lead = grid.team < kWarp ? team % (kWarp / grid.team) : 0;
    turns_ = TurnsFrom(row_);
    warp_turns_ = TurnsFrom(row_ - lead);
    while (span_ * kWarp < grid.team) span_ *= 2;
    const PaddedRow<N> padded(a.dy + row_ * a.cols, a.cols);
    shift_ = padded.shift;
    column_ = padded.Column(int64_t{slice_} * grid.team * kPacks + rank_);
    const int64_t left = a.cols - column_;
    left_ = left < (1 << 30) ? static_cast<int>(left) : 1 << 30;
    edge_ = !kAligned && (column_ < 0 || left_ % (grid.team * N) < N);
    weights_ = shared + kNormScratchBytes + threadIdx.x * kPackBytes;
    biases_ = weights_ + (kHoldWeight ? 0 : kWeightBytes);
    ring_ = biases_ + (kFromOutput ? kWeightBytes : 0);
    x_ = a.x + row_ * a.x_stride + column_;
    dy_ = a.dy + row_ * a.cols + column_;
    out_ = row_ * a.cols + column_;
    LoadWeightsOnce();
  }

  __device__ __forceinline__ void Run() {
    const char* const end = ring_ + grid_.stages * kStageBytes;
    char* ahead = ring_;  // the next stage to be filled
    for (int s = 0; s + 1 < grid_.stages; ++s, ahead += kStageBytes) Issue(ahead, s < turns_);
    const int64_t step = step_ * a_.cols;
    char* slots = ring_;
    C mean = MeanOf(row_, turns_ > 0), rstd = RstdOf(row_, turns_ > 0);
    for (int turn = 0; turn < warp_turns_; ++turn, row_ += step_, out_ += step) {
      Issue(ahead, turn + grid_.stages - 1 < turns_);
      const bool more = turn + 1 < turns_;
      const C next_mean = MeanOf(row_ + step_, more), next_rstd = RstdOf(row_ + step_, more);
      WaitForCopies(grid_.stages - 1);
      Visit(slots, turn < turns_, mean, rstd);
      mean = next_mean;
      rstd = next_rstd;
      ahead = ahead + kStageBytes == end ? ring_ : ahead + kStageBytes;
      slots = slots + kStageBytes == end ? ring_ : slots + kStageBytes;
    }
    WaitForCopies(0);
    if (grid_.cluster) cluster_.Finish();
    __syncthreads();
    if (a_.dweight || a_.dbias) StoreParts();
  }

 private:
  __device__ __forceinline__ int TurnsFrom(int64_t row) const {
    return row < a_.rows ? static_cast<int>((a_.rows - row + step_ - 1) / step_) : 0;
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
  __device__ __forceinline__ P Read(const char* slots, int index) const {
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
  __device__ __forceinline__ void Write(char* slots, int index, const P& pack) const {
    constexpr int kWords = sizeof(P) / kPackBytes;
    uint4 words[kWords];
    memcpy(words, &pack, sizeof(P));
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      *reinterpret_cast<uint4*>(slots + (index * kWords + i) * kWordBytes) = words[i];
    }
  }

  __device__ __forceinline__ void LoadWeightsOnce() {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int64_t col = column_ + Offset(k);
      const int first = First(k), last = Has(k) ? Last(k) : 0;
      const Values w = LoadWeights<C, N, T>(a_.weight, a_.float_weight, col, first, last, C(1));
      if (kHoldWeight) {
        held_weight_ = w;
      } else {
        Write(weights_, k, w);
      }
      if (kFromOutput) {
        Write(biases_, k, LoadWeights<C, N, T>(a_.bias, a_.float_weight, col, first, last, C(0)));
      }
      ClearOutside(dweight_[k], 0, 0);
      ClearOutside(dbias_[k], 0, 0);
    }
  }
  __device__ __forceinline__ Values Weight(int k) const {
    if constexpr (kHoldWeight) return held_weight_;
    return Read<Values>(weights_, k);
  }

  __device__ __forceinline__ C MeanOf(int64_t row, bool there) const {
    return kCentre && !kFromOutput && there && a_.mean ? a_.mean[row] : C(0);
  }
  __device__ __forceinline__ C RstdOf(int64_t row, bool there) const {
    return there && a_.rstd ? a_.rstd[row] : C(0);
  }

  // Pack `index` of this thread in a stage.
  __device__ __forceinline__ T* Slot(char* slots, int index) const {
    return reinterpret_cast<T*>(slots + index * kWordBytes);
  }
  // The elements [first, last) of a pack. Not unrolled: rare, and it would cost registers.
  __device__ __forceinline__ static void CopyEach(T* to, const T* from, int first, int last) {
#pragma unroll 1
    for (int i = first; i < last; ++i) to[i] = from[i];
  }
  // Starts copying the packs of a row of one tensor into slots from `index` on.
  __device__ __forceinline__ void Copy(char* slots, int index, const T* p) const {
    const bool aligned = kAligned || IsAlignedFor<uint4>(p);
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      if (aligned) {
        // What lies before a row's first column in its 16 bytes is copied and not used.
        CopyAsync(Slot(slots, index + k), p + Offset(k), Last(k) * static_cast<int>(sizeof(T)));
      } else {
        CopyEach(Slot(slots, index + k), p + Offset(k), First(k), Last(k));
      }
    }
  }
  // Starts copying the next row, where there is one, into a stage.
  __device__ __forceinline__ void Issue(char* slots, bool there) {
    if (there) {
      Copy(slots, 0, x_);
      Copy(slots, kPacks, dy_);
      if (a_.dsum) {
        const T* dsum = a_.dsum + (dy_ - a_.dy);
#pragma unroll
        for (int k = 0; k < kPacks; ++k) {
          if (Has(k)) PrefetchToL2(dsum + Offset(k) + First(k));
        }
      }
      x_ += step_ * a_.x_stride;
      dy_ += step_ * a_.cols;
    }
    CommitCopies();
  }

  __device__ __forceinline__ void Fetch(const char* slots, int k, C mean, const Values& weight,
                                        Values& v, Values& dy) const {
    dy = ConvertPack<C>(Read<Pack<T, N>>(slots, kPacks + k));
    v = ConvertPack<C>(Read<Pack<T, N>>(slots, k));
    Values bias;
    if (kFromOutput) bias = Read<Values>(biases_, k);
    ToValues<kCentre, kFromOutput>(v, weight, bias, mean);
    if (edge_) {
      ClearOutside(v, First(k), Last(k));
      ClearOutside(dy, First(k), Last(k));
    }
  }

  // One row.
  __device__ __forceinline__ void Visit(char* slots, bool active, C mean, C rstd) {
    Values v[kHold ? kPacks : 1], dy[kHold ? kPacks : 1];
    Sums sums;
    if (kHold || !grid_.sums) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (!active || !Has(k)) continue;
        const int at = kHold ? k : 0;
        const Values w = Weight(k);
        Fetch(slots, k, mean, w, v[at], dy[at]);
#pragma unroll
        for (int i = 0; i < N; ++i) sums.Add(dy[at].v[i] * w.v[i], v[at].v[i]);
      }
    }
    if (grid_.needs_sums) sums = grid_.sums ? KnownSums() : ReduceTeam(sums);
    if (!active) return;
    const NormGradient<T, kCentre, kFromOutput> gradient(sums, rstd, grid_.share);
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      const int at = kHold ? k : 0;
      const Values w = Weight(k);
      if (!kHold) Fetch(slots, k, mean, w, v[at], dy[at]);
      Apply(slots, gradient, k, w, v[at], dy[at]);
    }
  }

  __device__ __forceinline__ void Apply(char* slots,
                                        const NormGradient<T, kCentre, kFromOutput>& gradient,
                                        int k, const Values& w, const Values& v, const Values& dy) {
    Values dx;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const C x_hat = gradient.XHat(v.v[i]);
      dx.v[i] = gradient.Dx(dy.v[i] * w.v[i], x_hat);
      dweight_[k].v[i] += dy.v[i] * x_hat;
      if (kCentre) dbias_[k].v[i] += dy.v[i];
    }
    if (!a_.dx) return;
    const int first = First(k), last = Last(k);
    const bool whole = !edge_ || (first == 0 && last == N);
    T* const to = a_.dx + out_ + Offset(k);
    T* const slot = Slot(slots, k);  // has been read
    if (a_.dsum) {
      const T* from = a_.dsum + out_ + Offset(k);
      if (kAligned || (whole && grid_.aligned_dsum)) {
        *reinterpret_cast<uint4*>(slot) = *reinterpret_cast<const uint4*>(from);
      } else {
        CopyEach(slot, from, first, last);
      }
      const Values dsum = ConvertPack<C>(Read<Pack<T, N>>(slots, k));
#pragma unroll
      for (int i = 0; i < N; ++i) dx.v[i] += dsum.v[i];
    }
    const Pack<T, N> packed = ConvertPack<T>(dx);
    if (kAligned || (whole && grid_.aligned_dx)) {
      StoreAlignedPack(to, packed);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (i >= first && i < last) to[i] = packed.v[i];
      }
    }
  }

  // The sum over the team, and over a cluster's blocks: the same bits in every thread.
  __device__ __forceinline__ Sums ReduceTeam(Sums sums) {
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
    return grid_.cluster ? cluster_.Sum(all) : all;
  }
  __device__ __forceinline__ Sums KnownSums() const {
    Sums all;
    for (int i = threadIdx.x % kWarp; i < grid_.chunks; i += kWarp) {
      all = all + grid_.sums[row_ * grid_.chunks + i];
    }
    return ReduceLanes<kWarp>(all, Plus{});
  }

  // Adds up the block's teams, in a fixed order. The ring's memory holds one region of the team's
  // columns per warp, or per team of several warps.
  __device__ __forceinline__ void StoreParts() {
    const int64_t capacity = int64_t{grid_.team} * kPacks * N;
    const int64_t begin = grid_.slices == 1 ? 0 : slice_ * capacity - shift_;
    const int64_t base = begin > 0 ? begin : 0;  // the block's first column
    int64_t columns = begin + capacity - base;
    if (grid_.slices == 1 || columns > a_.cols - base) columns = a_.cols - base;
    const int per_region = grid_.team < kWarp ? kWarp : grid_.team;
    C* const memory = reinterpret_cast<C*>(shared_ + kNormScratchBytes);
    C* const mine =
        memory + int64_t{static_cast<int>(threadIdx.x) / per_region} * kKinds * capacity;
    int groups = per_region / grid_.team;
    const int group = static_cast<int>(threadIdx.x) % per_region / grid_.team;
    if (kAligned && groups > 1) {
      AddGroups();  // which all have the same columns
      groups = 1;
    }
    for (int g = 0; g < groups; ++g) {
      if (group == g) AddToRegion(mine - base, capacity, g == 0);
      __syncwarp();
    }
    __syncthreads();
    const int regions = static_cast<int>(blockDim.x) / per_region;
#pragma unroll 1
    for (int kind = 0; kind < kKinds; ++kind) {
      void* const gradient = kind == 0 ? a_.dweight : a_.dbias;
      if (!gradient) continue;
      C* const part = grid_.parts + (unit_ * kKinds + kind) * a_.cols + base;
      for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
        C sum = 0;
#pragma unroll 4
        for (int r = 0; r < regions; ++r)
          sum += memory[(int64_t{r} * kKinds + kind) * capacity + i];
        if (!grid_.last) {
          part[i] = sum;
        } else if (grid_.float_weight) {
          static_cast<float*>(gradient)[base + i] = static_cast<float>(sum);
        } else {
          static_cast<T*>(gradient)[base + i] = ConvertTo<T>(sum);
        }
      }
    }
  }
  // Over the groups of a warp; its first group gets the sums.
  __device__ __forceinline__ void AddGroups() {
#pragma unroll 1
    for (int mask = kWarp / 2; mask >= grid_.team; mask /= 2) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
          dweight_[k].v[i] += ShuffleXor(dweight_[k].v[i], mask);
          if (kCentre) dbias_[k].v[i] += ShuffleXor(dbias_[k].v[i], mask);
        }
      }
    }
  }
  __device__ __forceinline__ void AddToRegion(C* region, int64_t capacity, bool fresh) const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      const int first = First(k), last = Last(k);
      C* to = region + column_ + Offset(k);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (i < first || i >= last) continue;
        to[i] = dweight_[k].v[i] + (fresh ? C(0) : to[i]);
        if (kCentre) to[capacity + i] = dbias_[k].v[i] + (fresh ? C(0) : to[capacity + i]);
      }
    }
  }

  const NormBackward<T>& a_;
  const NormBackwardGrid<T, kCentre>& grid_;
  char* shared_;
  char *weights_, *biases_, *ring_;  // this thread's first word of each
  ClusterExchange cluster_;
  int phase_ = 0;
  int span_ = 1;  // a power of two, at least the team's warps
  int rank_, slice_, shift_, left_, turns_, warp_turns_;
  bool edge_;  // whether a pack of this thread reaches over an end of the row
  int64_t unit_, step_, row_, column_, out_;
  const T *x_, *dy_;
  Values held_weight_, dweight_[kPacks], dbias_[kPacks];
};

template <class T, int kPacks, bool kCentre, bool kFromOutput, bool kAligned>
__global__ void __launch_bounds__(kNormBackwardThreads<kPacks>, 1)
    NormBackwardKernel(const __grid_constant__ NormBackward<T> a,
                       const __grid_constant__ NormBackwardGrid<T, kCentre> grid) {
  extern __shared__ __align__(16) char shared[];
  NormBackwardTeam<T, kPacks, kCentre, kFromOutput, kAligned>(a, grid, shared).Run();
}

}  // namespace cuda
}  // namespace oneflow_lite
