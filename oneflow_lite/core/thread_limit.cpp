// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/thread_limit.h"

#include <omp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

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
  int threads = 1;  // at least its team
  Limits limits;
  Clock::time_point time;
  // The last team's size. OpenMP keeps that many threads: where a smaller team follows, the others
  // end, and a larger one after it starts them anew.
  int team = 1;
  // A library had teams of its own since, and has left threads of an unknown number.
  bool library = false;
  // The system has no room for threads that still end beside as many that start.
  bool tight = false;

  bool Lasts() const { return Clock::now() - time < kGrantLasts && limits == LimitsNow(); }
};
thread_local Grant grant;

thread_local int team_limit = kMaxThreads;

// Looks how many threads of a team of `wanted` there can be. Those that live are not counted anew.
void Look(int wanted) {
  Grant& g = grant;
  // Ends the threads of the calling thread and waits for them, so that none lives uncounted.
  if (g.library) omp_pause_resource(omp_pause_soft, omp_get_initial_device());
  g.library = false;
  const int most = std::max(wanted, g.team), more = most - g.team;
  const int with_ending = more + most - 1;
  const auto count = [&] {
    const int startable = CountStartable(with_ending);
    g.tight = startable < with_ending;
    // A quarter is left to who may start theirs before ours are there.
    g.threads = std::min(most, g.team + startable - startable / 4);
  };
  count();
  if (g.threads < wanted) {  // for good, so what has just ended gets the time to be gone
    usleep(10'000);
    count();
  }
  g.limits = LimitsNow();
  g.time = Clock::now();
  if (g.threads < wanted) SetNumThreads(std::min(NumThreads(), g.threads));
}

// Of what the last look found, or a new one.
int LastGrant(int wanted) {
  if (wanted > grant.threads || !grant.Lasts()) Look(wanted);
  return std::min(wanted, grant.threads);
}

void WarnOnce(int wanted, int granted) {
  static std::atomic<bool> warned{false};
  if (granted >= wanted || warned.exchange(true)) return;
  std::fprintf(stderr,
               "oneflow_lite: the system starts no %d threads for this process; %d are used\n",
               wanted, granted);
}

}  // namespace

int GrantThreads(int wanted) {
  const Grant& g = grant;
  return wanted <= g.team && !g.tight ? wanted : LastGrant(wanted);
}

int GrantTeam(int wanted) {
  Grant& g = grant;
  const int granted = GrantThreads(wanted);
  WarnOnce(wanted, granted);
  // Where there is little room no team gets smaller, so that none has to start threads again.
  g.team = g.tight ? std::max(granted, g.team) : granted;
  g.library = false;
  return g.team;
}

int GrantLibraryTeams(int wanted) {
  Grant& g = grant;
  const int granted = LastGrant(wanted);  // if all live now, too: they may end and start again
  WarnOnce(wanted, granted);
  if (g.tight) return 1;
  g.team = 1;
  g.library = true;
  return granted;
}

TeamLimit::TeamLimit(int threads) : before_(team_limit) { team_limit = threads; }

TeamLimit::~TeamLimit() { team_limit = before_; }

int TeamLimit::Current() { return team_limit; }

}  // namespace oneflow_lite
