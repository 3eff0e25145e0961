// SPDX-License-Identifier: Apache-2.0
//
// How the CPU primitives share OpenBLAS (its OpenMP flavour) with our own threads.
//
//   const BlasUse use;   // around all calls of a launch
//   SetBlasThreads();    // before those large enough for threads
#pragma once

namespace oneflow_lite {

// A thread's time inside the BLAS. The end of the process frees what the BLAS works with, while
// daemon threads still run: the end waits for those inside, and who comes later sleeps until the
// process has gone.
class BlasUse {
 public:
  BlasUse();
  ~BlasUse();
  BlasUse(const BlasUse&) = delete;
};

// Gives the BLAS as many threads as ours: one inside a ParallelFor.
void SetBlasThreads();

}  // namespace oneflow_lite
