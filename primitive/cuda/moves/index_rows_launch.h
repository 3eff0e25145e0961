// SPDX-License-Identifier: Apache-2.0
//
// Launchers of primitive/index_rows.h. Null where there is no code for the dtype.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {
namespace cuda {

struct RowsProblem {
  int64_t outer, size, count, inner;
  int64_t outer_stride, row_stride;  // of what is read, in elements
  bool from_end;                     // negative places count from the end
};

// `missing`: 16 bytes of elements for places outside the dim.
struct MissingElements {
  uint32_t words[4];
};
cudaError_t LaunchIndexSelect(int item, const RowsProblem&, const MissingElements& missing,
                              const int64_t* index, const void* x, void* y, cudaStream_t);

// Whether a thread looks at all places itself, which takes one launch and no workspace: few places,
// and so few elements that a launch takes longer than they do.
inline bool InOneLaunch(const RowsProblem& p) {
  return p.count <= 32 && p.outer * p.count * p.inner <= int64_t{1} << 16;
}

// Copies: of rows that go to one place the last one stays. The workspace, if not InOneLaunch, has 8
// bytes per row of at most kFewRows, else per place.
inline constexpr int64_t kFewRows = 2048;
cudaError_t LaunchIndexCopy(int item, const RowsProblem&, const int64_t* index, const void* x,
                            void* y, void* workspace, cudaStream_t);

// Sums by sorted places. cudaErrorNotSupported for 2^32 - 1 places or rows and more.
struct IndexSumRun {
  RowsProblem problem;
  bool add;  // to what is there, else to 0
  double alpha;
  int64_t skipped;
  const int64_t* index;
  const void* x;
  void* y;
  void* workspace;
};
cudaError_t IndexSumWorkspaceBytes(DType dtype, const RowsProblem&, size_t* bytes);
using IndexSumLauncher = cudaError_t (*)(const IndexSumRun&, cudaStream_t);
IndexSumLauncher FindIndexSum(DType dtype);

}  // namespace cuda
}  // namespace oneflow_lite
