// SPDX-License-Identifier: Apache-2.0
//
// What the rows of a norm's backward add to the gradients of weight and bias: kept in registers,
// and at the end added up over a block's teams and left in memory, for a second kernel.
#pragma once

#include "primitive/cuda/norms/backward/team.cuh"

namespace oneflow_lite::cuda {

// Where a launch's teams are, how they get their rows' sums and where they leave their parts.
template <class T, bool kCentre>
struct NormBackwardGrid : NormGrid {
  using C = ComputeType<T>;
  int chunks;
  bool needs_sums, packed_weight;
  bool like_x, like_dy, like_dsum;   // their rows lie like those of dx between 16-byte boundaries
  bool last;                         // a single unit, which writes dweight and dbias itself
  C share;                           // 1 / cols
  const NormSums<T, kCentre>* sums;  // [rows][chunks] where they are known; else null
  // [units][kNormKinds] rows of PartPitch: columns in their order or, where rows are whole packs,
  // all packs' first 16 bytes of C, then their second ones, and so on.
  C* parts;
};

template <class T, int kPacks, bool kCentre, bool kAligned>
class NormPartsTeam : protected NormTeam<T, kPacks, kAligned> {
 protected:
  using Base = NormTeam<T, kPacks, kAligned>;
  using Base::column_, Base::extra_, Base::Has, Base::N, Base::Offset, Base::unit_,
      typename Base::C, typename Base::Values;
  static constexpr int kKinds = kNormKinds<kCentre>;

