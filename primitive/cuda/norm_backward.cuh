// SPDX-License-Identifier: Apache-2.0
//
// The kernel of the norms' backward: teams (norm_team.cuh) that keep in registers what their rows
// add to the gradients of weight and bias. At the end each block adds up its teams and leaves its
// part in memory, for a second kernel.
#pragma once

#include "primitive/cuda/norm_team.cuh"

namespace oneflow_lite {
namespace cuda {

// Where a launch's teams are, how they get their rows' sums and where they leave their parts.
template <class T, bool kCentre>
struct NormBackwardGrid : NormGrid {
  using C = ComputeType<T>;
  int chunks;
  bool needs_sums;
  bool aligned_dx, aligned_dsum;     // their rows lie like those of dy between 16-byte boundaries
  bool last;                         // a single unit, which writes dweight and dbias itself
  C share;                           // 1 / cols
  const NormSums<T, kCentre>* sums;  // [rows][chunks] where they are known; else null
  C* parts;                          // [units][kNormKinds][cols]
};
template <bool kCentre>
inline constexpr int kNormKinds = kCentre ? 2 : 1;  // dweight, dbias

template <class T, int kPacks, bool kCentre, bool kFromOutput, bool kAligned>
class NormBackwardTeam : NormTeam<T, kPacks, 2, kAligned> {
  using Base = NormTeam<T, kPacks, 2, kAligned>;
  using Sums = NormSums<T, kCentre>;
  using Base::column_;
  using Base::edge_;
  using Base::First;
  using Base::Has;
  using Base::Last;
  using Base::N;
  using Base::Offset;
  using Base::row_;
  using Base::Slot;
  using Base::step_;
  using typename Base::C;
  using typename Base::Values;
  static constexpr int kKinds = kNormKinds<kCentre>;
  // What stays in registers, besides the gradients of weight and bias: a row's values, the weight.
  static constexpr bool kHold = N * kPacks * static_cast<int>(sizeof(C)) <= 64;
  static constexpr bool kHoldWeight = kPacks == 1;

 public:
  __device__ __forceinline__ NormBackwardTeam(const NormBackward<T>& a,
                                              const NormBackwardGrid<T, kCentre>& grid,
                                              char* shared)
      : Base(grid, shared, a.dy, a.rows, a.cols), a_(a), more_(grid) {
    weights_ = shared + kNormScratchBytes + threadIdx.x * kPackBytes;
    biases_ = weights_ + (kHoldWeight ? 0 : Base::kWeightBytes);
    ring_ = biases_ + (kFromOutput ? Base::kWeightBytes : 0);
    x_ = a.x + row_ * a.x_stride + column_;
    dy_ = a.dy + row_ * a.cols + column_;
    out_ = row_ * a.cols + column_;
    x_alike_ = IsAlignedFor<uint4>(x_) &&
               step_ * a.x_stride * static_cast<int64_t>(sizeof(T)) % kPackBytes == 0;
  }

  __device__ __forceinline__ void Run() {
    AllowNextKernel();
    const char* const end = ring_ + more_.stages * Base::kStageBytes;
    char* ahead = ring_;  // the next stage to be filled
    for (int s = 0; s + 1 < more_.stages; ++s, ahead += Base::kStageBytes) {
      Issue(ahead, s);
    }
    const int64_t step = step_ * a_.cols;
    char* slots = ring_;
    KeepWeights();
    Base::StartCluster();
    C mean = MeanOf(row_, this->turns_ > 0), rstd = RstdOf(row_, this->turns_ > 0);
    for (int turn = 0; turn < this->warp_turns_; ++turn, row_ += step_, out_ += step) {
      Issue(ahead, turn + more_.stages - 1);
      const bool more = turn + 1 < this->turns_;
      const C next_mean = MeanOf(row_ + step_, more), next_rstd = RstdOf(row_ + step_, more);
      WaitForCopies(more_.stages - 1);
      Visit(slots, turn < this->turns_, mean, rstd);
      mean = next_mean;
      rstd = next_rstd;
      ahead = ahead + Base::kStageBytes == end ? ring_ : ahead + Base::kStageBytes;
      slots = slots + Base::kStageBytes == end ? ring_ : slots + Base::kStageBytes;
    }
    WaitForCopies(0);
    Base::FinishCluster();
    __syncthreads();
    if (a_.dweight || a_.dbias) StoreParts();
  }

 private:
  __device__ __forceinline__ void KeepWeights() {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const Values w = Base::WeightsInMemory(a_.weight, a_.float_weight, k, C(1));
      if (kHoldWeight) {
        held_weight_ = w;
      } else {
        Base::Write(weights_, k, w);
      }
      if (kFromOutput) {
        Base::Write(biases_, k, Base::WeightsInMemory(a_.bias, a_.float_weight, k, C(0)));
      }
      ClearOutside(dweight_[k], 0, 0);
      ClearOutside(dbias_[k], 0, 0);
    }
  }
  __device__ __forceinline__ Values Weight(int k) const {
    if constexpr (kHoldWeight) return held_weight_;
    return Base::template Read<Values>(weights_, k);
  }

