// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/parallel.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "oneflow_lite/core/thread_limit.h"

namespace oneflow_lite {
namespace {

std::atomic<int> num_threads{0};
std::atomic<bool> started{false};       // an OpenMP team has been created in this process
std::atomic<bool> forked_child{false};  // ... and then the process was forked
thread_local bool in_region = false;

const int at_fork = pthread_atfork(nullptr, nullptr, [] {
  if (started.load(std::memory_order_relaxed)) forked_child.store(true, std::memory_order_relaxed);
});

}  // namespace

int NumThreads() {
  int n = num_threads.load(std::memory_order_relaxed);
  if (n == 0) {
    n = std::clamp(omp_get_max_threads(), 1, kMaxThreads);
    num_threads.store(n, std::memory_order_relaxed);
  }
  return n;
}

void SetNumThreads(int n) {
  num_threads.store(std::clamp(n, 1, kMaxThreads), std::memory_order_relaxed);
}

bool InSerialRegion() { return in_region || forked_child.load(std::memory_order_relaxed); }

bool InTeam() { return omp_in_parallel() != 0; }

void WillStartThreads() { started.store(true, std::memory_order_relaxed); }

int ParallelRanges(int64_t n, int64_t grain) {
  if (n <= std::max<int64_t>(grain, 1) || InSerialRegion()) return 1;
  const int64_t by_grain = (n + grain - 1) / std::max<int64_t>(grain, 1);
  return static_cast<int>(std::min<int64_t>(NumThreads(), by_grain));
}

void ParallelFor(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  const int ranges = ParallelRanges(n, grain);
  if (ranges == 1) {
    body(0, n);
    return;
  }
  WillStartThreads();
  const int sharers = std::min(ranges, TeamLimit::Current());
  GrantedTeam team(sharers);
#pragma omp parallel for num_threads(team.threads()) schedule(static, 1)
  for (int sharer = 0; sharer < sharers; ++sharer) {
    if (sharer == 0) team.Started();  // which is this thread's
    in_region = true;
    for (int i = sharer; i < ranges; i += sharers) {
      body(n / ranges * i + std::min<int64_t>(i, n % ranges),
           n / ranges * (i + 1) + std::min<int64_t>(i + 1, n % ranges));
    }
    in_region = false;
  }
}

}  // namespace oneflow_lite
