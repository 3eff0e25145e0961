// SPDX-License-Identifier: Apache-2.0
//
// What a thread does with its part of a row of the norms' forward where every row is whole packs of
// 16 bytes: the kernels of norms/forward_whole.cuh.
#pragma once

#include "primitive/cuda/norms/sums.cuh"
#include "primitive/cuda/norms/whole_policy.h"

namespace oneflow_lite::cuda {

template <class T>
struct NormWhole {
  using C = ComputeType<T>;
  NormForward<T> a;
  C eps, share;  // share: 1 / cols
  int packs;     // of a row
  // weight and, for layer_norm, bias are there, aligned to 16 bytes: of T; of float32, T being a
  // 16-bit type.
  bool plain, mixed;
  uint32_t none = 0;
};

// Threads that hold a row: kTeam lanes, or (0) one or more blocks.
template <int kTeam>
inline constexpr bool kIsLanes = kTeam > 0;

// Whether a thread keeps its part of a row in the compute type: layer_norm's as distances from the
// warp's mean.
template <class T, int kTeam, bool kResidual, int kPacks>
inline constexpr bool kHoldsValues = (kPacks * kPackSize<T> * sizeof(ComputeType<T>) <=
                                      (kIsLanes<kTeam> || kResidual ? 64 : 128));

// Weights of float32 over 16-bit elements: rows are packs of 8 bytes then, so that a warp reads
// neighbouring words of a weight. 32 bytes apart, those took twice the time of the L1.
template <class T, class W>
inline constexpr bool kIsMixed = sizeof(T) == 2 && std::is_same_v<W, float>;

// What a thread holds of a row. Load, Gather, Conclude and Store follow each other, and
// AskForWeights comes somewhere before Store. kAhead: packs of weight and bias that wait in
// registers; each one used makes room for the one that many further on. kFull: every thread has all
// its packs. W: the type of weight and bias where they are plain or mixed (see NormWhole), else
// void. kBytes: of a pack.
template <class T, bool kCentre, bool kResidual, int kTeam, int kPacks, int kAhead, bool kFull,
          class W, int kBytes = kPackBytes>
class NormWholeRow {
  using C = ComputeType<T>;
  static constexpr int N = kBytes / static_cast<int>(sizeof(T));
  using Values = Pack<C, N>;
  using Stowed = StowedPack<T, N>;
  static constexpr bool kPlain = !std::is_void_v<W>;
  using Weight = std::conditional_t<kPlain, W, T>;
  using StowedWeight = StowedPack<Weight, N>;
  using Part = NormPart<C>;
  static constexpr int kLanes = kIsLanes<kTeam> ? kTeam : kWarp;

  static constexpr bool kHold =
      kHoldsValues<T, kTeam, kResidual, kPacks / (kIsMixed<T, W> ? 2 : 1)>;
  static constexpr bool kTwoWays = !kFull && !kIsLanes<kTeam> && sizeof(T) > 2;
  // Whether packs that are not there hold 0. With eight packs that spills.
  static constexpr bool kClears = !kFull && kPacks * kBytes <= 4 * kPackBytes;
  // Whether lanes have all their packs in one warp, with kFull, and have not in the grid's last:
  // a row has the same bits in both, so both compute alike.
  static constexpr bool kOneOrder = kIsLanes<kTeam> && kCentre && kHold;
  // Sums that are added up side by side: a chain of additions is long, but a second takes a
  // register that eight packs lack.
  static constexpr int kChains = kClears && !kOneOrder ? 2 : 1;

 public:
  // size: threads that hold the row; rank: which of them this one is.
  OFL_DEVICE NormWholeRow(const NormWhole<T>& p, int64_t row, int packs, int rank, int size)
      : p_(p), row_(row), packs_(packs), rank_(rank), size_(size), col_(rank * N) {}

