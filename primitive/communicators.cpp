// SPDX-License-Identifier: Apache-2.0
//
// How communicators are made, kept, and told of the end of others.
#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_join.h"
#include "oneflow_lite/core/device_backend.h"
#include "primitive/collective.h"
#include "primitive/collective_calls.h"

namespace oneflow_lite {
namespace {

// This process alone.
class LoneCommunicator final : public Communicator {
 public:
  explicit LoneCommunicator(Spec spec) : Communicator(std::move(spec)) {}

 private:
  Status DoAllReduce(Stream& stream, const void* in, void* out, int64_t count, DType dtype,
                     CollectiveReduce, DType) override {
    return CopyDense(stream, in, out, count, dtype);
  }
  Status DoAllReduceRanges(Stream&, absl::Span<const Range>, DType, CollectiveReduce) override {
    return OkStatus();
  }
  Status DoAllGather(Stream& stream, const void* in, void* out, Counts counts,
                     DType dtype) override {
    return CopyDense(stream, in, out, counts[0], dtype);
  }
  Status DoReduceScatter(Stream& stream, const void* in, void* out, Counts counts, DType dtype,
                         CollectiveReduce, DType) override {
    return CopyDense(stream, in, out, counts[0], dtype);
  }
  Status DoAllToAll(Stream& stream, const void* in, Counts counts, void* out, Counts,
                    DType dtype) override {
    return CopyDense(stream, in, out, counts[0], dtype);
  }
  Status DoBroadcast(Stream& stream, const void* in, void* out, int64_t count, DType dtype,
                     int) override {
    return CopyDense(stream, in, out, count, dtype);
  }
  Status DoTransfers(Stream&, absl::Span<const Transfer>) override { return OkStatus(); }
  Status DoBarrier(Stream&) override { return OkStatus(); }
  void Abort(std::optional<int>) override {}
};

// The latest call of this process.
struct Latest {
  std::mutex mutex;
  const char* op = nullptr;
  int64_t number = 0;
  std::vector<int> members;
  int peer = -1;
  bool running = false;
};
Latest& GetLatest() {
  static auto* latest = new Latest;
  return *latest;
}

}  // namespace

CurrentCall::CurrentCall(const Named& call) {
  Latest& l = GetLatest();
  std::lock_guard lock(l.mutex);
  l.op = call.op;
  l.number = call.number;
  l.members.assign(call.members.begin(), call.members.end());
  l.peer = call.peer;
  l.running = true;
}

CurrentCall::~CurrentCall() {
  Latest& l = GetLatest();
  std::lock_guard lock(l.mutex);
  l.running = false;
}

std::string CurrentCall::Describe() {
  Latest& l = GetLatest();
  std::lock_guard lock(l.mutex);
  if (!l.op) return "has made no collective call";
  std::string call = absl::StrCat(l.op, " number ", l.number);
  if (l.peer >= 0) absl::StrAppend(&call, " with rank ", l.peer);
  absl::StrAppend(&call, " of ranks [", absl::StrJoin(l.members, ", "), "]");
  return l.running ? absl::StrCat("is in ", call)
                   : absl::StrCat("is in no collective call, the last was ", call);
}

Status CopyDense(Stream& stream, const void* in, void* out, int64_t count, DType dtype) {
  if (count == 0 || in == out) return OkStatus();
  OFL_ASSIGN_OR_RETURN(DeviceBackend * backend, GetBackend(stream.device().type));
  return backend->CopyOnDevice(out, in, static_cast<size_t>(count) * SizeOf(dtype), stream);
}

// All communicators of this process with an engine; what happens to other ranks reaches them here.
class LiveCommunicators : public WorldObserver {
 public:
  static LiveCommunicators& Get() {
    static auto* live = new LiveCommunicators;
    return *live;
  }
  void Add(std::shared_ptr<Communicator> c) {
    std::lock_guard lock(mutex_);
    all_.push_back(std::move(c));
  }
  void OnFailure(const std::string&) override {
    for (const auto& c : All()) c->Abort({});
  }
  void OnLeft(int rank) override {
    for (const auto& c : All()) {
      const auto found = std::find(c->ranks().begin(), c->ranks().end(), rank);
      if (found != c->ranks().end()) c->Abort(static_cast<int>(found - c->ranks().begin()));
    }
  }
  std::string Doing() override { return CurrentCall::Describe(); }

 private:
  std::vector<std::shared_ptr<Communicator>> All() {
    std::lock_guard lock(mutex_);
    return all_;
  }
  std::mutex mutex_;
  std::vector<std::shared_ptr<Communicator>> all_;
};

namespace {

Status CheckRanks(absl::Span<const int> ranks, const World& world) {
  const auto bad = [&](const auto&... what) {
    return Error(ErrorKind::kValue, "the ranks [", absl::StrJoin(ranks, ", "), "] ", what...);
  };
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return bad("are none");
  if (sorted.front() < 0 || sorted.back() >= world.size) {
    return bad("must be in [0, ", world.size - 1, "], the world of ", world.size, " process",
               world.size == 1 ? "" : "es");
  }
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return bad("have one twice");
  }
  if (!std::binary_search(sorted.begin(), sorted.end(), world.rank)) {
    return bad("do not have this process, rank ", world.rank, ", among them");
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<Communicator>> Make(Communicator::Spec spec) {
  if (spec.ranks.size() == 1) return std::make_shared<LoneCommunicator>(std::move(spec));
  SetWorldObserver(&LiveCommunicators::Get());
  const std::string members = absl::StrJoin(spec.ranks, ", ");
  auto made = NewPrimitive<CommunicatorFactory>(spec.device_type, spec);
  if (made.ok()) {
    std::shared_ptr<Communicator> c = *std::move(made);
    LiveCommunicators::Get().Add(c);
    // What was told while it was being made has not reached it.
    if (const std::string failure = ReportedFailure(); !failure.empty()) {
      return Error(ErrorKind::kRuntime, failure);
    }
    return c;
  }
  const Status& s = made.status();
  const std::string failure = ReportedFailure();
  const std::string message =
      absl::StrCat("the ranks [", members, "] cannot be connected on ", Name(spec.device_type),
                   ": ", failure.empty() ? s.message() : absl::string_view(failure));
  ReportFailure(message);
  return Error(KindOf(s), message);
}

}  // namespace

StatusOr<std::shared_ptr<Communicator>> GetCommunicator(DeviceType device_type,
                                                        absl::Span<const int> ranks, int lane) {
  using Key = std::tuple<DeviceType, std::vector<int>, int>;
  static std::mutex mutex;
  static auto* made = new std::map<Key, std::shared_ptr<Communicator>>;
  OFL_ASSIGN_OR_RETURN(const World* world, GetWorld());
  const std::vector<int> members(ranks.begin(), ranks.end());
  Key key(device_type, members, lane);
  std::lock_guard lock(mutex);
  if (const auto found = made->find(key); found != made->end()) return found->second;
  OFL_RETURN_IF_ERROR(CheckRanks(ranks, *world));
  const auto place = std::find(members.begin(), members.end(), world->rank);
  const int rank = static_cast<int>(place - members.begin());
  OFL_ASSIGN_OR_RETURN(auto c, Make({device_type, members, rank, lane}));
  made->emplace(std::move(key), c);
  return c;
}

}  // namespace oneflow_lite
