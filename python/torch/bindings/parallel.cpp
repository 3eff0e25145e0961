// SPDX-License-Identifier: Apache-2.0
//
// ParallelFor on PyTorch's threads: one pool in the process, and torch.set_num_threads rules it.
#include "oneflow_lite/core/parallel.h"

#include <pthread.h>
#include <torch/csrc/stable/c/shim.h>

#include <algorithm>
#include <atomic>

#include "python/torch/invariant/invariant.h"

namespace oneflow_lite {
namespace {

std::atomic<bool> started{false};       // threads have been asked for in this process
std::atomic<bool> forked_child{false};  // ... and then the process was forked
thread_local bool in_region = false;

const int at_fork = pthread_atfork(nullptr, nullptr, [] {
  if (started.load(std::memory_order_relaxed)) forked_child.store(true, std::memory_order_relaxed);
});

using Body = absl::FunctionRef<void(int64_t, int64_t)>;

}  // namespace

int NumThreads() {
  uint32_t n = 1;
  if (torch_get_num_threads(&n) != AOTI_TORCH_SUCCESS) return 1;
  return std::max(1, static_cast<int>(n));
}

bool InSerialRegion() { return in_region || forked_child.load(std::memory_order_relaxed); }

void ParallelFor(int64_t n, int64_t grain, Body body) {
  if (n <= 0) return;
  if (n <= std::max<int64_t>(grain, 1) || InSerialRegion() || NumThreads() == 1) {
    body(0, n);
    return;
  }
  started.store(true, std::memory_order_relaxed);
  const auto call = [](int64_t begin, int64_t end, void* context) {
    const torch_ops::SerialRegion serial;
    (*static_cast<Body*>(context))(begin, end);
  };
  if (torch_parallel_for(0, n, std::max<int64_t>(grain, 1), call, &body) != AOTI_TORCH_SUCCESS) {
    body(0, n);  // nothing has run: bodies do not throw
  }
}

torch_ops::SerialRegion::SerialRegion() : before_(in_region) { in_region = true; }
torch_ops::SerialRegion::~SerialRegion() { in_region = before_; }

}  // namespace oneflow_lite
