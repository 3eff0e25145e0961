// SPDX-License-Identifier: Apache-2.0
//
// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel Random Numbers: As Easy as
// 1, 2, 3" (SC'11), for host and device: the number an element gets depends on the seed and the
// element's index alone, so CPU and CUDA give the same integers and uniforms.
//
//   auto r = Philox(seed, offset + i / 4);   // four 32-bit integers for elements 4k..4k+3
//   float u = UniformFloat(r.v[i % 4]);      // in [0, 1)
#pragma once

#include <cstdint>

#include "oneflow_lite/core/host_device.h"

namespace oneflow_lite {

struct PhiloxResult {
  uint32_t v[4];
};

// Ten rounds on the 128-bit counter (counter, 0) under the 64-bit key `seed`.
OFL_HOST_DEVICE PhiloxResult Philox(uint64_t seed, uint64_t counter) {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = 0, c3 = 0;
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(p1);
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// The top 24 bits as a float in [0, 1): exact, never 1.
OFL_HOST_DEVICE float UniformFloat(uint32_t bits) {
  return static_cast<float>(bits >> 8) * (1.0f / 16777216.0f);
}
// 53 bits of two integers as a double in [0, 1).
OFL_HOST_DEVICE double UniformDouble(uint32_t high, uint32_t low) {
  const uint64_t bits = (uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * (1.0 / 9007199254740992.0);
}

}  // namespace oneflow_lite
