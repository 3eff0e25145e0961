// SPDX-License-Identifier: Apache-2.0
//
// Philox for many counters in a row: loops over lanes, which the compiler turns into vectors, of
// the instruction set of the function that they are inlined into.
#pragma once

#include <cstdint>

namespace oneflow_lite {

inline constexpr int kPhiloxLanes = 16;

// words[i] of the counter counter + lane: that of Philox(seed, counter + lane) (core/philox.h).
struct PhiloxBlock {
  uint32_t words[4][kPhiloxLanes];

  [[gnu::always_inline]] PhiloxBlock(uint64_t seed, uint64_t counter) {
    auto& [c0, c1, c2, c3] = words;
    for (int i = 0; i < kPhiloxLanes; ++i) {
      const uint64_t at = counter + static_cast<uint64_t>(i);
      c0[i] = static_cast<uint32_t>(at), c1[i] = static_cast<uint32_t>(at >> 32);
      c2[i] = 0, c3[i] = 0;
    }
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < kPhiloxLanes; ++i) {
        const uint64_t p0 = uint64_t{0xD2511F53u} * c0[i], p1 = uint64_t{0xCD9E8D57u} * c2[i];
        c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
        c1[i] = static_cast<uint32_t>(p1);
        c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
        c3[i] = static_cast<uint32_t>(p0);
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  }
};

}  // namespace oneflow_lite
