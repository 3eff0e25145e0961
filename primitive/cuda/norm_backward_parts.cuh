// SPDX-License-Identifier: Apache-2.0
//
// What the rows of a norm's backward add to the gradients of weight and bias: kept in registers,
// and at the end added up over a block's teams and left in memory, for a second kernel.
#pragma once

#include "primitive/cuda/norm_team.cuh"

namespace oneflow_lite {
namespace cuda {

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
  C* parts;                          // [units][kNormKinds][cols]
};
template <bool kCentre>
inline constexpr int kNormKinds = kCentre ? 2 : 1;  // dweight, dbias

template <class T, int kPacks, bool kCentre, bool kAligned>
class NormPartsTeam : protected NormTeam<T, kPacks, 2, kAligned> {
 protected:
  using Base = NormTeam<T, kPacks, 2, kAligned>;
  using Base::column_;
  using Base::extra_;
  using Base::Has;
  using Base::N;
  using Base::Offset;
  using Base::unit_;
  using typename Base::C;
  using typename Base::Values;
  static constexpr int kKinds = kNormKinds<kCentre>;

  __device__ __forceinline__ NormPartsTeam(const NormBackward<T>& a,
                                           const NormBackwardGrid<T, kCentre>& grid, char* shared)
      : Base(grid, shared, a.dx ? a.dx : a.dy, a.rows, a.cols), a_(a), more_(grid) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      ClearOutside(dweight_[k], 0, 0);
      ClearOutside(dbias_[k], 0, 0);
    }
  }

  // Adds up the block's teams, in a fixed order. The ring's memory holds one region of the team's
  // columns per warp, or per team of several warps.
  __device__ __forceinline__ void StoreParts() {
    // Of the block's teams, all columns; of a slice, those of its packs.
    const bool sliced = more_.slices > 1;
    const int64_t base = sliced ? column_ - this->rank_ * N : 0;
    const int64_t count = sliced ? int64_t{this->packs_} * N : a_.cols;
    if (!kAligned && sliced && extra_ >= 0) {
      StorePart(0, extra_, extra_dweight_);
      if (kCentre) StorePart(1, extra_, extra_dbias_);
    }
    const int per_region = more_.team < kWarp ? kWarp : more_.team;
    C* const memory = reinterpret_cast<C*>(this->shared_ + kNormScratchBytes);
    C* const mine = memory + int64_t{static_cast<int>(threadIdx.x) / per_region} * kKinds * count;
    int groups = per_region / more_.team;
    const int group = static_cast<int>(threadIdx.x) % per_region / more_.team;
    if (kAligned && groups > 1) {
      AddGroups();  // which all have the same columns
      groups = 1;
    }
    for (int g = 0; g < groups; ++g) {
      if (group == g) AddToRegion(mine - base, count, g == 0);
      __syncwarp();
    }
    __syncthreads();
    const int regions = static_cast<int>(blockDim.x) / per_region;
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

  const NormBackward<T>& a_;
  const NormBackwardGrid<T, kCentre>& more_;
  Values dweight_[kPacks], dbias_[kPacks];
  C extra_dweight_ = 0, extra_dbias_ = 0;  // of the column outside of packs

 private:
  __device__ __forceinline__ void StorePart(int kind, int64_t column, C sum) const {
    void* const gradient = kind == 0 ? a_.dweight : a_.dbias;
    if (!gradient) return;
    if (!more_.last) {
      more_.parts[(int64_t{unit_} * kKinds + kind) * a_.cols + column] = sum;
    } else if (a_.float_weight) {
      static_cast<float*>(gradient)[column] = static_cast<float>(sum);
    } else {
      static_cast<T*>(gradient)[column] = ConvertTo<T>(sum);
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
  __device__ __forceinline__ void AddToRegion(C* region, int64_t count, bool fresh) const {
    const auto add = [&](C* to, C dweight, C dbias) {
      *to = dweight + (fresh ? C(0) : *to);
      if (kCentre) to[count] = dbias + (fresh ? C(0) : to[count]);
    };
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      C* const to = region + column_ + Offset(k);
#pragma unroll
      for (int i = 0; i < N; ++i) add(to + i, dweight_[k].v[i], kCentre ? dbias_[k].v[i] : C(0));
    }
    if (!kAligned && extra_ >= 0 && more_.slices == 1) {
      add(region + extra_, extra_dweight_, extra_dbias_);
    }
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
