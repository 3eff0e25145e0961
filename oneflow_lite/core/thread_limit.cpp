// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/thread_limit.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <vector>

#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

using Clock = std::chrono::steady_clock;

// What other processes and the container leave is looked at anew after so long.
constexpr auto kGrantLasts = std::chrono::seconds(2);

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

// The limits of the process that count against a new thread.
struct Limits {
  rlim_t processes = 0, memory = 0;
  bool operator==(const Limits&) const = default;
};
Limits LimitsNow() {
  rlimit processes{}, memory{};
  getrlimit(RLIMIT_NPROC, &processes);
  getrlimit(RLIMIT_AS, &memory);
  return {processes.rlim_cur, memory.rlim_cur};
}

// What the calling thread was granted, and when.
struct Grant {
  int threads = 1;
  Limits limits;
  Clock::time_point time;
  // The last team's size. OpenMP keeps that many threads: where a smaller team follows, the others
  // end, and a larger one after it starts them anew.
  int team = 1;
  // The system has no room for threads that still end beside as many that start.
  bool tight = false;
};
thread_local Grant grant;

void WarnOnce(int wanted, int granted) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  std::fprintf(stderr,
               "oneflow_lite: the system starts no %d threads for this process; %d are used\n",
               wanted, granted);
}

}  // namespace

int GrantThreads(int wanted) {
  Grant& g = grant;
  if (wanted <= g.team) return wanted;
  const Clock::time_point now = Clock::now();
  const Limits limits = LimitsNow();
  const bool lasts = now - g.time < kGrantLasts && limits == g.limits;
  if (wanted <= g.threads && lasts) return wanted;
  const int more = wanted - g.team, startable = CountStartable(2 * more);
  // A quarter is left to who may start theirs before ours are there.
  g.tight = startable < 2 * more;
  g.threads = std::min(wanted, g.team + startable - startable / 4);
  g.limits = limits;
  g.time = now;
  if (g.threads < wanted) SetNumThreads(std::min(NumThreads(), g.threads));
  return g.threads;
}

int GrantTeam(int wanted) {
  if (wanted > grant.team) {
    const int granted = GrantThreads(wanted);
    if (granted < wanted) WarnOnce(wanted, granted);
    wanted = granted;
  }
  // Where there is little room no team gets smaller, so that none has to start threads again.
  return grant.team = grant.tight ? std::max(wanted, grant.team) : wanted;
}

int GrantLibraryTeams(int wanted) {
  const int granted = GrantThreads(wanted);
  if (granted < wanted) WarnOnce(wanted, granted);
  if (grant.tight) return 1;
  grant.team = 1;  // its last team may have any size
  return granted;
}

}  // namespace oneflow_lite
