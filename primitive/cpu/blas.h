// SPDX-License-Identifier: Apache-2.0
//
// What every user of the BLAS does around its products.
//
//   const BlasUse use;            // in the thread that launches
//   OFL_RETURN_IF_ERROR(use.status());
//   ParallelProducts(n, grain, [&](int64_t begin, int64_t end) {
//     SetBlasThreads(1);          // in each thread that multiplies
//     cblas_sgemm(...);
//   });
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

// A thread's time inside the BLAS. The end of the process frees what the BLAS works with, while
// daemon threads still run: the end waits for those inside, and who comes later sleeps until the
// process has gone. Where the BLAS can map no buffer for this thread, it waits for one of others.
class BlasUse {
 public:
  BlasUse();
  ~BlasUse();
  BlasUse(const BlasUse&) = delete;

  // OutOfMemory where there is no buffer and nobody else has one: the BLAS would try for ever.
  Status status() const;

 private:
  bool has_buffer_ = true;
};

// To be called once by who opens another library that multiplies within a BlasUse: the process's
// end waits for those inside before that library's own end.
void WatchEndOfProcess();

// Gives the BLAS so many threads in the calls of this thread: one within ParallelFor and in forked
// children, and fewer where the system has no room for their stacks and buffers. It keeps the
// number per calling thread (an OpenMP setting, which the end of a parallel region takes back), so
// it is set where it changed only.
void SetBlasThreads(int threads);

// ParallelFor whose body calls the BLAS, within a BlasUse: on no more threads than the system has
// room for buffers for. The ranges, and so the results, are the same on fewer.
void ParallelProducts(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);

}  // namespace oneflow_lite
