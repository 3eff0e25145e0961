// SPDX-License-Identifier: Apache-2.0
//
// Philox of several counters of one seed: the keys of its rounds wait in registers, where the
// compiler would work them out again for each counter.
//
//   const PhiloxKeys keys(seed);
//   const PhiloxResult r = keys.Draw(counter);   // Philox(seed, counter) of core/philox.h
#pragma once

#include "oneflow_lite/core/philox.h"
#include "primitive/cuda/chip/pack.cuh"

namespace oneflow_lite {
namespace cuda {

class PhiloxKeys {
 public:
  __device__ __forceinline__ explicit PhiloxKeys(uint64_t seed) {
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      const auto step = static_cast<uint32_t>(round);
      low_[round] = static_cast<uint32_t>(seed) + step * 0x9E3779B9u;
      high_[round] = static_cast<uint32_t>(seed >> 32) + step * 0xBB67AE85u;
      PinRegister(low_[round]);
      PinRegister(high_[round]);
    }
  }
  __device__ __forceinline__ PhiloxResult Draw(uint64_t counter) const {
    uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
    uint32_t c2 = 0, c3 = 0;
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
      c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ low_[round];
      c1 = static_cast<uint32_t>(p1);
      c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ high_[round];
      c3 = static_cast<uint32_t>(p0);
    }
    return {{c0, c1, c2, c3}};
  }

 private:
  static constexpr int kRounds = 10;
  uint32_t low_[kRounds], high_[kRounds];
};

}  // namespace cuda
}  // namespace oneflow_lite
