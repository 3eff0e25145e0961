// SPDX-License-Identifier: Apache-2.0
//
// Sums of several values over a team of warps. A lane adds up one of them: which, changes with each
// step of the first few, so that they share the shuffles.
#pragma once

#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/norms/policy.h"

namespace oneflow_lite {
namespace cuda {

template <class C, int kValues>
class TeamSums {
  static constexpr int kPlaces = kValues > 2 ? 4 : kValues;
  static constexpr int kLanes = kWarp / kPlaces;  // that end up with the same value

 public:
  static constexpr int kMaxWarps = NormPolicy::kLeanWarps;
  static constexpr int kBytes = 2 * kPlaces * kMaxWarps * static_cast<int>(sizeof(C));

  // `shared`: kBytes of the team's own.
  __device__ __forceinline__ TeamSums(char* shared, int rank, int warps)
      : slots_(reinterpret_cast<C*>(shared)), warp_(rank / kWarp), warps_(warps) {}

  // Before the team meets; then Total.
  __device__ __forceinline__ void Post(const C (&values)[kValues]) {
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
  __device__ __forceinline__ void Total(C (&values)[kValues]) {
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

}  // namespace cuda
}  // namespace oneflow_lite
