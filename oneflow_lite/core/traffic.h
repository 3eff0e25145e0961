// SPDX-License-Identifier: Apache-2.0
//
// What this process sends to other ranks, told to whoever keeps a log: each collective, and each
// group of messages, of any thread, with its times.
//
//   auto log = std::make_shared<TrafficLog>();
//   StartLog(log);
//   ...
//   StopLog(log);
//   for (const TrafficRecord& r : log->records()) ...
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/stream.h"

namespace oneflow_lite {

// The bytes that each of `parts` ranks sends where the whole has `bytes`: in rings, of L bytes over
// p ranks, L (p - 1) / p for what gathers or scatters, and twice that for a sum that all get.
inline double BytesToGather(double bytes, int parts) { return bytes * (parts - 1) / parts; }
inline double BytesToReduce(double bytes, int parts) { return 2 * BytesToGather(bytes, parts); }

struct TrafficRecord {
  using Clock = std::chrono::steady_clock;
  const char* op = "";  // "all_reduce"; a literal
  double bytes = 0;     // that this rank sends
  DType dtype = DType::kUInt8;
  Device device;                        // of the data
  int64_t parent = -1;                  // the log's, where the thread is its own
  bool failed = false;                  // it ended with an error
  Clock::time_point begin, end;         // on the host
  Ref<Event> device_begin, device_end;  // on a GPU's stream, with timing; null where not timed
};

class OFL_API TrafficLog {
 public:
  // What the thread that made the log is doing, as its owner numbers it; that thread alone sets it.
  int64_t parent = -1;

  std::vector<TrafficRecord> records() const;

 private:
  friend class TrafficScope;
  const std::thread::id owner_ = std::this_thread::get_id();
  mutable std::mutex mutex_;
  std::vector<TrafficRecord> records_;
};

OFL_API void StartLog(std::shared_ptr<TrafficLog> log);
OFL_API void StopLog(const std::shared_ptr<TrafficLog>& log);

// Around one collective. `stream`: that of the work; null for tensors without data.
class OFL_API TrafficScope {
 public:
  TrafficScope(const char* op, double bytes, DType dtype, Stream* stream);
  ~TrafficScope();
  TrafficScope(const TrafficScope&) = delete;
  TrafficScope& operator=(const TrafficScope&) = delete;
  void Fail() { record_.failed = true; }

 private:
  Ref<Event> Mark() const;
  std::vector<std::shared_ptr<TrafficLog>> logs_;
  Stream* stream_;
  TrafficRecord record_;
};

}  // namespace oneflow_lite
