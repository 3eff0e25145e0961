// SPDX-License-Identifier: Apache-2.0
//
// How many threads there may be. OpenMP ends the process where the system refuses it a thread
// (ulimit -u, pids.max of a container, no address space for a stack), so that is found out before.
//
//   const int threads = GrantThreads(wanted);
//   #pragma omp parallel num_threads(threads)
#pragma once

#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

// More than the cores of any machine; what asks for more is a mistake.
inline constexpr int kMaxThreads = 1024;

// How many threads, itself among them, the calling thread can have work for it: `wanted`, or as
// many as the system would start just now. In that case NumThreads() becomes that number for all.
// What was granted to this thread once is granted again without a look.
OFL_API int GrantThreads(int wanted);

}  // namespace oneflow_lite
