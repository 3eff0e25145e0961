// SPDX-License-Identifier: Apache-2.0
//
// The launchers of copy.cu, copy_parts.cu, copy_rows.cu and repeat.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/cuda/strided/strided.h"

namespace oneflow_lite {
namespace cuda {

// Pointers are device memory; operands of g: source, destination.
using CopyLauncher = cudaError_t (*)(const Strided<2>& g, const void* src, void* dst, cudaStream_t);
// A transpose as PlanCopy (copy_plan.h) gives it.
CopyLauncher FindTransposingCopy(int element_bytes, int access_bytes);

// Up to kMost copies of rows of words; a launch's only argument.
struct CopyParts {
  static constexpr int kMost = 16;
  struct Part {
    const void* src;
    void* dst;
    Divisor row_words;         // of a row
    int64_t src_row, dst_row;  // words from a row to the next
    uint32_t words;            // in all, fewer than 2^31
    uint32_t first_block;      // set by the launcher
  };
  int count, word_bytes;
  Part part[kMost];
};
cudaError_t LaunchCopyParts(CopyParts parts, cudaStream_t stream);

// Up to kMost copies of rows as PlanCopy gives them (CopyPlan::shifted), in one launch that gives
// each as many blocks as the largest. Elements have 1, 2, 4 or 8 bytes.
struct ShiftedRows {
  static constexpr int kMost = 4;
  struct Part {
    const void* src;
    void* dst;
    Strided<2> rows;    // in elements; the dim along which both are dense is left out
    int32_t length;     // of a row
    Divisor row_packs;  // the most packs of dst that a row lies in
    uint32_t packs;     // so many times the rows
  };
  int count, element_bytes;
  Part part[kMost];
};
cudaError_t LaunchShiftedRows(const ShiftedRows& rows, cudaStream_t stream);

// y[i * count + l] = line[l][i]: 2 to 4 lines of words of 1, 2, 4 or 8 bytes.
struct InterleavedLines {
  static constexpr int kMost = 4;
  int count, word_bytes;
  int64_t length;  // of a line
  const void* line[kMost];
};
cudaError_t LaunchInterleave(const InterleavedLines& lines, void* y, cudaStream_t stream);

// dst[i] = src[i / times] of `count` elements of src.
using RepeatLauncher = cudaError_t (*)(int64_t count, int64_t times, const void* src, void* dst,
                                       cudaStream_t);
RepeatLauncher FindRepeat(int element_bytes);
// dst[k * bytes + i] = src[i] for k < times, in accesses of 16 bytes, to which both are aligned.
cudaError_t LaunchRepeatLine(int64_t bytes, int64_t times, const void* src, void* dst,
                             cudaStream_t stream);

}  // namespace cuda
}  // namespace oneflow_lite
