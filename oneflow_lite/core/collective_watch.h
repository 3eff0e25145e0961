// SPDX-License-Identifier: Apache-2.0
//
// Work of collectives that a device has been given and has yet to do, and calls of an engine that
// have yet to return: what does not end in time is told, once.
//
//   CollectiveWatch::Get().Add(stream.native(), end, world->timeout, [=] { GiveUp(call); });
//   const auto watched = CollectiveWatch::Get().Call(world->timeout, [=] { GiveUp(call); });
//
// Two threads: one asks the device's events, the other looks at the clock. A call of the device's
// library may hold its lock for as long as a kernel spins (a launch that waits for room in a full
// queue does), and whoever asks an event then waits too. So the clock's thread calls nothing of it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "oneflow_lite/core/stream.h"

namespace oneflow_lite {

class OFL_API CollectiveWatch {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using Late = std::function<void()>;

  // `period`: from one look to the next; `stuck`: how long an event may take to answer.
  explicit CollectiveWatch(Milliseconds period = Milliseconds(100),
                           Milliseconds stuck = Milliseconds(1000))
      : period_(period), stuck_(stuck) {}
  // Waits for what is being asked.
  ~CollectiveWatch();
  CollectiveWatch(const CollectiveWatch&) = delete;
  CollectiveWatch& operator=(const CollectiveWatch&) = delete;
  // That of the process, stopped when the process ends.
  static CollectiveWatch& Get();

  // `end` stands behind the work, in no capture; `line` is the stream, whose work comes in order.
  // The time of one work begins when that before it on its line has ended. `late` runs on the
  // clock's thread, which may take its time there; all else of the line is forgotten. Work whose
  // event does not answer is late, too.
  void Add(const void* line, Ref<Event> end, Milliseconds timeout, Late late);

  // A call on the host, watched until this is destroyed.
  class Watched {
   public:
    Watched(Watched&& o) noexcept : watch_(std::exchange(o.watch_, nullptr)), id_(o.id_) {}
    ~Watched() {
      if (watch_) watch_->Returned(id_);
    }

   private:
    friend class CollectiveWatch;
    Watched(CollectiveWatch* watch, int64_t id) : watch_(watch), id_(id) {}
    CollectiveWatch* watch_;
    int64_t id_;
  };
  [[nodiscard]] Watched Call(Milliseconds timeout, Late late);

  // Runs on a thread of its own, for which nobody waits.
  static void Beside(std::function<void()> work);

  // No event is asked after that. Waits for one that is being asked, unless it is stuck.
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
    Clock::time_point asked;  // when the first work was last seen not to have ended
  };
  struct HostCall {
    Clock::time_point deadline;
    Late late;
  };

  void Begin();
  void Returned(int64_t id);
  void RunClock();
  void RunAsking();
  void AskAll(std::unique_lock<std::mutex>& lock);
  bool AskFirst(const void* name, std::unique_lock<std::mutex>& lock);
  std::vector<Late> Look();
  void Drop(Line& line);

  const Milliseconds period_, stuck_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const void*, Line> lines_;
  std::map<int64_t, HostCall> calls_;
  int64_t calls_so_far_ = 0;
  std::optional<Clock::time_point> asking_;  // since when an event has been asked
  std::vector<Ref<Event>> dropped_;          // to be destroyed by who asks: that may wait, too
  bool stopped_ = false;
  int running_ = 0;  // threads
  int idle_ = 0;     // of them, those that sleep until there is something to watch
};

}  // namespace oneflow_lite
