// SPDX-License-Identifier: Apache-2.0
//
// Parts of work that have memory of their own, which one call asks for and another uses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>

#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite::cpu {

// As many parts of at least `grain` as the machine has cores, for threads to share: not of
// NumThreads(), which another thread may change between the two calls.
inline int64_t StableParts(int64_t n, int64_t grain) {
  if (InSerialRegion()) return 1;
  static const int64_t most = std::max(1u, std::thread::hardware_concurrency());
  grain = std::max<int64_t>(1, grain);
  return std::clamp<int64_t>(n / grain + (n % grain > 0), 1, most);
}

}  // namespace oneflow_lite::cpu
