// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/launches.h"

#include <atomic>

namespace oneflow_lite {
namespace {

struct ThreadState {
  uint64_t count = 0;
  LaunchListener* listener = nullptr;
};
[[gnu::tls_model("initial-exec")]] thread_local ThreadState state;

std::atomic<void (*)(const char*)> range_push{nullptr};
std::atomic<void (*)()> range_pop{nullptr};

}  // namespace

uint64_t LaunchCount() { return state.count; }

LaunchListener* SetLaunchListener(LaunchListener* listener) {
  LaunchListener* const before = state.listener;
  state.listener = listener;
  return before;
}

LaunchScope::LaunchScope(const char* (*name)(const void*), const void* what)
    : listener_(state.listener) {
  ++state.count;
  if (listener_) listener_->BeginLaunch(name(what));
}
LaunchScope::~LaunchScope() {
  if (listener_) listener_->EndLaunch();
}

void SetRangeMarker(RangeMarker marker) {
  range_push.store(marker.push);
  range_pop.store(marker.pop);
}
RangeMarker GetRangeMarker() { return {range_push.load(), range_pop.load()}; }

}  // namespace oneflow_lite
