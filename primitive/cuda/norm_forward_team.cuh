// SPDX-License-Identifier: Apache-2.0
//
// The norms' forward on many wide rows: teams (norm_team.cuh) that keep weight and bias in shared
// memory. The tiers of row.cuh would read them again for every row, from the L2, whose bandwidth is
// then what limits.
#pragma once

#include "primitive/cuda/norm_forward.cuh"
#include "primitive/cuda/norm_team.cuh"

namespace oneflow_lite {
namespace cuda {

template <class T>
struct NormForwardGrid : NormGrid {
  using C = ComputeType<T>;
  bool aligned_sum;  // its rows lie like those of y between 16-byte boundaries
  C eps, share;      // share: 1 / cols
};

// Packs per thread. Weight, bias and two inputs of 16-bit elements leave no room for four.
template <class T, bool kResidual>
inline constexpr int kForwardPacks = kResidual && sizeof(T) == 2 ? 2 : 4;

template <class T, bool kCentre, bool kResidual, bool kAligned>
class NormForwardTeam : NormTeam<T, kForwardPacks<T, kResidual>, kResidual ? 2 : 1, kAligned> {
  static constexpr int kPacks = kForwardPacks<T, kResidual>;
  using Base = NormTeam<T, kPacks, kResidual ? 2 : 1, kAligned>;
  using Base::column_;
  using Base::edge_;
  using Base::First;
  using Base::Has;
  using Base::Last;
  using Base::N;
  using Base::row_;
  using Base::step_;
  using typename Base::C;
  using typename Base::Values;

 public:
  __device__ __forceinline__ NormForwardTeam(const NormForward<T>& a,
                                             const NormForwardGrid<T>& grid, char* shared)
      : Base(grid, shared, a.y, a.rows, a.cols), a_(a), more_(grid) {
    weights_ = shared + kNormScratchBytes + threadIdx.x * kPackBytes;
    biases_ = weights_ + (a.weight ? Base::kWeightBytes : 0);
    ring_ = biases_ + (a.bias ? Base::kWeightBytes : 0);
    x_ = a.x + row_ * a.x_stride + column_;
    if (kResidual) residual_ = a.residual + row_ * a.cols + column_;
    out_ = row_ * a.cols + column_;
    own_columns_ = Base::ColumnsOfBlock(a.cols).count;
    own_share_ = own_columns_ > 0 ? C(1) / static_cast<C>(own_columns_) : C(0);
  }

  __device__ __forceinline__ void Run() {
    const char* const end = ring_ + more_.stages * Base::kStageBytes;
    char* ahead = ring_;  // the next stage to be filled
    for (int s = 0; s + 1 < more_.stages; ++s, ahead += Base::kStageBytes) {
      Issue(ahead, s < this->turns_);
    }
    KeepWeights();
    Base::StartCluster();
    char* slots = ring_;
    const int64_t step = step_ * a_.cols;
    for (int turn = 0; turn < this->warp_turns_; ++turn, row_ += step_, out_ += step) {
      Issue(ahead, turn + more_.stages - 1 < this->turns_);
      WaitForCopies(more_.stages - 1);
      Visit(slots, turn < this->turns_);
      ahead = ahead + Base::kStageBytes == end ? ring_ : ahead + Base::kStageBytes;
      slots = slots + Base::kStageBytes == end ? ring_ : slots + Base::kStageBytes;
    }
    Base::FinishCluster();
  }

 private:
  __device__ __forceinline__ void KeepWeights() const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (a_.weight) {
        Base::Write(weights_, k, Base::WeightsInMemory(a_.weight, a_.float_weight, k, C(1)));
      }
      if (a_.bias) {
        Base::Write(biases_, k, Base::WeightsInMemory(a_.bias, a_.float_weight, k, C(0)));
      }
    }
  }

  __device__ __forceinline__ void Issue(char* slots, bool there) {
    if (there) {
      Base::Copy(slots, 0, x_);
      x_ += step_ * a_.x_stride;
      if constexpr (kResidual) {
        Base::Copy(slots, kPacks, residual_);
        residual_ += step_ * a_.cols;
      }
    }
    CommitCopies();
  }

  // Pack k of a row, zeros outside; with a residual, what T holds of the sum, which is stored.
  __device__ __forceinline__ Values Fetch(const char* slots, int k) const {
    Pack<T, N> x = Base::template Read<Pack<T, N>>(slots, k);
    if constexpr (kResidual) {
      Values sum = ConvertPack<C>(x);
      const Values residual = ConvertPack<C>(Base::template Read<Pack<T, N>>(slots, kPacks + k));
#pragma unroll
      for (int i = 0; i < N; ++i) sum.v[i] += residual.v[i];
      x = ConvertPack<T>(sum);
      if (a_.sum) Base::Store(a_.sum + out_, k, x, more_.aligned_sum);
    }
    Values v = ConvertPack<C>(x);
    if (edge_) ClearOutside(v, First(k), Last(k));
    return v;
  }