  __device__ __forceinline__ C MeanOf(int64_t row, bool there) const {
    return kCentre && !kFromOutput && there && a_.mean ? a_.mean[row] : C(0);
  }
  __device__ __forceinline__ C RstdOf(int64_t row, bool there) const {
    return there && a_.rstd ? a_.rstd[row] : C(0);
  }

  // Starts copying the row of a turn, where there is one, into a stage.
  __device__ __forceinline__ void Issue(char* slots, int turn) {
    if (turn < this->turns_) {
      const bool last = turn + 1 == this->turns_;
      Base::Copy(slots, 0, x_, x_alike_, last);
      Base::Copy(slots, kPacks, dy_, true, last);
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
    dy = ConvertPack<C>(Base::template Read<Pack<T, N>>(slots, kPacks + k));
    v = ConvertPack<C>(Base::template Read<Pack<T, N>>(slots, k));
    Values bias;
    if (kFromOutput) bias = Base::template Read<Values>(biases_, k);
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
    if (kHold || !more_.sums) {
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
    if (more_.needs_sums) sums = more_.sums ? KnownSums() : SumOfRow(sums);
    if (!active) return;
    const NormGradient<T, kCentre, kFromOutput> gradient(sums, rstd, more_.share);
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
    if (a_.dsum) {
      const T* from = a_.dsum + out_ + Offset(k);
      T* const slot = Slot(slots, k);  // has been read
      const int first = First(k), last = Last(k);
      if (kAligned || (more_.aligned_dsum && first == 0 && last == N)) {
        *reinterpret_cast<uint4*>(slot) = *reinterpret_cast<const uint4*>(from);
      } else {
        Base::CopyEach(slot, from, first, last);
      }
      const Values dsum = ConvertPack<C>(Base::template Read<Pack<T, N>>(slots, k));
#pragma unroll
      for (int i = 0; i < N; ++i) dx.v[i] += dsum.v[i];
    }
    Base::Store(a_.dx + out_, k, ConvertPack<T>(dx), more_.aligned_dx);
  }

  // Over the team, and over a cluster's blocks.
  __device__ __forceinline__ Sums SumOfRow(const Sums& mine) {
    const Sums sums = Base::Reduce(mine);
    return more_.cluster ? this->cluster_.Sum(sums) : sums;
  }
  __device__ __forceinline__ Sums KnownSums() const {
    Sums all;
    for (int i = threadIdx.x % kWarp; i < more_.chunks; i += kWarp) {
      all = all + more_.sums[row_ * more_.chunks + i];
    }
    return ReduceLanes<kWarp>(all, Plus{});
  }

  // Adds up the block's teams, in a fixed order. The ring's memory holds one region of the team's
  // columns per warp, or per team of several warps.
  __device__ __forceinline__ void StoreParts() {
    const int64_t capacity = int64_t{more_.team} * kPacks * N;
    const auto columns = Base::ColumnsOfBlock(a_.cols);
    const int64_t base = columns.first;
    const int per_region = more_.team < kWarp ? kWarp : more_.team;
    C* const memory = reinterpret_cast<C*>(this->shared_ + kNormScratchBytes);
    C* const mine =
        memory + int64_t{static_cast<int>(threadIdx.x) / per_region} * kKinds * capacity;
    int groups = per_region / more_.team;
    const int group = static_cast<int>(threadIdx.x) % per_region / more_.team;
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
      C* const part = more_.parts + (this->unit_ * kKinds + kind) * a_.cols + base;
      for (int64_t i = threadIdx.x; i < columns.count; i += blockDim.x) {
        C sum = 0;
#pragma unroll 4
        for (int r = 0; r < regions; ++r) {
          sum += memory[(int64_t{r} * kKinds + kind) * capacity + i];
        }
        if (!more_.last) {
          part[i] = sum;
        } else if (a_.float_weight) {
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
    for (int mask = kWarp / 2; mask >= more_.team; mask /= 2) {
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
  const NormBackwardGrid<T, kCentre>& more_;
  char *weights_, *biases_, *ring_;  // this thread's first word of each
  int64_t out_;
  const T *x_, *dy_;
  bool x_alike_;  // the rows of x lie like those of dy
  Values held_weight_, dweight_[kPacks], dbias_[kPacks];
};

template <class T, int kPacks, bool kCentre, bool kFromOutput, bool kAligned>
__global__ void __launch_bounds__(kNormThreads<kPacks>, 1)
    NormBackwardKernel(const __grid_constant__ NormBackward<T> a,
                       const __grid_constant__ NormBackwardGrid<T, kCentre> grid) {
  extern __shared__ __align__(16) char shared[];
  NormBackwardTeam<T, kPacks, kCentre, kFromOutput, kAligned>(a, grid, shared).Run();
}

}  // namespace cuda
}  // namespace oneflow_lite