  // Asks for the row; nothing waits for it yet.
  OFL_DEVICE void Load() {
    LoadPacks(p_.a.x + row_ * p_.a.x_stride, x_);
    if constexpr (kResidual) LoadPacks(p_.a.residual + row_ * p_.a.cols, residual_);
  }
  OFL_DEVICE void AskForWeights() {
    step_ = size_ * N;
    next_ = col_;
#pragma unroll
    for (int k = 0; k < kAhead; ++k) AskForWeight(k);
  }

  // All loads are under way before any is waited for. The compiler would ask for some weights only
  // where it can have the registers of x for them: so x depends on them, by bits that are masked
  // out, as the compiler cannot know.
  OFL_DEVICE void FinishAsking() {
    if constexpr (kPlain && sizeof(T) <= 4) {
      uint32_t word = FirstWord(x_[0]);
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        word ^= FirstWord(weight_[k]) & p_.none;
        if constexpr (kCentre) word ^= FirstWord(bias_[k]) & p_.none;
      }
      memcpy(&x_[0], &word, sizeof(word));
    }
  }

  // What this warp's columns come to, or those of this group of lanes.
  OFL_DEVICE Part Gather() {
    if constexpr (kResidual) AddResidual();
    if constexpr (kHold) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) held_[k] = ConvertPack<C>(x_[k].Get());
    }
    C sums[2] = {};
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!kClears && !Has(k)) continue;
      const Values v = Value(k);
