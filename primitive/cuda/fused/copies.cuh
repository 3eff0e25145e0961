// SPDX-License-Identifier: Apache-2.0
//
// Copies of what serves all rows, for fused rows whose ends lie inside packs (fused/wide.cuh): one
// for each way such rows lie, in which their packs are whole. A kernel in front of theirs writes
// them to a workspace (fused/rows.cu), where they stay in the L2.
#pragma once

#include <stdint.h>

#include "primitive/cuda/chip/inline.cuh"
#include "primitive/cuda/fused/plan.h"

namespace oneflow_lite::cuda {

// Where the copies of an operand lie, in bytes from one to the next, and from the first to column 0
// of that for rows of `pack` elements in a pack whose first boundary is at column `head`: the pack
// behind it is at a multiple of 128 bytes.
__host__ OFL_DEVICE int64_t CopyPitch(int64_t cols, int element_bytes) {
  constexpr int kLine = kFusedSharedAlignment;
  return (cols * element_bytes + 2 * kLine - 1) / kLine * kLine;
}
__host__ OFL_DEVICE int64_t CopyStart(int head, int pack, int64_t cols, int element_bytes) {
  return head * CopyPitch(cols, element_bytes) + kFusedSharedAlignment -
         int64_t{head + pack} * element_bytes;
}

// The operand's copy for rows with that head, of N elements in a pack.
template <int N, class T>
OFL_DEVICE const T* CopyBeside(const T* copies, int head, int64_t cols) {
  const int64_t start = CopyStart(head, N, cols, static_cast<int>(sizeof(T)));
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(copies) + start);
}

// The algorithm over those copies, or as it is.
template <bool kCopied, class A>
OFL_DEVICE decltype(auto) BesideRow(const A& a, int head) {
  if constexpr (kCopied) {
    return a.Beside(head);
  } else {
    return (a);
  }
}

}  // namespace oneflow_lite::cuda
