// SPDX-License-Identifier: Apache-2.0
//
// What the .cu files offer the host files beside them: launchers over plain values. A Find function
// gives the launcher for an op and dtype, null where there is no code for them. Pointers are device
// memory; the launchers neither allocate nor synchronise.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"
#include "primitive/adam_math.h"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/op_kinds.h"
#include "primitive/reduce_kinds.h"

namespace oneflow_lite {
namespace cuda {

// The architecture of which the current device runs this library's code: see chip/device_query.cuh.
cudaError_t FindArchitecture(int* architecture);

inline constexpr int kMaxStridedDims = 16;

// N strided operands of one shape, as a kernel argument.
template <int N>
struct Strided {
  int ndim = 0;
  bool contiguous = true;
  int64_t numel = 1;
  int64_t dims[kMaxStridedDims] = {};  // innermost first
  int64_t strides[N][kMaxStridedDims] = {};
  // Division by dims[d] of an index below 2^31: (umulhi(i, multiplier) + i) >> shift (Granlund and
  // Montgomery, "Division by Invariant Integers using Multiplication", 1994). Valid where numel is
  // below 2^31.
  uint32_t multiplier[kMaxStridedDims] = {};
  uint32_t shift[kMaxStridedDims] = {};
};

// An element given by value: its bits, in the lowest bytes.
using ScalarBits = uint64_t;
using CopyLauncher = cudaError_t (*)(const Strided<2>& g, const void* src, void* dst, cudaStream_t);
// A transpose as PlanCopy (copy_plan.h) gives it.
CopyLauncher FindTransposingCopy(int element_bytes, int access_bytes);
using FillLauncher = cudaError_t (*)(const Strided<1>& g, ScalarBits value, void* y, cudaStream_t);
FillLauncher FindFill(DType dtype);

// Integer dtypes take the integer pair, floats the floating one.
struct ArangeArguments {
  int64_t int_start, int_step;
  double start, step;
};
using ArangeLauncher = cudaError_t (*)(int64_t n, const ArangeArguments&, void* y, cudaStream_t);
ArangeLauncher FindArange(DType dtype);

struct ReduceProblem {
  int64_t outer, axis, inner;
};
struct ReduceGradRun {
  ReduceProblem problem;
  double parameter;
  const void *dy, *x, *y, *extra;
  const int64_t* zeros;
  void* dx;
};
using ReduceGradLauncher = cudaError_t (*)(const ReduceGradRun&, cudaStream_t);
ReduceGradLauncher FindReduceGrad(ReduceGradKind op, DType dtype);

struct NllProblem {
  int64_t outer, classes, inner, ignore_index;
};
struct NllLaunchers {
  cudaError_t (*forward)(const NllProblem&, const void* logp, const int64_t* target,
                         const void* class_weight, void* loss, void* row_weight,
                         cudaStream_t) = nullptr;
  cudaError_t (*backward)(const NllProblem&, const void* dloss, const int64_t* target,
                          const void* row_weight, void* dlogp, cudaStream_t) = nullptr;
};
NllLaunchers FindNll(DType dtype);

struct ScanRun {
  ReduceProblem problem;
  bool reverse, shifted;
  const void *x, *other;
  void* y;
  int64_t* places;
  void* workspace;
};
struct ScanLaunchers {
  size_t (*workspace_bytes)(const ReduceProblem&, const DeviceLimits&) = nullptr;
  cudaError_t (*launch)(const ScanRun&, const DeviceLimits&, cudaStream_t) = nullptr;
};
ScanLaunchers FindScan(ScanKind op, DType dtype);

using AdamLauncher = cudaError_t (*)(const AdamProblem&, const AdamTensors* tensors, int64_t count,
                                     cudaStream_t);
AdamLauncher FindAdam(DType dtype);  // of the parameters

}  // namespace cuda
}  // namespace oneflow_lite
