// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/blas.h"

#include <cblas.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "oneflow_lite/core/parallel.h"
#include "oneflow_lite/core/thread_limit.h"

// How OpenBLAS takes its kernels: for the CPU, or for the core that OPENBLAS_CORETYPE names. Only
// builds with kernels for several cores have these two.
extern "C" {
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
}

namespace oneflow_lite {
namespace {

// The kernels that the instructions of this CPU allow; none without AVX2.
const char* CoreOfInstructions() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

// Whether the kernels that OpenBLAS took have vectors of 16 bytes.
bool HasShortVectors() {
  const absl::string_view taken = openblas_get_corename();
  for (const absl::string_view core : {"Unknown", "Prescott", "Core2", "Nehalem", "Barcelona"}) {
    if (taken == core) return true;
  }
  return false;
}

// OpenBLAS tells CPUs apart by their model, and gives one that is newer than itself the kernels of
// an old one: under 0.3.21 an Emerald Rapids multiplies float32 with those of a Prescott, at 31
// instead of 150 GFLOP/s a core. Runs when this library is loaded, before anybody here multiplies.
bool TakeKernelsOfInstructions() {
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  const char* core = CoreOfInstructions();
  const bool chosen = gotoblas_dynamic_init && gotoblas_dynamic_quit;
  if (!core || !chosen || std::getenv(kVariable) || !HasShortVectors()) return false;
  if (setenv(kVariable, core, 1) != 0) return false;
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv(kVariable);
  return true;
}

const bool took_kernels = TakeKernelsOfInstructions();

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
  if (threads > 1) {
    WillStartThreads();
    threads = GrantLibraryTeams(threads);
  }
  if (threads == current) return;
  openblas_set_num_threads(threads);
  current = threads;
}

}  // namespace oneflow_lite
