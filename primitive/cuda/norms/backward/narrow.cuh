// SPDX-License-Identifier: Apache-2.0
//
// The norms' backward over narrow rows of whole packs: 1 to 32 lanes have a row, and a warp works
// on as many rows at once, so that they share its instructions. Rows go straight into registers,
// and each thread asks for its next one before it works on the current: there is nothing to meet
// for.
#pragma once

#include "primitive/cuda/norms/backward/team.cuh"

namespace oneflow_lite::cuda {

// Of shared memory, for a row's weights and biases; what StoreParts writes is behind it.
inline constexpr int kNarrowWeightBytes = 2 * NormPolicy::kNarrowPacks * kWarp * 32;

template <class T, int kPacks, bool kCentre, bool kFromOutput>
class NormNarrowTeam : NormTeam<T, kPacks, kCentre> {
  using Base = NormTeam<T, kPacks, kCentre>;
  using Base::a_, Base::dbias_, Base::dweight_, Base::Has, Base::grid_, Base::N, Base::turns_,
      typename Base::C, typename Base::Values;
  // x_hat is known with the row's sums.
  static constexpr bool kLate = kRecentre<T, kCentre> && !kFromOutput;
  static constexpr int kWeightBytes = kPacks * kWarp * static_cast<int>(sizeof(Values));
  static_assert((kFromOutput ? 2 : 1) * kWeightBytes <= kNarrowWeightBytes);

 public:
  OFL_DEVICE NormNarrowTeam(const NormBackward<T>& a, const NormBackwardGrid<T, kCentre>& grid,
                            char* shared)
      : Base(a, grid, shared), weights_(shared + this->rank_ * kPackBytes) {}

  OFL_DEVICE void Run() {
    AllowNextKernel();
    const int64_t row = this->row_;
    x_ = a_.x + row * a_.x_stride + this->column_;
    dy_ = a_.dy + row * a_.cols + this->column_;
    out_ = row * a_.cols + this->column_;
    // Where the caller has none, nothing that depends on it is wanted.
    const C* const any = reinterpret_cast<const C*>(a_.dy);
    rstd_ = a_.rstd ? a_.rstd + row : any;
    mean_ = kCentre && a_.mean ? a_.mean + row : any;
    Input next;
    Load(next, turns_ > 0);
    KeepWeights();
    // The warp's first team has most turns.
    const int turns = __shfl_sync(0xffffffffu, turns_, 0);
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
      const Input now = next;
      Load(next, turn + 1 < turns_);
      Visit(now, turn < turns_);
      out_ += grid_.step * a_.cols;
    }
    if (a_.dweight || a_.dbias) Base::StoreParts(this->shared_ + kNarrowWeightBytes);
  }

 private:
  struct Input {
    StowedPack<T, N> x[kPacks], dy[kPacks];
    C rstd, mean;
  };
  struct Row {
    Values v, g;  // x_hat and dy * weight; kLate: x - mean and dy
  };

  // Of two packs a thread each has the first.
  OFL_DEVICE bool Holds(int k) const { return (kPacks > 1 && k == 0) || Has(k); }
  // Zeros where there is no row, or pack.
  OFL_DEVICE void Load(Input& in, bool there) {
    Unroll<kPacks>([&](int k) {
      uint4 x = {}, dy = {};
      if (there && Holds(k)) {
        x = *reinterpret_cast<const uint4*>(x_ + Base::Offset(k));
        dy = *reinterpret_cast<const uint4*>(dy_ + Base::Offset(k));
      }
      memcpy(&in.x[k].held, &x, kPackBytes);
      memcpy(&in.dy[k].held, &dy, kPackBytes);
    });
    in.rstd = in.mean = 0;
    if (there) {
      in.rstd = *rstd_;
      if (kCentre) in.mean = *mean_;
    }
    Unroll<kPacks>([&](int k) { in.x[k].Pin(), in.dy[k].Pin(); });
    x_ += grid_.step * a_.x_stride, dy_ += grid_.step * a_.cols;
    if (a_.rstd) rstd_ += grid_.step;
    if (kCentre && a_.mean) mean_ += grid_.step;
  }
  // As they are computed with, which spares conversions, and in shared memory, which spares
  // registers. The block's teams share them.
  OFL_DEVICE void KeepWeights() {
    if (this->team_ == 0) {
#pragma unroll 1
      for (int k = 0; k < kPacks; ++k) {
        Keep(weights_, a_.weight, k, C(1));
        if (kFromOutput) Keep(weights_ + kWeightBytes, a_.bias, k, C(0));
      }
    }
    __syncthreads();
  }
  // Words lie a warp's words apart.
  OFL_DEVICE void Keep(char* places, const void* from, int k, C missing) const {
    StoreApart(places + k * static_cast<int>(sizeof(Values)) * kWarp, kWarp,
               LoadWeights<C, N, T>(from, a_.float_weight, this->column_ + Base::Offset(k), 0,
                                    Has(k) ? N : 0, missing));
  }
  OFL_DEVICE Values Kept(const char* places, int k) const {
    return LoadApart<Values>(places + k * static_cast<int>(sizeof(Values)) * kWarp, kWarp);
  }
  OFL_DEVICE Values Weight(int k) const { return Kept(weights_, k); }