#pragma unroll
      for (int i = 0; i < N; ++i) sums[i % kChains] += kCentre ? v.v[i] : v.v[i] * v.v[i];
    }
    const C sum = ReduceLanes<kLanes>(sums[0] + sums[1], Plus{});
    Part part;
    part.squares = sum;
    if constexpr (kCentre) Centre(sum, part);
    return part;
  }

  // row: what the whole row comes to.
  OFL_DEVICE void Conclude(const Part& row) {
    rstd_ = RstdOf<kCentre>(row, p_.share, p_.eps);
    row_mean_ = row.mean + row.low;
    if constexpr (kCentre) offset_ = ((mean_ - row.mean) - row.low) * rstd_;
  }
  // By one thread.
  OFL_DEVICE void StoreStatistics() const {
    if (rank_ != 0 || packs_ == 0) return;
    if (kCentre && p_.a.mean) p_.a.mean[row_] = row_mean_;
    if (p_.a.rstd) p_.a.rstd[row_] = rstd_;
  }
  OFL_DEVICE void Store() {
    uint32_t col = col_;
#pragma unroll
    for (int k = 0; k < kPacks; ++k, Advance(col)) {
      if (!Has(k)) break;  // with `continue` the compiler keeps all columns, and spills
      Values y = Value(k);
#pragma unroll
      for (C& v : y.v) {
        if (kCentre && !kHold) v = Centred(v, mean_);
        v = kCentre ? Moved(v) : v * rstd_;
      }
      if (kPlain || p_.a.weight) y *= WeightOf(p_.a.weight, weight_[k % kAhead], col);
      if (kPlain ? kCentre : p_.a.bias != nullptr) {
        y += WeightOf(p_.a.bias, bias_[kCentre ? k % kAhead : 0], col);
      }
      if (k + kAhead < kPacks) AskForWeight(k + kAhead);
      StoreAlignedPack<N>(p_.a.y + row_ * p_.a.cols + col, ConvertPack<T>(y));
    }
  }

 private:
  OFL_DEVICE bool Has(int k) const { return kFull || rank_ + k * size_ < packs_; }
  OFL_DEVICE int Column(int k) const { return col_ + k * size_ * N; }
  OFL_DEVICE Values Value(int k) const {
    if constexpr (kHold) return held_[k];
    return ConvertPack<C>(x_[k].Get());
  }
  // v * rstd + offset. Of one pack of wide elements the compiler would put the offset's own product
  // into the sum in some branches, which takes longer and rounds otherwise.
  OFL_DEVICE C Moved(C v) const {
    if constexpr (kOneOrder && sizeof(T) > 2) return fma(v, rstd_, offset_);
    return v * rstd_ + offset_;
  }
  // The compiler would mix predicated loads with the first uses of packs, each of which then waits:
  // those of a thread that has all its packs are in a block of their own.
  OFL_DEVICE void LoadPacks(const T* from, Stowed (&to)[kPacks]) const {
    if (kTwoWays && Has(kPacks - 1)) {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) to[k] = Stowed::Of(LoadAlignedPack<N>(from + Column(k)));
    } else {
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
        if (kClears) to[k] = Stowed();
        if (Has(k)) to[k] = Stowed::Of(LoadAlignedPack<N>(from + Column(k)));
      }
    }
    if constexpr (kTwoWays) {
#pragma unroll
      for (Stowed& pack : to) pack.Pin();
    }
  }
  OFL_DEVICE void AskForWeight(int k) {
    if constexpr (!kPlain) return;
    if (Has(k)) {
      weight_[k % kAhead] =
          StowedWeight::Of(LoadWholePack<N>(static_cast<const Weight*>(p_.a.weight) + next_));
      if constexpr (kCentre) {
        bias_[k % kAhead] =
            StowedWeight::Of(LoadWholePack<N>(static_cast<const Weight*>(p_.a.bias) + next_));
      }
    }
    Advance(next_);
  }
  template <class Words>
  static OFL_DEVICE uint32_t FirstWord(const Words& pack) {
    uint32_t word;
    memcpy(&word, &pack, sizeof(word));
    return word;
  }
  // To the column of the thread's next pack.
  OFL_DEVICE void Advance(uint32_t& col) const { col += step_; }
  // The sum is what T holds of it.
  OFL_DEVICE void AddResidual() {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      Values sum = ConvertPack<C>(x_[k].Get());
      sum += ConvertPack<C>(residual_[k].Get());
      const Pack<T, N> kept = ConvertPack<T>(sum);
      x_[k] = Stowed::Of(kept);
      if (p_.a.sum) StoreAlignedPack<N>(p_.a.sum + row_ * p_.a.cols + Column(k), kept);
    }
  }

  // Columns of this warp or group.
  OFL_DEVICE C Count() const {
    if (kIsLanes<kTeam>) return static_cast<C>(packs_ * N);
    if (kFull) return C(kWarp * kPacks * N);
    int count = 0;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int left = packs_ - (rank_ - static_cast<int>(threadIdx.x % kWarp) + k * size_);
      count += left < 0 ? 0 : left < kWarp ? left : kWarp;
    }
    return static_cast<C>(count * N);
  }
  OFL_DEVICE void Centre(C sum, Part& part) {
    part.count = Count();
    const C share = kIsLanes<kTeam>   ? p_.share
                    : kFull           ? C(1) / (kWarp * kPacks * N)
                    : part.count == 0 ? C(0)
                                      : Quotient(C(1), part.count);
    part.mean = mean_ = sum * share;
    SumOf<C, 2> sums;  // of the distances, and of their squares
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      Values v = Value(k);
#pragma unroll
      for (C& d : v.v) {
        d = Centred(d, mean_);
        if (sizeof(T) > 2) sums.v[0] += d;
        sums.v[1] += d * d;
      }
      if constexpr (kHold) held_[k] = v;
    }
    SetCentred<T, kLanes>(sum, sums, share, part);
  }

  OFL_DEVICE Values WeightOf(const void* from, const StowedWeight& held, uint32_t col) const {
    if constexpr (kPlain) return ConvertPack<C>(held.Get());
    return LoadWeights<C, N, T>(from, p_.a.float_weight, col, 0, N, C(0));
  }

  const NormWhole<T>& p_;
  const int64_t row_;
  const int packs_, rank_, size_, col_;
  uint32_t next_ = 0;                   // column of the weights that are asked for next
  uint32_t step_ = 0;                   // columns from a thread's pack to its next
  C mean_ = 0, rstd_ = 0, offset_ = 0;  // y = (x - mean) * rstd + offset, before the weight
  C row_mean_ = 0;
  Stowed x_[kPacks], residual_[kPacks];
  StowedWeight weight_[kAhead], bias_[kCentre ? kAhead : 1];
  Values held_[kHold ? kPacks : 1];
};

}  // namespace oneflow_lite::cuda
