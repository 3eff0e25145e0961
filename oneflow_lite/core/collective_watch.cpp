// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/collective_watch.h"

#include <cstdlib>
#include <thread>
#include <utility>

namespace oneflow_lite {

CollectiveWatch& CollectiveWatch::Get() {
  // Never destroyed: its threads run until the process ends. The device's library may be gone
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
  changed_.wait(lock, [&] { return running_ == 0; });
}

void CollectiveWatch::Begin() {
  if (running_ > 0) return;
  running_ = 2;
  std::thread([this] { RunClock(); }).detach();
  std::thread([this] { RunAsking(); }).detach();
}

void CollectiveWatch::Add(const void* line, Ref<Event> end, Milliseconds timeout, Late late) {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  Line& l = lines_[line];
  if (l.works.empty()) l.began = l.asked = Clock::now();
  l.works.push_back({std::move(end), timeout, std::move(late)});
  Begin();
  if (idle_ > 0) changed_.notify_all();
}

CollectiveWatch::Watched CollectiveWatch::Call(Milliseconds timeout, Late late) {
  std::lock_guard lock(mutex_);
  const int64_t id = calls_so_far_++;
  if (stopped_) return {this, id};
  calls_.emplace(id, HostCall{Clock::now() + timeout, std::move(late)});
  Begin();
  if (idle_ > 0) changed_.notify_all();
  return {this, id};
}

void CollectiveWatch::Returned(int64_t id) {
  std::lock_guard lock(mutex_);
  calls_.erase(id);
}

void CollectiveWatch::Beside(std::function<void()> work) { std::thread(std::move(work)).detach(); }

void CollectiveWatch::Stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, stuck_, [&] { return !asking_; });
}

void CollectiveWatch::RunClock() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const std::vector<Late> late = Look();
    if (!late.empty()) {
      lock.unlock();
      for (const Late& tell : late) tell();
      lock.lock();
    }
    if (lines_.empty() && calls_.empty()) {
      ++idle_;
      changed_.wait(lock, [&] { return stopped_ || !lines_.empty() || !calls_.empty(); });
      --idle_;
    } else {
      changed_.wait_for(lock, period_, [&] { return stopped_; });
    }
  }
  --running_;
  changed_.notify_all();
}

void CollectiveWatch::RunAsking() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    AskAll(lock);
    std::vector<Ref<Event>> dropped = std::move(dropped_);
    dropped_.clear();
    if (!dropped.empty()) {
      lock.unlock();
      dropped.clear();
      lock.lock();
    }
    if (lines_.empty()) {
      ++idle_;
      changed_.wait(lock, [&] { return stopped_ || !lines_.empty(); });
      --idle_;
    } else {
      changed_.wait_for(lock, period_, [&] { return stopped_; });
    }
  }
  --running_;
  changed_.notify_all();
}

// Forgets what has ended.
void CollectiveWatch::AskAll(std::unique_lock<std::mutex>& lock) {
  std::vector<const void*> names;
  for (const auto& [name, line] : lines_) names.push_back(name);
  for (const void* name : names) {
    while (!stopped_ && AskFirst(name, lock)) {
    }
  }
}

// Whether the first work of a line was forgotten, so that the next is the first. The lock is not
// held while the event answers.
bool CollectiveWatch::AskFirst(const void* name, std::unique_lock<std::mutex>& lock) {
  const auto before = lines_.find(name);
  if (before == lines_.end()) return false;
  const Ref<Event> end = before->second.works.front().end;
  const Clock::time_point now = Clock::now();
  asking_ = now;
  lock.unlock();
  const StatusOr<bool> ended = end->Query();
  lock.lock();
  asking_.reset();
  if (stopped_) changed_.notify_all();
  const auto it = lines_.find(name);
  // The clock's thread may have found it late meanwhile.
  if (it == lines_.end() || it->second.works.front().end.get() != end.get()) return false;
  Line& line = it->second;
  line.asked = now;
  if (!ended.ok()) {  // the device has failed, of which whoever uses it hears
    Drop(line);
  } else if (*ended) {
    dropped_.push_back(std::move(line.works.front().end));
    line.works.pop_front();
    line.began = now;
  }
  if (!line.works.empty()) return *ended;
  lines_.erase(it);
  return false;
}

void CollectiveWatch::Drop(Line& line) {
  for (Work& w : line.works) dropped_.push_back(std::move(w.end));
  line.works.clear();
}

// What is late, work before calls; it is forgotten.
std::vector<CollectiveWatch::Late> CollectiveWatch::Look() {
  std::vector<Late> late;
  const Clock::time_point now = Clock::now();
  const bool stuck = asking_ && now - *asking_ >= stuck_;
  for (auto it = lines_.begin(); it != lines_.end();) {
    Line& line = it->second;
    const Clock::time_point deadline = line.began + line.works.front().timeout;
    // Its event was asked since, or gives no answer.
    if (now < deadline || (line.asked < deadline && !stuck)) {
      ++it;
      continue;
    }
    late.push_back(std::move(line.works.front().late));
    Drop(line);
    it = lines_.erase(it);
  }
  for (auto it = calls_.begin(); it != calls_.end();) {
    if (now < it->second.deadline) {
      ++it;
      continue;
    }
    late.push_back(std::move(it->second.late));
    it = calls_.erase(it);
  }
  return late;
}

}  // namespace oneflow_lite
