// SPDX-License-Identifier: Apache-2.0
//
// Launchers of primitive/index.h. Null where there is no code for the dtype.
#pragma once

#include "oneflow_lite/core/dtype.h"
#include "primitive/cuda/chip/device_limits.h"
#include "primitive/cuda/moves/index_rows_launch.h"
#include "primitive/cuda/strided/strided.h"

namespace oneflow_lite {
namespace cuda {

// Operands: index, x, y. `missing` stands for what lies outside the dim.
struct GatherRun {
  Strided<3> g;
  int64_t size, stride;
  bool from_end;
  const int64_t* index;
  const void* x;
  ScalarBits missing;
  void* y;
};
using GatherRunLauncher = cudaError_t (*)(const GatherRun&, const DeviceLimits&, cudaStream_t);
GatherRunLauncher FindGatherRun(DType dtype);

// Operands of the columns: index, src, dst.
struct ScatterDim {
  int64_t count, size, index_stride, src_stride, dst_stride;
  bool from_end;
};
struct ScatterRun {
  Strided<3> g;
  ScatterDim dim;
  const int64_t* index;
  const void* src;
  void* dst;
  void* workspace;
};
using ScatterRunLauncher = cudaError_t (*)(const ScatterRun&, const DeviceLimits&, cudaStream_t);
// What becomes of what is there, as in primitive/index.h.
enum class ScatterStore : uint8_t { kPut, kAdd, kMul, kMax, kMin };
ScatterRunLauncher FindScatterRun(DType dtype, DType src, ScatterStore store);
// Rows by sorted places; null where there is none. Its `add` is true.
IndexSumLauncher FindRowJoin(DType dtype, ScatterStore store);
// Rows of kMax or kMin by exchanges in memory, whose order does not matter; null for other stores
// and for elements of fewer than 4 bytes. Of zeros of both signs the extreme one stays.
using RowExtremesLauncher = cudaError_t (*)(const RowsProblem&, const int64_t* index, const void* x,
                                            void* y, cudaStream_t);
RowExtremesLauncher FindRowExtremes(DType dtype, ScatterStore store);
// Bytes for a scatter that overwrites.
size_t ScatterRunWorkspace(int64_t columns, const ScatterDim& dim);

}  // namespace cuda
}  // namespace oneflow_lite
