// SPDX-License-Identifier: Apache-2.0
//
// The launchers behind fused_rows.cpp: plain values, no Abseil.
#pragma once

#include <cuda_runtime_api.h>

#include "primitive/cuda/fused/policy.h"
#include "primitive/cuda/rows/policy.h"

namespace oneflow_lite::cuda {

struct FusedRowsProblem {
  int64_t rows, cols;
  int pack, bytes_per_pack;
  bool is_double, shares_registers, is_lean;
  int most_clustered;
};

// The tier of rows/policy.h that serves the rows; `threads` is set for every tier.
RowPlan PlanFusedRows(const FusedRowsProblem& problem, const DeviceLimits& limits);

// One launch of a kernel that was loaded from an image.
struct FusedRowsLaunch {
  const void* kernel;
  int64_t blocks;
  int threads, cluster;
  size_t shared;
  bool cooperative;
  // May take its place before the kernel in front of it has ended, which was launched as usual:
  // what it reads before WaitForPreviousKernel was there before that one, and all its threads wait
  // before they write, or read what that one wrote.
  bool after = false;
};

// What of each operand is copied for fused rows that lie otherwise in each row (fused/copies.cuh).
struct FusedCopies {
  static constexpr int kMost = 32;
  struct Operand {
    const void* from;
    void* to;
    int element_bytes;
  };
  Operand operands[kMost];
  int count;
  int64_t cols;
  int pack;  // elements of a row in 16 bytes
  int step;  // rows begin at multiples of so many elements
};
// Of workspace, for one operand; a multiple of 128.
size_t FusedCopiesBytes(int64_t cols, int pack, int element_bytes);
cudaError_t CopyFusedOperands(const FusedCopies& copies, cudaStream_t stream);

// The kernel of that name from a compiled image, which stays loaded.
cudaError_t LoadFusedRows(const void* image, const char* name, const void** kernel);
// Lets the kernel use what the launch needs. *fits: whether the device can place its clusters.
cudaError_t PrepareFusedRows(const FusedRowsLaunch& launch, const DeviceLimits& limits, bool* fits);
cudaError_t LaunchFusedRows(const FusedRowsLaunch& launch, void** args, cudaStream_t stream);

}  // namespace oneflow_lite::cuda
