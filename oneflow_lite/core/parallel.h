// SPDX-License-Identifier: Apache-2.0
//
// The one place that starts threads. OpenMP is inside; nothing else in the tree names it.
//
//   ParallelFor(rows, /*grain=*/64, [&](int64_t begin, int64_t end) { ... });
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

// Splits [0, n) into one contiguous range per thread and calls body(begin, end) on each, on this
// thread alone where n <= grain, inside another ParallelFor of several ranges, or in a process that
// was forked after threads had been started (an OpenMP region there would hang). Elsewhere the
// split depends on n, grain and num_threads(): the same call gives the same bits. body must not
// throw.
OFL_API void ParallelFor(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);

// How many ranges ParallelFor(n, grain) would make.
OFL_API int ParallelRanges(int64_t n, int64_t grain);

// Threads for CPU kernels, BLAS included: at first OMP_NUM_THREADS, else the cores there are.
OFL_API int NumThreads();
// Precondition: n >= 1.
OFL_API void SetNumThreads(int n);
// True inside ParallelFor and in forked children: libraries must then run on one thread too.
OFL_API bool InSerialRegion();
// True inside ParallelFor where several threads are at work, as OpenMP's own libraries see.
OFL_API bool InTeam();
// To be called before a library starts OpenMP threads behind ParallelFor's back, so that children
// forked later know.
OFL_API void WillStartThreads();

}  // namespace oneflow_lite
