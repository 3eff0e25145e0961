// SPDX-License-Identifier: Apache-2.0
//
// How many threads there may be. OpenMP ends the process where the system refuses it a thread
// (ulimit -u, pids.max of a container, no address space for a stack), so that is found out before.
//
//   GrantedTeam team(wanted);
//   #pragma omp parallel num_threads(team.threads())
//   { if (omp_get_thread_num() == 0) team.Started(); ... }
#pragma once

#include <optional>

#include "oneflow_lite/core/address_space.h"
#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

// More than the cores of any machine; what asks for more is a mistake.
inline constexpr int kMaxThreads = 1024;

// How many threads, itself among them, the calling thread can have work for it: `wanted`, or as
// many as the system would start just now. In that case NumThreads() becomes that number for all.
// What was granted to this thread is granted again for two seconds without a look, unless the
// process's own limits (ulimit) have changed.
OFL_API int GrantThreads(int wanted);

// The same for the OpenMP team that the calling thread starts next. A team of at most the last
// one's size needs no new threads. Where the system has little room, or address space is limited,
// the team is started here, while no other thread takes room (core/address_space.h), and later ones
// are granted as large as it; the threads too many find no work. Elsewhere nobody looks for room
// until Started(), because a look takes what there is for a moment. Says on stderr, once in the
// process, that there are fewer threads than asked for.
class OFL_API GrantedTeam {
 public:
  explicit GrantedTeam(int wanted);

  int threads() const { return threads_; }
  // In the thread that was granted the team, once the others are there.
  void Started() { starting_.reset(); }

 private:
  int threads_;
  std::optional<TakingMemory> starting_;
};

// The same for a library that starts OpenMP teams of any size up to `wanted`: 1 where the system
// has little room or address space is limited, until a look (after two seconds, or where limits
// have changed) finds more.
OFL_API int GrantLibraryTeams(int wanted);

// While it lives, at most so many threads have work in a ParallelFor of the calling thread. The
// ranges stay what they are; a thread works on several.
class OFL_API TeamLimit {
 public:
  explicit TeamLimit(int threads);
  ~TeamLimit();
  TeamLimit(const TeamLimit&) = delete;

  static int Current();

 private:
  int before_;
};

}  // namespace oneflow_lite
