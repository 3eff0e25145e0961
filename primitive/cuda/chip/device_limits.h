// SPDX-License-Identifier: Apache-2.0
//
// What the choice of a kernel depends on. Apart from launch.cuh, because code that is compiled at
// run time has no CUDA runtime to include.
#pragma once

#include <stdint.h>

namespace oneflow_lite::cuda {

// What a launcher must know about the device; read once per device by the caller.
struct DeviceLimits {
  int device = 0;
  int multiprocessors = 1;
  int shared_per_block = 48 << 10;  // bytes, after opt-in
  int shared_per_multiprocessor = 48 << 10;
  bool clusters = false;     // thread-block clusters, on the device and in the code that it runs
  bool cooperative = false;  // launches whose blocks may wait for each other
};

inline constexpr int kFirstWithClusters = 90;  // of the architectures
// Shared memory of its multiprocessor that every block takes besides its own, from sm_80 on.
inline constexpr int kReservedSharedBytes = 1024;

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t Max(int64_t a, int64_t b) { return a > b ? a : b; }

// The least power of two of blocks, at most `most`, for which `enough` holds; else `most`.
template <class F>
int LeastBlocks(int most, F&& enough) {
  int blocks = 1;
  while (blocks < most && !enough(blocks)) blocks *= 2;
  return blocks;
}

}  // namespace oneflow_lite::cuda
