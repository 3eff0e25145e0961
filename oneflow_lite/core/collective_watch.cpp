// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/collective_watch.h"

#include <cstdlib>
#include <thread>
#include <utility>

namespace oneflow_lite {

CollectiveWatch& CollectiveWatch::Get() {
  // Never destroyed: its thread runs until the process ends. The device's library may be gone
  // before that, so nothing is asked of it from then on.
  static auto* watch = [] {
    static auto* made = new CollectiveWatch;
    std::atexit([] { made->Stop(); });
    return made;
  }();
  return *watch;
}

CollectiveWatch::~CollectiveWatch() {
  Stop();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !runs_; });
}

void CollectiveWatch::Add(const void* line, Ref<Event> end, Milliseconds timeout, Late late) {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  Line& l = lines_[line];
  if (l.works.empty()) l.began = Clock::now();
  l.works.push_back({std::move(end), timeout, std::move(late)});
  if (!std::exchange(runs_, true)) std::thread([this] { Run(); }).detach();
  changed_.notify_all();
}

void CollectiveWatch::Stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

void CollectiveWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (lines_.empty()) {
      changed_.wait(lock, [&] { return stopped_ || !lines_.empty(); });
      continue;
    }
    const std::deque<Late> late = Look();
    if (!late.empty()) {
      lock.unlock();
      for (const Late& tell : late) tell();
      lock.lock();
    }
    changed_.wait_for(lock, period_, [&] { return stopped_; });
  }
  runs_ = false;
  changed_.notify_all();
}

// Forgets what has ended, and gives what is late.
std::deque<CollectiveWatch::Late> CollectiveWatch::Look() {
  std::deque<Late> late;
  const Clock::time_point now = Clock::now();
  for (auto it = lines_.begin(); it != lines_.end();) {
    Line& line = it->second;
    while (!line.works.empty()) {
      Work& first = line.works.front();
      const StatusOr<bool> ended = first.end->Query();
      if (!ended.ok()) {  // the device has failed, of which whoever uses it hears
        line.works.clear();
      } else if (*ended) {
        line.works.pop_front();
        line.began = now;
      } else {
        if (now - line.began < first.timeout) break;
        late.push_back(std::move(first.late));
        line.works.clear();
      }
    }
    it = line.works.empty() ? lines_.erase(it) : std::next(it);
  }
  return late;
}

}  // namespace oneflow_lite