  OFL_DEVICE void Visit(const Input& in, bool active) {
    Row rows[kPacks];
    NormSums<T, kCentre> sums;
    Unroll<kPacks>([&](int k) {
      Row& row = rows[k];
      row.v = in.x[k].GetWide();
      row.g = in.dy[k].GetWide();
      const Values w = Weight(k);
      if constexpr (kFromOutput) {
        const Values bias = Kept(weights_ + kWeightBytes, k);
        ToValues<kCentre, true>(row.v, w, bias, C(0));
      }
      C sum = 0;
      Unroll<N>([&](int i) {
        C& v = row.v.v[i];
        if (kCentre && !kFromOutput) v -= in.mean;
        if (!kLate && !kFromOutput) v *= in.rstd;
        const C dy = row.g.v[i], g = dy * w.v[i];
        sums.gv += g * v;
        if (kCentre) sums.g += g;
        if (kLate) sum += v;
        if (kCentre) dbias_[k].v[i] += dy;
        if (!kLate) dweight_[k].v[i] += dy * v, row.g.v[i] = g;
      });
      if (kLate && Holds(k)) sums.v += sum;
    });
#pragma unroll
    for (int mask = kWarp / 2; mask > 0; mask /= 2) {
      if (mask < grid_.team) sums = sums + ShuffleXor(sums, mask);
    }
    // What is not late is x_hat itself already.
    const NormGradient<T, kCentre, !kLate> gradient(sums, in.rstd, grid_.share);
    Unroll<kPacks>([&](int k) { Finish(k, rows[k], gradient, active); });
  }
  OFL_DEVICE void Finish(int k, const Row& row, const NormGradient<T, kCentre, !kLate>& gradient,
                         bool active) {
    Values w, dx;
    if (kLate) w = Weight(k);
    Unroll<N>([&](int i) {
      const C x_hat = gradient.XHat(row.v.v[i]);
      const C g = kLate ? row.g.v[i] * w.v[i] : row.g.v[i];
      if (kLate) dweight_[k].v[i] += row.g.v[i] * x_hat;
      dx.v[i] = gradient.Dx(g, x_hat);
    });
    if (!active || !a_.dx || !Holds(k)) return;
    const int64_t at = out_ + Base::Offset(k);
    if (a_.dsum) dx += ConvertPack<C>(LoadAlignedPack<N>(a_.dsum + at));
    StoreAlignedPack(a_.dx + at, ConvertPack<T>(dx));
  }

  const T *x_, *dy_;  // of the next row to ask for
  const C *rstd_, *mean_;
  int64_t out_;          // of the row at work
  char* const weights_;  // this lane's
};

template <class T, int kPacks, bool kCentre, bool kFromOutput>
__global__ void __launch_bounds__(ShapeOfNarrow(sizeof(T), kPacks, kNormKinds<kCentre>).threads,
                                  ShapeOfNarrow(sizeof(T), kPacks, kNormKinds<kCentre>).blocks)
    NormNarrowKernel(const __grid_constant__ NormBackward<T> a,
                     const __grid_constant__ NormBackwardGrid<T, kCentre> grid) {
  extern __shared__ __align__(128) char team_memory[];
  NormNarrowTeam<T, kPacks, kCentre, kFromOutput>(a, grid, team_memory).Run();
}

}  // namespace oneflow_lite::cuda
