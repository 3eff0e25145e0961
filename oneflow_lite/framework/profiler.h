// SPDX-License-Identifier: Apache-2.0
//
// Profiler: an observer of the dispatch chain (framework/dispatch.h) that keeps a record of each
// call of an op of its thread: times on the host and on the device, the work that the OpDef's cost
// declares, launches, memory. Nodes of backward and ranges of the user's are records as well, and
// what runs inside another record names it as its parent.
//
//   auto profiler = MakeRef<Profiler>(Profiler::Options{});
//   OFL_RETURN_IF_ERROR(profiler->Start());
//   ...
//   OFL_RETURN_IF_ERROR(profiler->Stop());    // waits for the device
//   for (const ProfileRecord& r : profiler->records()) ...
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <thread>
#include <unordered_map>
#include <vector>

#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/launches.h"
#include "oneflow_lite/core/traffic.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/node.h"

namespace oneflow_lite {

// One record; eight bytes a field, so that it is also a row of a table.
struct ProfileRecord {
  enum Kind : int64_t { kOp, kBackward, kRange, kLaunch, kCollective };
  enum Place : int64_t { kMeta = -2, kCpu = -1 };
  int64_t kind = kOp;
  int64_t name = 0;          // an index into names()
  int64_t parent = -1;       // the record that it ran in; -1: none
  int64_t begin_ns = 0;      // on the host's clock, since the first Start
  int64_t end_ns = -1;       // -1: it did not end
  int64_t device = kCpu;     // a Place, or the index of a GPU
  int64_t dtype = -1;        // of the first floating input or output; -1: there is none
  int64_t launches = 0;      // that its thread made meanwhile
  int64_t memory_begin = 0;  // bytes that tensors held on its device
  int64_t memory_end = 0;
  int64_t failed = 0;          // 1: it ended with an error
  int64_t shapes = -1;         // of the inputs, an index into names(); -1: not kept
  double bytes = 0;            // that must move; of a collective, that this rank sends
  double flops = 0;            // operations
  double device_begin_ns = 0;  // on the same clock, when the GPU began and ended it
  double device_end_ns = -1;   // -1: not timed
};

// The work of a call that has run, by the cost that its op declares.
OFL_API Cost CostOfCall(const OpCall& call);

class OFL_API Profiler : public RefCounted, public DispatchMode, private LaunchListener {
 public:
  struct Options {
    bool launches = false;     // a record of each launch
    bool shapes = false;       // keep the inputs' shapes
    bool synchronize = false;  // wait for the GPU before and after each op
  };
  explicit Profiler(const Options& options) : options_(options) {}

  // Begins to record this thread; RuntimeError where it does so already. What was recorded stays.
  Status Start();
  // Ends that, in the same thread, and waits for the GPU; records still open end now.
  Status Stop();
  bool running() const { return running_; }
  // Whether the records may be read here: a profiler that runs belongs to its thread.
  bool readable() const { return !running_ || thread_ == std::this_thread::get_id(); }

  // A range of the user's; EndRange gets what BeginRange gave.
  int64_t BeginRange(const std::string& name) { return Begin(ProfileRecord::kRange, Name(name)); }
  void EndRange(int64_t record);

  // In the order in which they began; after those of this thread, the collectives of the process.
  std::vector<ProfileRecord> records();
  const std::vector<std::string>& names() const { return names_; }

  Status Run(OpCall& call, const Next& next) override;

  // Those that record this thread, the latest last.
  static std::vector<Ref<Profiler>> Active();

 private:
  friend class NodeSpan;
  // A device's span that is still to be asked for its times.
  struct Pending {
    int64_t record;
    Ref<Event> begin, end;
  };
  struct PerDevice {
    DeviceBackend* backend = nullptr;
    Ref<Event> origin;  // at origin_ns of the host's clock
    double origin_ns = 0;
    std::vector<Ref<Event>> idle;
    std::deque<Pending> pending;
  };

  ~Profiler() override = default;
  int64_t Name(const std::string& text);
  int64_t NameOf(const OpDef& op);
  int64_t Begin(ProfileRecord::Kind kind, int64_t name);
  void End(int64_t record, bool failed);
  void Describe(const OpCall& call, ProfileRecord* record);
  static int64_t OnClock(std::chrono::steady_clock::time_point time);
  static int64_t Now() { return OnClock(std::chrono::steady_clock::now()); }
  void Resolve(const TrafficRecord& traffic, ProfileRecord* record);
  int64_t MemoryOn(int64_t device);
  // Times on the device; null where it cannot be timed now (a capture, no memory for events).
  PerDevice* OnDevice(int64_t device);
  Ref<Event> Mark(PerDevice& d, int64_t device);
  void Resolve(PerDevice& d, bool wait);
  void BeginLaunch(const char* name) override;
  void EndLaunch() override;

  const Options options_;
  std::atomic<bool> running_{false};
  bool hears_launches_ = false;
  std::thread::id thread_;
  std::unique_ptr<ModeGuard> guard_;
  std::vector<ProfileRecord> records_;
  std::shared_ptr<TrafficLog> traffic_;
  std::vector<int64_t> open_;  // records that have begun, the innermost last
  std::vector<std::string> names_;
  std::unordered_map<std::string, int64_t> name_index_;
  std::unordered_map<const OpDef*, int64_t> op_names_;
  std::map<int64_t, PerDevice> devices_;
  std::vector<Pending> launches_;  // that have begun
  int64_t launch_device_ = 0;
  friend struct ActiveProfilers;
};

// Around a node's part of a pass of backward.
class NodeSpan {
 public:
  explicit NodeSpan(const Node& node) {
    if (AnyActive()) Begin(node);
  }
  ~NodeSpan() {
    if (!spans_.empty() || marked_) End();
  }
  NodeSpan(const NodeSpan&) = delete;
  NodeSpan& operator=(const NodeSpan&) = delete;

 private:
  OFL_API static bool AnyActive();
  OFL_API void Begin(const Node& node);
  OFL_API void End();
  absl::InlinedVector<std::pair<Ref<Profiler>, int64_t>, 1> spans_;
  bool marked_ = false;
};

}  // namespace oneflow_lite
