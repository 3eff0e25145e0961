// SPDX-License-Identifier: Apache-2.0
//
// Teams of threads (norms/policy.h) that stay for a whole launch and visit row after row of whole
// packs. A thread's columns are the same in every row, so that weights wait on chip and gradients
// of weights gather in registers.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
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

// Where a launch's teams are, and where they leave their parts.
template <class T, bool kCentre>
struct NormBackwardGrid {
  using C = ComputeType<T>;
  int team, stages;
  int step;   // rows from one of a team to its next
  int slack;  // bytes of a tensor in a stage beside those of its packs
  bool needs_sums;
  bool last;  // a single unit, which writes dweight and dbias itself
  C share;    // 1 / cols
  // [units][kNormKinds] rows of PartPitch: all packs' first 16 bytes of C, then their second ones,
  // and so on.
  C* parts;
};

// Bulk copies are faster where both ends lie alike between multiples of so many bytes.
inline constexpr int kNormLineBytes = 128;

// Packs per thread of the wider teams: 16 columns, 8 of float64.
template <class T>
inline constexpr int kManyPacks = sizeof(T) == 2 ? 2 : 4;

// One thread's part in its team, and what its rows add to the gradients of weight and bias: at the
// end added up over a block's teams and left in memory, for a second kernel.
template <class T, int kPacks, bool kCentre>
class NormTeam {
 protected:
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<T>, kKinds = kNormKinds<kCentre>;
  using Values = Pack<C, N>;

  OFL_DEVICE NormTeam(const NormBackward<T>& a, const NormBackwardGrid<T, kCentre>& grid,
                      char* shared)
      : a_(a),
        grid_(grid),
        shared_(shared),
        team_(threadIdx.x / grid.team),
        rank_(threadIdx.x % grid.team),
        packs_(static_cast<int>(a.cols / N)),
        column_(rank_ * N) {
    const int teams = blockDim.x / grid.team;
    row_ = int64_t{blockIdx.x} * teams + team_;
    turns_ = row_ < a.rows ? static_cast<int>((a.rows - row_ + grid.step - 1) / grid.step) : 0;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      ClearOutside(dweight_[k], 0, 0);
      ClearOutside(dbias_[k], 0, 0);
    }
  }

  // Pack k of this thread: whether there is one, and where it starts.
  OFL_DEVICE int Offset(int k) const { return k * grid_.team * N; }
  OFL_DEVICE bool Has(int k) const { return k * grid_.team + rank_ < packs_; }

  // Of a row of one tensor in a stage.
  OFL_DEVICE int TensorBytes() const { return grid_.team * kPacks * kPackBytes + grid_.slack; }

  // All threads of the team come here.
  OFL_DEVICE void Meet() const {
    if (grid_.team > kWarp) {
      NamedBarrier(team_ + 1, grid_.team);
    } else {
      __syncwarp();
    }
  }

  // Whether a block's parts are those of its threads, so that each thread can store its own, by
  // StoreStraight, without meeting the others.
  OFL_DEVICE bool IsStraight() const {
    return static_cast<int>(blockDim.x) == PerRegion() && grid_.team >= kWarp && !grid_.last;
  }
  OFL_DEVICE void StoreStraight() const {
    Unroll<kKinds * kVectors>([&](int i) {
      Unroll<kPacks>([&](int k) {
        if (Has(k)) StoreVector(i, k * grid_.team + rank_, VectorOf(i, k));
      });
    });
  }
  // Adds up the block's teams, in a fixed order, in the memory from `shared` on, of which each
  // region has [kinds][vectors of a pack][packs].
  OFL_DEVICE void StoreParts(char* shared) {
    if (IsStraight()) return StoreStraight();
    if (grid_.team < kWarp) AddGroups();  // which all have the same columns
    const int regions = static_cast<int>(blockDim.x) / PerRegion();
    const int step = packs_, size = kKinds * kVectors * step;
    Place* const memory = reinterpret_cast<Place*>(shared);
    Place* const mine = memory + static_cast<int>(threadIdx.x) / PerRegion() * size;
    const bool holds = static_cast<int>(threadIdx.x) % PerRegion() < grid_.team;
    Unroll<kPacks>([&](int k) {
      if (!holds || !Has(k)) return;
      const int pack = k * grid_.team + rank_;
      Unroll<kKinds * kVectors>([&](int i) { mine[i * step + pack].Put(VectorOf(i, k)); });
    });
    __syncthreads();
#pragma unroll 1
    for (int at = threadIdx.x; at < size; at += blockDim.x) {
      Vector sum = memory[at].Get();
#pragma unroll 4
      for (int r = 1; r < regions; ++r) sum += memory[r * size + at].Get();
      const int i = at / step, pack = at % step;
      if (!grid_.last) {
        StoreVector(i, pack, sum);
        continue;
      }
      const int64_t col = int64_t{pack} * N + i % kVectors * kPackSize<C>;
      void* const gradient = i < kVectors ? a_.dweight : a_.dbias;
      if (!gradient) continue;
      Unroll<kPackSize<C>>(
          [&](int j) { StoreWeightGradient<T>(gradient, a_.float_weight, col + j, sum.v[j]); });
    }
  }

  const NormBackward<T>& a_;
  const NormBackwardGrid<T, kCentre>& grid_;
  char* const shared_;
  const int team_, rank_;
  const int packs_;       // of a row
  const int64_t column_;  // where this thread's first pack starts
  int turns_;
  int64_t row_;
  // What the rows add to the gradients of weight and bias.
  Values dweight_[kPacks], dbias_[kPacks];

 private:
  using Vector = Pack<C, kPackSize<C>>;
  using Place = OnChipPack<C, kPackSize<C>>;
  static constexpr int kVectors = N / kPackSize<C>;  // of a pack

  // Threads that have a region of their own in the ring's memory: a warp's, or a larger team's.
  OFL_DEVICE int PerRegion() const { return grid_.team < kWarp ? kWarp : grid_.team; }
  OFL_DEVICE C* Part(int kind) const {
    return grid_.parts + (int64_t{blockIdx.x} * kKinds + kind) * PartPitch<C>(a_.cols);
  }

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
    const int64_t at = i % kVectors * (a_.cols / N) + pack;
    StoreAlignedPack(Part(kind) + at * kPackSize<C>, v);
  }

  // Over the groups of a warp; its first group gets the sums.
  OFL_DEVICE void AddGroups() {
#pragma unroll 1
    for (int mask = kWarp / 2; mask >= grid_.team; mask /= 2) {
      Unroll<kPacks>([&](int k) {
        Unroll<N>([&](int i) {
          dweight_[k].v[i] += ShuffleXor(dweight_[k].v[i], mask);
          if (kCentre) dbias_[k].v[i] += ShuffleXor(dbias_[k].v[i], mask);
        });
      });
    }
  }
};

}  // namespace oneflow_lite::cuda
