// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/blas.h"

#include <cblas.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

// What OpenBLAS maps for each of its threads and for each call, and keeps for good (BUFFER_SIZE and
// a page). Where it gets none, it tries again for ever (blas_memory_alloc).
constexpr size_t kBuffer = (size_t{128} << 20) + 4096;

bool HasRoom(size_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* p = mmap(nullptr, bytes, PROT_NONE, kFlags, -1, 0);
  return p != MAP_FAILED && munmap(p, bytes) == 0;
}

size_t StackBytes() {
  pthread_attr_t attributes;
  size_t bytes = 0;
  if (pthread_getattr_default_np(&attributes) != 0) return 0;
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes;
}

// How many of `threads` have room for their buffers under the limit of address space (ulimit -v),
// beside the stacks of those that start and of those that still end.
int ThreadsWithBuffers(int threads) {
  static std::atomic<int> buffers{openblas_get_num_threads()};  // mapped so far, at least
  int mapped = buffers.load();
  if (threads < mapped) return threads;
  rlimit memory{};
  if (getrlimit(RLIMIT_AS, &memory) == 0 && memory.rlim_cur != RLIM_INFINITY) {
    const auto needs = [&](int n) {
      return static_cast<size_t>(n + 1 - mapped) * kBuffer +
             2 * static_cast<size_t>(n - 1) * StackBytes();
    };
    while (threads > 1 && threads >= mapped && !HasRoom(needs(threads))) --threads;
  }
  while (mapped < threads + 1 && !buffers.compare_exchange_weak(mapped, threads + 1)) {
  }
  return threads;
}

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
    threads = ThreadsWithBuffers(GrantLibraryTeams(threads));
  }
  if (threads == current) return;
  openblas_set_num_threads(threads);
  current = threads;
}

}  // namespace oneflow_lite
