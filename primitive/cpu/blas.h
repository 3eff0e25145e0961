// SPDX-License-Identifier: Apache-2.0
//
// What every user of the BLAS does around its products.
//
//   const BlasUse use;            // in the thread that launches
//   SetBlasThreads(1);            // in each thread that multiplies
//   cblas_sgemm(...);
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

// Gives the BLAS so many threads in the calls of this thread: one within ParallelFor and in forked
// children, and fewer where the system has no room for their stacks and buffers. It keeps the
// number per calling thread (an OpenMP setting, which the end of a parallel region takes back), so
// it is set where it changed only.
void SetBlasThreads(int threads);

}  // namespace oneflow_lite
