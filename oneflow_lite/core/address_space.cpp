// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/address_space.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace oneflow_lite {
namespace {

// Who looks for room comes before those that ask for memory.
constexpr pthread_rwlock_t kUnlocked = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
pthread_rwlock_t turns = kUnlocked;

// A child has none of the threads that may have held it.
const int at_fork = pthread_atfork(nullptr, nullptr, [] { turns = kUnlocked; });

}  // namespace

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

bool AddressSpaceIsLimited() {
  rlimit memory{};
  return getrlimit(RLIMIT_AS, &memory) == 0 && memory.rlim_cur != RLIM_INFINITY;
}

TakingRoom::TakingRoom() { pthread_rwlock_wrlock(&turns); }
TakingRoom::~TakingRoom() { pthread_rwlock_unlock(&turns); }

TakingMemory::TakingMemory() { pthread_rwlock_rdlock(&turns); }
TakingMemory::~TakingMemory() { pthread_rwlock_unlock(&turns); }

}  // namespace oneflow_lite
