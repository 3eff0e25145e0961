// SPDX-License-Identifier: Apache-2.0
//
// What slices of a row that are no cluster find out about the row's sums: through memory, in a
// launch whose blocks are all resident. 4 bytes of a number travel in 8 with the turn that they
// belong to, so that nobody waits for what others have written, and the reader knows what has come.
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

// The first kSums of a Sums, which are of C, are exchanged.
template <class Sums, class C, int kSums>
class NormSliceExchange {
 public:
  static constexpr int kTurns = NormWidePolicy::kExchangeTurns;
  static constexpr int kWords = kSums * static_cast<int>(sizeof(C) / sizeof(uint32_t));
  // Words of 8 bytes that a launch needs; they need not be cleared.
  __host__ __device__ static constexpr int64_t Words(int64_t units, int64_t slices) {
    return units * slices * kTurns * kWords;
  }

  OFL_DEVICE NormSliceExchange(uint64_t* words, int unit, int slice, int slices)
      : words_(words + int64_t{unit} * slices * kTurns * kWords), slice_(slice), slices_(slices) {}

  OFL_DEVICE void Start() const {
    for (int i = threadIdx.x; i < kTurns * kWords; i += blockDim.x)
      words_[i * slices_ + slice_] = 0;
    cooperative_groups::this_grid().sync();
  }

  OFL_DEVICE void Send(int turn, const Sums& sums) const {
    if (threadIdx.x % kWarp != 0) return;
    uint64_t* const to = Of(turn) + slice_;
    uint32_t words[kWords];
    memcpy(words, &sums, sizeof(words));
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      const uint64_t word = uint64_t{static_cast<uint32_t>(turn + 1)} << 32 | words[k];
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
    C totals[kSums] = {};
    for (int slice = threadIdx.x % kWarp; slice < slices_; slice += kAtOnce * kWarp) {
      uint64_t words[kAtOnce][kWords];
      bool come = false;
      while (!come) {
        come = true;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
          for (int k = 0; k < kWords; ++k) {
            words[i][k] = uint64_t{static_cast<uint32_t>(turn + 1)} << 32;
            if (slice + i * kWarp < slices_) {
              words[i][k] = Load(from + k * slices_ + slice + i * kWarp);
            }
          }
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
          for (int k = 0; k < kWords; ++k) {
            come &= words[i][k] >> 32 == static_cast<uint32_t>(turn + 1);
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        uint32_t halves[kWords];
#pragma unroll
        for (int k = 0; k < kWords; ++k) halves[k] = static_cast<uint32_t>(words[i][k]);
        C numbers[kSums];
        memcpy(numbers, halves, sizeof(numbers));
#pragma unroll
        for (int k = 0; k < kSums; ++k) totals[k] += numbers[k];
      }
    }
    Sums sums;
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
      reinterpret_cast<C*>(&sums)[k] = ReduceLanes<kWarp>(totals[k], Plus{});
    }
    return sums;
  }

 private:
  OFL_DEVICE uint64_t* Of(int turn) const { return words_ + turn % kTurns * kWords * slices_; }
  OFL_DEVICE static uint64_t Load(const uint64_t* word) {
    uint64_t v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(word) : "memory");
    return v;
  }
  uint64_t* const words_;
  const int slice_, slices_;
};

}  // namespace oneflow_lite::cuda