  OFL_DEVICE NormPartsTeam(const NormBackward<T>& a, const NormBackwardGrid<T, kCentre>& grid,
                           char* shared)
      : Base(grid, shared, a.anchor(), a.rows, a.cols), a_(a), more_(grid) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      ClearOutside(dweight_[k], 0, 0);
      ClearOutside(dbias_[k], 0, 0);
    }
  }

  // Whether a block's parts are those of its threads, so that each thread can store its own, by
  // StoreStraight, without meeting the others.
  OFL_DEVICE bool IsStraight() const {
    return kAligned && static_cast<int>(blockDim.x) == PerRegion() && more_.team >= kWarp &&
           !more_.last;
  }
  OFL_DEVICE void StoreStraight() const {
    Unroll<kKinds * kVectors>([&](int i) {
      Unroll<kPacks>([&](int k) {
        if (Has(k)) StoreVector(i, k * more_.team + this->rank_, VectorOf(i, k));
      });
    });
  }
  // Adds up the block's teams, in a fixed order.
  OFL_DEVICE void StoreParts() {
    if (kAligned) {
      StoreVectors();
    } else {
      StoreColumns();
    }
  }

  const NormBackward<T>& a_;
  const NormBackwardGrid<T, kCentre>& more_;
  Values dweight_[kPacks], dbias_[kPacks];
  C extra_dweight_ = 0, extra_dbias_ = 0;  // of the column outside of packs

 private:
  using Vector = Pack<C, kPackSize<C>>;
  using Place = OnChipPack<C, kPackSize<C>>;
  static constexpr int kVectors = N / kPackSize<C>;  // of a pack

  // Threads that have a region of their own in the ring's memory: a warp's, or a larger team's.
  OFL_DEVICE int PerRegion() const { return more_.team < kWarp ? kWarp : more_.team; }
  OFL_DEVICE C* Part(int kind) const {
    return more_.parts + (int64_t{unit_} * kKinds + kind) * PartPitch<C>(a_.cols);
  }

  // Rows of whole packs. A region of the ring's memory: [kinds][vectors of a pack][packs].
  OFL_DEVICE void StoreVectors() {
    if (IsStraight()) return StoreStraight();
    if (more_.team < kWarp) AddGroups();  // which all have the same columns
    const int regions = static_cast<int>(blockDim.x) / PerRegion();
    const int step = this->packs_, size = kKinds * kVectors * step;
    Place* const memory = reinterpret_cast<Place*>(this->shared_ + kNormScratchBytes);
    Place* const mine = memory + static_cast<int>(threadIdx.x) / PerRegion() * size;
    const bool holds = static_cast<int>(threadIdx.x) % PerRegion() < more_.team;
    Unroll<kPacks>([&](int k) {
      if (!holds || !Has(k)) return;
      const int pack = k * more_.team + this->rank_;
      Unroll<kKinds * kVectors>([&](int i) { mine[i * step + pack].Put(VectorOf(i, k)); });
    });
    __syncthreads();
#pragma unroll 1
    for (int at = threadIdx.x; at < size; at += blockDim.x) {
      Vector sum = memory[at].Get();
#pragma unroll 4
      for (int r = 1; r < regions; ++r) sum += memory[r * size + at].Get();
      const int i = at / step, pack = at % step;
      if (!more_.last) {
        StoreVector(i, pack, sum);
        continue;
      }
      const int64_t col = FirstPack() * N + pack * N + i % kVectors * kPackSize<C>;
      Unroll<kPackSize<C>>([&](int j) { StorePart(i / kVectors, col + j, sum.v[j]); });
    }
  }
  OFL_DEVICE int64_t FirstPack() const { return int64_t{this->slice()} * more_.team * kPacks; }
  // Vector i, over kinds, of this thread's pack k.
  OFL_DEVICE Vector VectorOf(int i, int k) const {
    const Values& values = i < kVectors ? dweight_[k] : dbias_[k];
    Vector v;
    memcpy(&v, values.v + i % kVectors * kPackSize<C>, sizeof(v));
    return v;
  }
  // The same of a pack in memory.
  OFL_DEVICE void StoreVector(int i, int pack, const Vector& v) const {
    const int kind = i / kVectors;
    if (!(kind == 0 ? a_.dweight : a_.dbias)) return;
    const int64_t at = i % kVectors * (a_.cols / N) + FirstPack() + pack;
    StoreAlignedPack(Part(kind) + at * kPackSize<C>, v);
  }

  // Other rows. The ring's memory holds the team's columns of each region.
  OFL_DEVICE void StoreColumns() {
    // Of the block's teams, all columns; of a slice, those of its packs.
    const bool sliced = more_.slices > 1;
    const int64_t base = sliced ? column_ - this->rank_ * N : 0;
    const int64_t count = sliced ? int64_t{this->packs_} * N : a_.cols;
    if (sliced && extra_ >= 0) {
      StorePart(0, extra_, extra_dweight_);
      if (kCentre) StorePart(1, extra_, extra_dbias_);
    }
    C* const memory = reinterpret_cast<C*>(this->shared_ + kNormScratchBytes);
    C* const mine = memory + int64_t{static_cast<int>(threadIdx.x) / PerRegion()} * kKinds * count;
    const int groups = PerRegion() / more_.team;
    const int group = static_cast<int>(threadIdx.x) % PerRegion() / more_.team;
    for (int g = 0; g < groups; ++g) {
      if (group == g) AddToRegion(mine - base, count, g == 0);
      __syncwarp();
    }
    __syncthreads();
    const int regions = static_cast<int>(blockDim.x) / PerRegion();
#pragma unroll 1
    for (int kind = 0; kind < kKinds; ++kind) {
      for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        C sum = 0;
#pragma unroll 4
        for (int r = 0; r < regions; ++r) sum += memory[(int64_t{r} * kKinds + kind) * count + i];
        StorePart(kind, base + i, sum);
      }
    }
  }
  OFL_DEVICE void StorePart(int kind, int64_t column, C sum) const {
    void* const gradient = kind == 0 ? a_.dweight : a_.dbias;
    if (!gradient) return;
    if (!more_.last) {
      Part(kind)[column] = sum;
    } else {
      StoreWeightGradient<T>(gradient, a_.float_weight, column, sum);
    }
  }
  // Over the groups of a warp; its first group gets the sums.
  OFL_DEVICE void AddGroups() {
#pragma unroll 1
    for (int mask = kWarp / 2; mask >= more_.team; mask /= 2) {
      Unroll<kPacks>([&](int k) {
        Unroll<N>([&](int i) {
          dweight_[k].v[i] += ShuffleXor(dweight_[k].v[i], mask);
          if (kCentre) dbias_[k].v[i] += ShuffleXor(dbias_[k].v[i], mask);
        });
      });
    }
  }
  OFL_DEVICE void AddToRegion(C* region, int64_t count, bool fresh) const {
    const auto add = [&](C* to, C dweight, C dbias) {
      *to = dweight + (fresh ? C(0) : *to);
      if (kCentre) to[count] = dbias + (fresh ? C(0) : to[count]);
    };
    Unroll<kPacks>([&](int k) {
      if (!Has(k)) return;
      C* const to = region + column_ + Offset(k);
      Unroll<N>([&](int i) { add(to + i, dweight_[k].v[i], kCentre ? dbias_[k].v[i] : C(0)); });
    });
    if (extra_ >= 0 && more_.slices == 1) {
      add(region + extra_, extra_dweight_, extra_dbias_);
    }
  }
};

}  // namespace oneflow_lite::cuda
