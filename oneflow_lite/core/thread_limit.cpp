// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/thread_limit.h"

#include <pthread.h>

#include <algorithm>
#include <vector>

#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

// Threads that wait for each other, so that all of them are there at the same time.
struct Gate {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
};

void* WaitAtGate(void* p) {
  auto* gate = static_cast<Gate*>(p);
  pthread_mutex_lock(&gate->mutex);
  pthread_mutex_unlock(&gate->mutex);
  return nullptr;
}

// How many of `wanted` threads the system starts beside those there are. They have the same stacks
// as OpenMP's, and end before this returns.
int CountStartable(int wanted) {
  Gate gate;
  std::vector<pthread_t> threads;
  threads.reserve(static_cast<size_t>(wanted));
  pthread_mutex_lock(&gate.mutex);
  pthread_t thread;
  while (static_cast<int>(threads.size()) < wanted &&
         pthread_create(&thread, nullptr, &WaitAtGate, &gate) == 0) {
    threads.push_back(thread);
  }
  pthread_mutex_unlock(&gate.mutex);
  for (pthread_t t : threads) pthread_join(t, nullptr);
  return static_cast<int>(threads.size());
}

}  // namespace

int GrantThreads(int wanted) {
  thread_local int granted = 1;
  if (wanted <= granted) return wanted;
  const int startable = CountStartable(wanted - 1);
  if (startable == wanted - 1) return granted = wanted;
  // Some are left to others, who may start theirs before ours are there.
  granted = std::max(granted, 1 + startable - startable / 4);
  SetNumThreads(std::min(NumThreads(), granted));
  return granted;
}

}  // namespace oneflow_lite
