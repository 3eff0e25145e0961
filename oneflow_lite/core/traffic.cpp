// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/traffic.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "oneflow_lite/core/device_backend.h"

namespace oneflow_lite {
namespace {

struct Logs {
  std::atomic<int> count{0};  // so that nobody locks where there is none
  std::mutex mutex;
  std::vector<std::shared_ptr<TrafficLog>> all;
};
Logs& GetLogs() {
  static auto* const logs = new Logs;
  return *logs;
}

}  // namespace

std::vector<TrafficRecord> TrafficLog::records() const {
  std::lock_guard lock(mutex_);
  return records_;
}

void StartLog(std::shared_ptr<TrafficLog> log) {
  Logs& logs = GetLogs();
  std::lock_guard lock(logs.mutex);
  logs.all.push_back(std::move(log));
  logs.count = static_cast<int>(logs.all.size());
}

void StopLog(const std::shared_ptr<TrafficLog>& log) {
  Logs& logs = GetLogs();
  std::lock_guard lock(logs.mutex);
  std::erase(logs.all, log);
  logs.count = static_cast<int>(logs.all.size());
}

TrafficScope::TrafficScope(const char* op, double bytes, DType dtype, Stream* stream)
    : stream_(stream) {
  Logs& logs = GetLogs();
  if (logs.count.load(std::memory_order_relaxed) == 0) return;
  {
    std::lock_guard lock(logs.mutex);
    logs_ = logs.all;
  }
  record_.op = op;
  record_.bytes = bytes;
  record_.dtype = dtype;
  record_.device = stream ? stream->device() : Device{DeviceType::kMeta, 0};
  record_.device_begin = Mark();
  record_.begin = TrafficRecord::Clock::now();
}

TrafficScope::~TrafficScope() {
  if (logs_.empty()) return;
  record_.end = TrafficRecord::Clock::now();
  record_.device_end = Mark();
  for (const auto& log : logs_) {
    const bool own = log->owner_ == std::this_thread::get_id();
    record_.parent = own ? log->parent : -1;
    std::lock_guard lock(log->mutex_);
    log->records_.push_back(record_);
  }
}

// An event with timing on a GPU's stream; null elsewhere, in a capture, and where that fails.
Ref<Event> TrafficScope::Mark() const {
  if (!stream_ || stream_->device().type != DeviceType::kCUDA || stream_->capturing()) return {};
  const auto backend = GetBackend(DeviceType::kCUDA);
  if (!backend.ok()) return {};
  auto event = (*backend)->NewEvent(stream_->device().index, /*timing=*/true);
  return event.ok() && (*event)->Record(*stream_).ok() ? *event : Ref<Event>();
}

}  // namespace oneflow_lite
