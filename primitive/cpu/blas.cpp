// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/blas.h"

#include <cblas.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "oneflow_lite/core/parallel.h"
#include "oneflow_lite/core/thread_limit.h"

namespace oneflow_lite {
namespace {

std::atomic<int64_t> users{0};
std::atomic<bool> ended{false};
thread_local bool ends_here = false;

void End() {
  ends_here = true;
  ended = true;
  while (users.load() > 0) usleep(1000);
}

}  // namespace

BlasUse::BlasUse() {
  static const bool watched = [] {
    pthread_atfork(nullptr, nullptr, [] { users = 0; });  // a child has none of the threads
    return std::atexit(&End) == 0;
  }();
  static_cast<void>(watched);
  users.fetch_add(1);
  if (!ended.load() || ends_here) return;
  users.fetch_sub(1);
  while (true) pause();
}

BlasUse::~BlasUse() { users.fetch_sub(1); }

void SetBlasThreads(int threads) {
  if (InTeam()) return;                                      // OpenBLAS sees that, and takes one
  if (InSerialRegion()) return openblas_set_num_threads(1);  // forgotten at the region's end
  thread_local int current = 0;
  if (threads == current) return;
  if (threads > 1) WillStartThreads();
  openblas_set_num_threads(GrantThreads(threads));
  current = threads;
}

}  // namespace oneflow_lite
