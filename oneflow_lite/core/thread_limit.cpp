// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/thread_limit.h"

#include <omp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
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

// A thread that waits at a gate for the others, so that all of them are there at the same time.
struct Probe {
  pthread_mutex_t* gate;
  pthread_t thread;
  pid_t id;
};

void* WaitAtGate(void* p) {
  auto* probe = static_cast<Probe*>(p);
  probe->id = static_cast<pid_t>(syscall(SYS_gettid));
  pthread_mutex_lock(probe->gate);
  pthread_mutex_unlock(probe->gate);
  return nullptr;
}

// The system counts a thread for some time after others could join it.
void WaitUntilGone(pid_t id) {
  for (int i = 0; i < 400 && syscall(SYS_tgkill, getpid(), id, 0) == 0; ++i) usleep(50);
}

// Whether a limit of address space, if there is one, leaves room for one more stack.
bool HasRoomForStack() {
  return !AddressSpaceIsLimited() || HasRoom(StackBytes() + kRoomForOthers);
}

// How many of `wanted` threads the system starts beside those there are. They have the same stacks
// as OpenMP's, and end before this returns.
int CountStartable(int wanted) {
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  std::vector<Probe> probes(static_cast<size_t>(wanted), Probe{&gate, {}, 0});
  int n = 0;
  pthread_mutex_lock(&gate);
  while (n < wanted && HasRoomForStack() &&
         pthread_create(&probes[n].thread, nullptr, &WaitAtGate, &probes[n]) == 0) {
    ++n;
  }
  pthread_mutex_unlock(&gate);
  for (int i = 0; i < n; ++i) pthread_join(probes[i].thread, nullptr);
  for (int i = 0; i < n; ++i) WaitUntilGone(probes[i].id);
  return n;
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

// Whether the limit of processes is near: the user's tasks are some of all that there are.
bool HasFewProcesses(const Limits& limits, int more) {
  if (limits.processes == RLIM_INFINITY) return false;
  unsigned long tasks = 0;
  FILE* load = std::fopen("/proc/loadavg", "r");
  const bool known = load && std::fscanf(load, "%*s %*s %*s %*[0-9]/%lu", &tasks) == 1;
  if (load) std::fclose(load);
  return !known || limits.processes < tasks + static_cast<unsigned long>(more);
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
  // The system has no room for threads that still end beside as many that start, or address space
  // is limited, of which others take at any time. Then threads are started where they are granted
  // and no team gets smaller, so that none starts threads without a look.
  bool tight = false;

  bool Covers(int wanted) const {
    return wanted <= threads && Clock::now() - time < kGrantLasts && limits == LimitsNow();
  }
};
thread_local Grant grant;

// How many threads those without a tight grant may start without a look. Near the limit of
// processes a look counts them as if they were there, up to a number that bounds what it costs.
constexpr int kMostPromised = 64;
std::atomic<int> promised{0};

// The calling thread's part of them, until it ends.
struct Promise {
  int threads = 0;
  void Set(int n) {
    promised += n - threads;
    threads = n;
  }
  ~Promise() { Set(0); }
};
thread_local Promise promise;

// A child has none of the other threads.
const int at_fork = pthread_atfork(nullptr, nullptr, [] { promised = promise.threads; });

thread_local int team_limit = kMaxThreads;

// Fewer threads than asked for: that many for all from now on.
void GrantFewer(int threads) {
  grant.threads = threads;
  SetNumThreads(std::min(NumThreads(), threads));
}

// Looks how many threads of a team of `wanted` there can be. Those that live are not counted anew.
void Look(int wanted) {
  Grant& g = grant;
  // Ends the threads of the calling thread and waits for them, so that none lives uncounted.
  if (g.library) omp_pause_resource(omp_pause_soft, omp_get_initial_device());
  g.library = false;
  const int most = std::max(wanted, g.team), more = most - g.team;
  const int with_ending = more + most - 1, all = promised.load() - promise.threads;
  const bool counts_others = HasFewProcesses(LimitsNow(), with_ending + all);
  const int others = counts_others ? std::min(all, kMostPromised) : 0;
  const int with_others = with_ending + others;
  const auto count = [&] {
    const int startable = CountStartable(with_others), ours = std::max(0, startable - others);
    g.tight = startable < with_others || AddressSpaceIsLimited();
    // A quarter is left to who may start theirs before ours are there.
    g.threads = std::min(most, g.team + ours - ours / 4);
  };
  count();
  if (g.threads < wanted) {  // for good, so what has just ended gets the time to be gone
    usleep(10'000);
    count();
  }
  promise.Set(g.tight ? 0 : with_ending);
  g.limits = LimitsNow();
  g.time = Clock::now();
  if (g.threads < wanted) GrantFewer(g.threads);
}

// Of what the last look found, or a new one.
int LastGrant(int wanted) {
  if (!grant.Covers(wanted)) {
    const TakingRoom alone;
    Look(wanted);
  }
  return std::min(wanted, grant.threads);
}

// Has OpenMP start the calling thread's team, while a TakingRoom lives: one by one where address
// space is limited, with a look just before each.
void StartTeam(int threads) {
  for (int n = AddressSpaceIsLimited() ? grant.team + 1 : threads; n <= threads; ++n) {
    if (!HasRoomForStack()) return GrantFewer(std::max(grant.team, n - 1));
    std::atomic<int> sum{0};
    // Memory for this library's thread-locals is had now, too, and with it an arena of glibc's.
#pragma omp parallel num_threads(n)
    sum.fetch_add(team_limit, std::memory_order_relaxed);
  }
}

void WarnOnce(int wanted, int granted) {
  static std::atomic<bool> warned{false};
  if (granted >= wanted || warned.exchange(true)) return;
  std::fprintf(stderr,
               "oneflow_lite: the system starts no %d threads for this process; %d are used\n",
               wanted, granted);
}

}  // namespace

int GrantThreads(int wanted) { return wanted <= grant.team ? wanted : LastGrant(wanted); }

GrantedTeam::GrantedTeam(int wanted) {
  Grant& g = grant;
  if (wanted <= g.team) {  // nothing starts
    if (!g.tight && wanted > 1) g.team = wanted;
    threads_ = g.tight ? g.team : wanted;
    return;
  }
  // What a tight grant had left and not started may have gone since, and any limit may have fallen
  // while others looked.
  starting_.emplace();
  while (g.tight || !g.Covers(wanted)) {
    starting_.reset();
    {
      const TakingRoom alone;
      Look(wanted);
      if (g.tight) StartTeam(std::min(wanted, g.threads));
    }
    if (g.tight) break;
    starting_.emplace();
  }
  const int granted = std::min(wanted, g.threads);
  WarnOnce(wanted, granted);
  threads_ = g.team = std::max(granted, g.tight ? g.team : 1);
  g.library = false;
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
