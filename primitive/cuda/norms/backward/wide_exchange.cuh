// SPDX-License-Identifier: Apache-2.0
//
// What slices of a row that are no cluster find out about the row's sums: through memory, in a
// launch whose blocks are all resident. A number travels in 8 bytes with the turn that it belongs
// to, so that nobody waits for what others have written, and the reader knows what has come.
//
//   NormSliceExchange<Sums, 2> exchange(words, unit, slice, slices);
//   exchange.Start();              // all threads of all blocks
//   exchange.Send(turn, sums);     // a warp of each slice, turn by turn
//   sums = exchange.Take(turn);    // the same, before it sends turn + kTurns - 1
#pragma once

#include <cooperative_groups.h>

#include "primitive/cuda/norms/backward/policy.h"
#include "primitive/cuda/norms/math.cuh"

namespace oneflow_lite::cuda {

// The first kSums of a Sums are exchanged: 4-byte numbers.
template <class Sums, int kSums>
class NormSliceExchange {
 public:
  static constexpr int kTurns = NormWidePolicy::kExchangeTurns;
  // Words of 8 bytes that a launch needs; they need not be cleared.
  __host__ __device__ static constexpr int64_t Words(int64_t units, int64_t slices) {
    return units * slices * kTurns * kSums;
  }

  OFL_DEVICE NormSliceExchange(uint64_t* words, int unit, int slice, int slices)
      : words_(words + int64_t{unit} * slices * kTurns * kSums), slice_(slice), slices_(slices) {}

  OFL_DEVICE void Start() const {
    for (int i = threadIdx.x; i < kTurns * kSums; i += blockDim.x) words_[i * slices_ + slice_] = 0;
    cooperative_groups::this_grid().sync();
  }

  OFL_DEVICE void Send(int turn, const Sums& sums) const {
    if (threadIdx.x % kWarp != 0) return;
    uint64_t* const to = Of(turn) + slice_;
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
      const uint64_t word = uint64_t{static_cast<uint32_t>(turn + 1)} << 32 |
                            __float_as_uint(reinterpret_cast<const float*>(&sums)[k]);
      asm volatile("st.relaxed.gpu.global.u64 [%0], %1;"
                   :
                   : "l"(to + k * slices_), "l"(word)
                   : "memory");
    }
  }

  // The sum over the slices: the same bits in all.
  OFL_DEVICE Sums Take(int turn) const {
    constexpr int kAtOnce = 5;
    const uint64_t* const from = Of(turn);
    float totals[kSums] = {};
    for (int slice = threadIdx.x % kWarp; slice < slices_; slice += kAtOnce * kWarp) {
      uint64_t words[kAtOnce][kSums];
      bool come = false;
      while (!come) {
        come = true;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
          for (int k = 0; k < kSums; ++k) {
            words[i][k] = uint64_t{static_cast<uint32_t>(turn + 1)} << 32;
            if (slice + i * kWarp < slices_) {
              words[i][k] = Load(from + k * slices_ + slice + i * kWarp);
            }
          }
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
          for (int k = 0; k < kSums; ++k) {
            come &= words[i][k] >> 32 == static_cast<uint32_t>(turn + 1);
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
        for (int k = 0; k < kSums; ++k) {
          totals[k] += __uint_as_float(static_cast<uint32_t>(words[i][k]));
        }
      }
    }
    Sums sums;
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
      reinterpret_cast<float*>(&sums)[k] = ReduceLanes<kWarp>(totals[k], Plus{});
    }
    return sums;
  }

 private:
  OFL_DEVICE uint64_t* Of(int turn) const { return words_ + turn % kTurns * kSums * slices_; }
  OFL_DEVICE static uint64_t Load(const uint64_t* word) {
    uint64_t v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(word) : "memory");
    return v;
  }
  uint64_t* const words_;
  const int slice_, slices_;
};

}  // namespace oneflow_lite::cuda