  __device__ __forceinline__ void Visit(const char* slots, bool active) {
    Values v[kPacks];
    SumOf<C, 1> sums;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!active || !Has(k)) continue;
      v[k] = Fetch(slots, k);
#pragma unroll
      for (int i = 0; i < N; ++i) sums.v[0] += kCentre ? v[k].v[i] : v[k].v[i] * v[k].v[i];
    }
    sums = Base::Reduce(sums);
    C mean = 0, low = 0, squares = sums.v[0];
    if constexpr (kCentre) {
      mean = DividedBy(static_cast<C>(own_columns_), own_share_, sums.v[0]);
      squares = Centre(v, active, mean, low);
    } else if (more_.cluster) {
      squares = this->cluster_.Sum(sums).v[0];
    }
    if (!active) return;
    const C rstd = ReciprocalRoot((squares < 0 ? C(0) : squares) * more_.share + more_.eps);
    if (this->slice_ == 0 && threadIdx.x % more_.team == 0) {
      if (kCentre && a_.mean) a_.mean[row_] = mean + low;
      if (a_.rstd) a_.rstd[row_] = rstd;
    }
    const C shift = -low * rstd;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (Has(k)) StoreValues(k, v[k], rstd, shift);
    }
  }

  // Subtracts the mean; what that leaves of the row's mean goes to low. The squared distances.
  __device__ __forceinline__ C Centre(Values (&v)[kPacks], bool active, C& mean, C& low) {
    SumOf<C, 2> sums;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!active || !Has(k)) continue;
#pragma unroll
      for (C& d : v[k].v) d -= mean;
      if (edge_) ClearOutside(v[k], First(k), Last(k));
#pragma unroll
      for (const C& d : v[k].v) {
        sums.v[0] += d;
        sums.v[1] += d * d;
      }
    }
    sums = Base::Reduce(sums);
    low = DividedBy(static_cast<C>(own_columns_), own_share_, sums.v[0]);
    const C squares = sums.v[1] - sums.v[0] * low;
    if (!more_.cluster) return squares;
    // The blocks' centres differ: merge them about this block's, each block on its own.
    const Part mine{static_cast<C>(own_columns_), mean, low, squares};
    const char* parts = this->cluster_.Exchange(mine);
    // About the first block's, so that all compute the same.
    const Part first = ClusterExchange::Value<Part>(parts, 0);
    C sum = 0, total = 0;
    for (int i = 0; i < ClusterExchange::size(); ++i) {
      const Part part = ClusterExchange::Value<Part>(parts, i);
      const C apart = (part.mean - first.mean) + (part.low - first.low);
      sum += part.count * apart;
      total += part.squares + part.count * apart * apart;
    }
    const C shift = sum * more_.share;
    low = (first.mean - mean) + (first.low + shift);
    return total - sum * shift;
  }

  __device__ __forceinline__ void StoreValues(int k, const Values& v, C rstd, C shift) const {
    Values y;
#pragma unroll
    for (int i = 0; i < N; ++i) y.v[i] = kCentre ? v.v[i] * rstd + shift : v.v[i] * rstd;
    if (a_.weight) {
      const Values w = Base::template Read<Values>(weights_, k);
#pragma unroll
      for (int i = 0; i < N; ++i) y.v[i] *= w.v[i];
    }
    if (a_.bias) {
      const Values b = Base::template Read<Values>(biases_, k);
#pragma unroll
      for (int i = 0; i < N; ++i) y.v[i] += b.v[i];
    }
    Base::Store(a_.y + out_, k, ConvertPack<T>(y), true);
  }

  struct Part {
    C count, mean, low, squares;
  };

  const NormForward<T>& a_;
  const NormForwardGrid<T>& more_;
  char *weights_, *biases_, *ring_;  // this thread's first word of each
  int64_t out_, own_columns_;
  C own_share_;
  const T *x_, *residual_ = nullptr;
};

template <class T, bool kCentre, bool kResidual, bool kAligned>
__global__ void __launch_bounds__(NormPolicy::kThreads, 1)
    NormForwardTeamKernel(const __grid_constant__ NormForward<T> a,
                          const __grid_constant__ NormForwardGrid<T> grid) {
  extern __shared__ __align__(16) char shared[];
  NormForwardTeam<T, kCentre, kResidual, kAligned>(a, grid, shared).Run();
}

}  // namespace cuda
}  // namespace oneflow_lite
