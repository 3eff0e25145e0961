// SPDX-License-Identifier: Apache-2.0
//
// What rows in shared memory end at, for tests that walk the boundaries of
// primitive/cuda/rows/policy.h without the device compiler.
#pragma once

#include <cstdint>

namespace oneflow_lite {

// Bytes of shared memory that a block takes beside the packs it keeps; cuda_fusions_test.cu
// compares them with the kernels' own.
inline constexpr int kRowSharedScratchBytes = 3088;

// Packs of the longest row of which `blocks` keep all in so many bytes of shared memory each.
inline int64_t MostPacksKept(int64_t blocks, int64_t bytes, int64_t bytes_per_pack) {
  return blocks * ((bytes - kRowSharedScratchBytes) / bytes_per_pack);
}

}  // namespace oneflow_lite
