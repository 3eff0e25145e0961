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
template <class C, bool kCentre>
struct NormBackwardGrid {
  int team, slices, stages, chunks;
  bool cluster;
  bool needs_sums;
  C share;                           // 1 / cols
  const NormSums<C, kCentre>* sums;  // [rows][chunks] where they are known; else null
  C* parts;                          // [units][kNormKinds][cols]
};
template <bool kCentre>
inline constexpr int kNormKinds = kCentre ? 2 : 1;  // dweight, dbias

inline constexpr int kNormScratchBytes =
    ClusterExchange::kScratchBytes + 2 * kMaxWarps * kReduceSlotBytes;

template <class T, int kPacks, bool kCentre, bool kFromOutput, bool kAligned>
class NormBackwardTeam {
  using C = ComputeType<T>;
  using Sums = NormSums<C, kCentre>;
  static constexpr int N = kPackSize<T>;
  // What stays in registers, besides the gradients of weight and bias: a row's values, the weight.
  static constexpr int kColumnWords = N * kPacks * static_cast<int>(sizeof(C)) / 4;
  static constexpr bool kHold = kColumnWords <= 16;
  static constexpr bool kHoldWeight = kPacks == 1;
  static constexpr int kWeightWords = N * sizeof(C) / kPackBytes;
  using Values = Pack<C, N>;

 public:
  __device__ __forceinline__ NormBackwardTeam(const NormBackward<T>& a,
                                              const NormBackwardGrid<C, kCentre>& grid,
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
    lead_ = grid.team < kWarp ? -(team % (kWarp / grid.team)) : 0;
    const PaddedRow<N> padded(a.dy + row_ * a.cols, a.cols);
    shift_ = padded.shift;
    column_ = padded.Column(int64_t{slice_} * grid.team * kPacks + rank_);
    const int64_t left = a.cols - column_;
    left_ = left < (1 << 30) ? static_cast<int>(left) : 1 << 30;
    weights_ = shared + kNormScratchBytes + threadIdx.x * kPackBytes;
    const int weight_bytes = kPacks * kWeightWords * blockDim.x * kPackBytes;
    biases_ = weights_ + (kHoldWeight ? 0 : weight_bytes);
    ring_ = biases_ + (kFromOutput ? weight_bytes : 0);
    x_ = a.x + row_ * a.x_stride + column_;
    dy_ = a.dy + row_ * a.cols + column_;
    out_ = row_ * a.cols + column_;
    LoadWeightsOnce();
  }

  __device__ __forceinline__ void Run() {
    int64_t ahead = row_;  // the next row to be copied
    int stage = 0;
    for (int s = 0; s + 1 < grid_.stages; ++s, ahead += step_) Issue(s, ahead);
    C mean = MeanOf(row_), rstd = RstdOf(row_);
    for (; row_ + lead_ < a_.rows; row_ += step_, ahead += step_, out_ += step_ * a_.cols) {
      Issue(stage == 0 ? grid_.stages - 1 : stage - 1, ahead);
      const C next_mean = MeanOf(row_ + step_), next_rstd = RstdOf(row_ + step_);
      WaitForCopies(grid_.stages - 1);
      Visit(stage, mean, rstd);
      mean = next_mean;
      rstd = next_rstd;
      stage = stage + 1 == grid_.stages ? 0 : stage + 1;
    }
    WaitForCopies(0);
    if (grid_.cluster) cluster_.Finish();
    __syncthreads();
    if (a_.dweight || a_.dbias) StoreParts();
  }

