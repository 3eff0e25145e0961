// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/blas.h"

#include <cblas.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "oneflow_lite/core/address_space.h"
#include "oneflow_lite/core/parallel.h"
#include "oneflow_lite/core/thread_limit.h"

// How OpenBLAS takes its kernels: for the CPU, or for the core that OPENBLAS_CORETYPE names. Only
// builds with kernels for several cores have these two.
extern "C" {
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
}

// OpenBLAS's pool of buffers: an unused one, else one that it maps now.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int place);
[[gnu::weak]] void blas_memory_free(void* buffer);
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

// What OpenBLAS maps for each of its threads and for each call in flight, and keeps for good
// (BUFFER_SIZE and a page). Where it gets none, it tries again for ever (blas_memory_alloc).
constexpr size_t kBuffer = (size_t{128} << 20) + 4096;

// Calls in flight, or about to be: each takes a buffer. A team's threads count as one each.
std::atomic<int> users{0};
// Buffers that OpenBLAS's own threads hold, and all that it has mapped, at least.
std::atomic<int> held{1}, mapped{0};
// Of `users`, this thread's and its team's.
thread_local int own = 0;
// Whether a thread maps buffers just now.
std::atomic<bool> maps{false};

// Has OpenBLAS map `need` buffers, or as many as there is room for under the limit of address space
// (ulimit -v). They are taken all at once, and given back: what is mapped now cannot be missing
// later. `threads` that start, and as many that still end, keep the room for their stacks, and who
// takes no turns keeps some. So does each other call in flight, which may begin meanwhile, find no
// buffer free, and map one more.
void MapBuffers(int need, int threads) {
  const TakingRoom alone;
  void* taken[kMaxThreads];
  int count = 0;
  const size_t stacks = 2 * StackBytes();
  const size_t others = mapped.load() == 0 ? kArena : kRoomForOthers;  // little for the first one
  const int most = mapped.load() < need ? std::min(need - held.load(), kMaxThreads) : 0;
  maps = true;  // before `users` is read: who is not counted there waits
  while (count < most) {
    const auto with_buffer = static_cast<size_t>(std::min(threads - 1, count));
    const auto beside = static_cast<size_t>(std::max(0, users.load() - own));
    if (!HasRoom((1 + beside) * kBuffer + with_buffer * stacks + others)) break;
    void* buffer = blas_memory_alloc(0);
    if (!buffer) break;
    taken[count++] = buffer;
  }
  for (int i = 0; i < count; ++i) blas_memory_free(taken[i]);
  const int found = count + held.load();
  if (count > 0 && found > mapped.load()) mapped = found;
  maps = false;
}

// How many of `more` buffers there are beside `others` that are in use. The first one is mapped
// even where there is no limit yet, so that small products need not ask for it.
int BuffersBeside(int others, int more) {
  while (maps.load()) usleep(50);
  if (mapped.load() >= others + more) return more;
  if (!blas_memory_alloc || !blas_memory_free) return more;
  if (more > 1 && !AddressSpaceIsLimited()) return more;
  MapBuffers(others + more, more);
  return std::clamp(mapped.load() - others, 0, more);
}

std::atomic<bool> ended{false};
thread_local bool ends_here = false;

// Gives how many there were.
int AddUsers(int n) {
  own += n;
  return users.fetch_add(n);
}

void End() {
  ends_here = true;
  ended = true;
  while (users.load() > own) usleep(1000);  // a library may end the process within a product
}

}  // namespace

BlasUse::BlasUse() {
  static const bool watched = [] {
    pthread_atfork(nullptr, nullptr, [] { users = 0, maps = false; });  // a child has no threads
    return std::atexit(&End) == 0;
  }();
  static_cast<void>(watched);
  while (true) {
    const int others = AddUsers(1);
    if (ended.load() && !ends_here) {
      AddUsers(-1);
      while (true) pause();
    }
    has_buffer_ = InTeam() || BuffersBeside(others + held.load(), 1) == 1;
    if (has_buffer_ || others == own - 1) return;
    AddUsers(-1);  // others have the buffers: until they give them back
    usleep(200);
  }
}

BlasUse::~BlasUse() { AddUsers(-1); }

void WatchEndOfProcess() { std::atexit(&End); }

Status BlasUse::status() const {
  if (has_buffer_) return OkStatus();
  return Error(ErrorKind::kOutOfMemory, "out of memory: the BLAS needs ", kBuffer,
               " bytes of address space for each product at a time");
}

void SetBlasThreads(int threads) {
  if (InTeam()) return;                                      // OpenBLAS sees that, and takes one
  if (InSerialRegion()) return openblas_set_num_threads(1);  // forgotten at the region's end
  thread_local int current = 0;
  if (threads > 1) {
    WillStartThreads();
    threads = std::max(1, BuffersBeside(users.load(), GrantLibraryTeams(threads)));
    held = threads;  // even if unchanged here: another thread may have set 1
  }
  if (threads == current) return;
  held = threads;
  openblas_set_num_threads(threads);
  current = threads;
}

void ParallelProducts(int64_t n, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  const int ranges = ParallelRanges(n, grain);
  if (ranges == 1) return body(0, n);
  const int others = AddUsers(ranges - 1);  // this thread's own buffer among them
  const int more = BuffersBeside(others + held.load(), ranges - 1);
  AddUsers(more - (ranges - 1));
  const TeamLimit limit(1 + more);
  ParallelFor(n, grain, body);
  AddUsers(-more);
}

}  // namespace oneflow_lite
