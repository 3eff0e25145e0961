// SPDX-License-Identifier: Apache-2.0
//
// Work of collectives that a device has been given and has yet to do: NCCL's calls return before
// it has begun. A thread looks for its end; what does not end in time is told, once.
//
//   CollectiveWatch::Get().Add(stream.native(), end, world->timeout, [=] { GiveUp(call); });
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

#include "oneflow_lite/core/stream.h"

namespace oneflow_lite {

class OFL_API CollectiveWatch {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using Late = std::function<void()>;

  // `period`: from one look to the next.
  explicit CollectiveWatch(Milliseconds period = Milliseconds(100)) : period_(period) {}
  ~CollectiveWatch();
  CollectiveWatch(const CollectiveWatch&) = delete;
  CollectiveWatch& operator=(const CollectiveWatch&) = delete;
  // That of the process, stopped when the process ends.
  static CollectiveWatch& Get();

  // `end` stands behind the work, in no capture; `line` is the stream, whose work comes in order.
  // The time of one work begins when that before it on its line has ended. `late` runs on the
  // watch's thread, which may take its time there; all else of the line is forgotten.
  void Add(const void* line, Ref<Event> end, Milliseconds timeout, Late late);
  // No event is asked after that.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Work {
    Ref<Event> end;
    Milliseconds timeout;
    Late late;
  };
  struct Line {
    std::deque<Work> works;
    Clock::time_point began;  // of the first work's time
  };

  void Run();
  std::deque<Late> Look();

  const Milliseconds period_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const void*, Line> lines_;
  bool stopped_ = false;
  bool runs_ = false;  // the thread
};

}  // namespace oneflow_lite