 private:
  // Pack k of this thread: whether it has columns, where it starts, which of its elements count.
  __device__ __forceinline__ int Offset(int k) const { return k * grid_.team * N; }
  __device__ __forceinline__ bool Has(int k) const { return Offset(k) < left_; }
  __device__ __forceinline__ int First(int k) const {
    if (kAligned) return 0;
    return k == 0 && column_ < 0 ? static_cast<int>(-column_) : 0;
  }
  __device__ __forceinline__ int Last(int k) const {
    if (kAligned) return N;
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
      words[i] = *reinterpret_cast<const uint4*>(
          slots + (index * kWords + i) * static_cast<int>(blockDim.x) * kPackBytes);
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
      *reinterpret_cast<uint4*>(slots + (index * kWords + i) * static_cast<int>(blockDim.x) *
                                            kPackBytes) = words[i];
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

  __device__ __forceinline__ C MeanOf(int64_t row) const {
    return kCentre && !kFromOutput && row < a_.rows && a_.mean ? a_.mean[row] : C(0);
  }
  __device__ __forceinline__ C RstdOf(int64_t row) const {
    return row < a_.rows && a_.rstd ? a_.rstd[row] : C(0);
  }

  __device__ __forceinline__ char* Stage(int stage) const {
    return ring_ + stage * (2 * kPacks * static_cast<int>(blockDim.x) * kPackBytes);
  }
  // Pack `index` of this thread in a stage.
  __device__ __forceinline__ T* Slot(char* slots, int index) const {
    return reinterpret_cast<T*>(slots + index * static_cast<int>(blockDim.x) * kPackBytes);
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
  __device__ __forceinline__ void Issue(int stage, int64_t row) {
    if (row < a_.rows) {
      Copy(Stage(stage), 0, x_);
      Copy(Stage(stage), kPacks, dy_);
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
    if (First(k) > 0 || Last(k) < N) {
      ClearOutside(v, First(k), Last(k));
      ClearOutside(dy, First(k), Last(k));
    }
  }

  // One row.
  __device__ __forceinline__ void Visit(int stage, C mean, C rstd) {
    char* slots = Stage(stage);
    const bool active = row_ < a_.rows;
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
    const NormGradient<C, kCentre, kFromOutput> gradient(sums, rstd, grid_.share);
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
                                        const NormGradient<C, kCentre, kFromOutput>& gradient,
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
    const bool whole = first == 0 && last == N;
    T* const to = a_.dx + out_ + Offset(k);
    T* const slot = Slot(slots, k);  // has been read
    if (a_.dsum) {
      const T* from = a_.dsum + out_ + Offset(k);
      if (kAligned || (whole && IsAlignedFor<uint4>(from))) {
        *reinterpret_cast<uint4*>(slot) = *reinterpret_cast<const uint4*>(from);
      } else {
        CopyEach(slot, from, first, last);
      }
      const Values dsum = ConvertPack<C>(Read<Pack<T, N>>(slots, k));
#pragma unroll
      for (int i = 0; i < N; ++i) dx.v[i] += dsum.v[i];
    }
    const Pack<T, N> packed = ConvertPack<T>(dx);
    uint4 word;
    memcpy(&word, &packed, sizeof(word));
    if (kAligned || (whole && IsAlignedFor<uint4>(to))) {
      StoreWord(reinterpret_cast<uint4*>(to), word);
    } else {
      *reinterpret_cast<uint4*>(slot) = word;
      CopyEach(to, slot, first, last);
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
    char* slots = shared_ + ClusterExchange::kScratchBytes + phase_ * kMaxWarps * kReduceSlotBytes;
    phase_ ^= 1;
    const int lane = threadIdx.x % kWarp, team = threadIdx.x / grid_.team;
    if (lane == 0) {
      *reinterpret_cast<Sums*>(slots + threadIdx.x / kWarp * kReduceSlotBytes) = sums;
    }
    NamedBarrier(team + 1, grid_.team);
    const int warps = grid_.team / kWarp;
    const char* first = slots + team * warps * kReduceSlotBytes;
    Sums all;
    if (warps <= kWarp / 4) {
      for (int w = 0; w < warps; ++w) {
        all = all + *reinterpret_cast<const Sums*>(first + w * kReduceSlotBytes);
      }
    } else {
      if (lane < warps) all = *reinterpret_cast<const Sums*>(first + lane * kReduceSlotBytes);
      all = ReduceLanes<kWarp>(all, Plus{});
    }
    return grid_.cluster ? cluster_.Sum(all) : all;
  }
  __device__ __forceinline__ Sums KnownSums() const {
    Sums all;
    for (int i = threadIdx.x % kWarp; i < grid_.chunks; i += kWarp) {
      all = all + grid_.sums[row_ * grid_.chunks + i];
    }
    return ReduceLanes<kWarp>(all, Plus{});
  }

  // Adds up the block's teams, in their order. The ring's memory holds one region of the team's
  // columns per warp, or per team of several warps.
  __device__ __forceinline__ void StoreParts() {
    const int64_t capacity = int64_t{grid_.team} * kPacks * N;
    const int64_t begin = grid_.slices == 1 ? 0 : slice_ * capacity - shift_;
    const int64_t base = begin > 0 ? begin : 0;  // the block's first column
    int64_t columns = begin + capacity - base;
    if (grid_.slices == 1 || columns > a_.cols - base) columns = a_.cols - base;
    const int per_region = grid_.team < kWarp ? kWarp : grid_.team;
    const int regions = blockDim.x / per_region, region = threadIdx.x / per_region;
    C* memory = reinterpret_cast<C*>(shared_ + kNormScratchBytes);
    C* mine = memory + int64_t{region} * kNormKinds<kCentre> * capacity;
    const int groups = per_region / grid_.team, group = threadIdx.x % per_region / grid_.team;
    for (int g = 0; g < groups; ++g) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (group != g || !Has(k)) continue;
        const int first = First(k), last = Last(k);
        C* to = mine + (column_ + Offset(k) - base);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          if (i < first || i >= last) continue;
          to[i] = dweight_[k].v[i] + (g == 0 ? C(0) : to[i]);
          if (!kCentre) continue;
          to[capacity + i] = dbias_[k].v[i] + (g == 0 ? C(0) : to[capacity + i]);
        }
      }
      __syncwarp();
    }
    __syncthreads();
    C* part = grid_.parts + unit_ * kNormKinds<kCentre> * a_.cols + base;
#pragma unroll
    for (int kind = 0; kind < kNormKinds<kCentre>; ++kind) {
#pragma unroll 1
      for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) {
        C sum = 0;
#pragma unroll 1
        for (int r = 0; r < regions; ++r) {
          sum += memory[(int64_t{r} * kNormKinds<kCentre> + kind) * capacity + i];
        }
        part[kind * a_.cols + i] = sum;
      }
    }
  }

  const NormBackward<T>& a_;
  const NormBackwardGrid<C, kCentre>& grid_;
  char* shared_;
  char *weights_, *biases_, *ring_;  // this thread's first word of each
  ClusterExchange cluster_;
  int phase_ = 0;
  int rank_, slice_, shift_, lead_, left_;
  int64_t unit_, step_, row_, column_, out_;
  const T *x_, *dy_;
  Values held_weight_, dweight_[kPacks], dbias_[kPacks];
};

template <int kPacks>
inline constexpr int kNormBackwardThreads =
    kPacks == 1 ? NormPolicy::kFewThreads : NormPolicy::kThreads;

template <class T, int kPacks, bool kCentre, bool kFromOutput, bool kAligned>
__global__ void __launch_bounds__(kNormBackwardThreads<kPacks>, 1)
    NormBackwardKernel(const __grid_constant__ NormBackward<T> a,
                       const __grid_constant__ NormBackwardGrid<ComputeType<T>, kCentre> grid) {
  extern __shared__ __align__(16) char shared[];
  NormBackwardTeam<T, kPacks, kCentre, kFromOutput, kAligned>(a, grid, shared).Run();
}

}  // namespace cuda
}  // namespace oneflow_lite
