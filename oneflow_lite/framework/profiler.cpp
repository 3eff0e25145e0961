// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/framework/profiler.h"

#include <chrono>
#include <cstdlib>

#include "absl/strings/str_join.h"
#include "oneflow_lite/core/error.h"

namespace oneflow_lite {
namespace {

constexpr size_t kHarvest = 1024;  // spans of a device after which finished ones are looked for

template <class List>
void AppendSpecs(absl::Span<const Tensor> tensors, List* specs) {
  for (const Tensor& t : tensors) specs->push_back(SpecOf(t));
}

// Where a call runs, as ProfileRecord::device has it: what copies between a GPU and the CPU counts
// as the GPU's.
int64_t DeviceOf(const OpCall& call) {
  int64_t found = ProfileRecord::kCpu;
  const auto look = [&](Device d) {
    if (d.type == DeviceType::kMeta && found == ProfileRecord::kCpu) found = ProfileRecord::kMeta;
    if (d.type == DeviceType::kCUDA) found = d.index;
  };
  for (const Tensor& t : call.inputs) {
    if (t.defined()) look(t.device());
  }
  const int attr = call.op.def().device_attr;
  if (attr >= 0) look(call.attrs.get<Device>(attr));
  return found;
}

Device DeviceAt(int64_t index) {
  return index < 0 ? Device{} : Device{DeviceType::kCUDA, static_cast<int16_t>(index)};
}

std::string ShapesOf(absl::Span<const Tensor> tensors) {
  return absl::StrJoin(tensors, " ", [](std::string* out, const Tensor& t) {
    *out += t.defined() ? t.shape().ToString() : "None";
  });
}

}  // namespace

Cost CostOfCall(const OpCall& call) {
  absl::InlinedVector<TensorSpec, 4> inputs;
  absl::InlinedVector<TensorSpec, 2> outputs;
  AppendSpecs(call.inputs, &inputs);
  AppendSpecs(*call.outputs, &outputs);
  return CostOf(call.op.def(), inputs, call.attrs, outputs);
}

// A thread that ends with a profiler still running leaves it unfinished; the chain is gone by then.
struct ActiveProfilers {
  std::vector<Ref<Profiler>> list;
  ~ActiveProfilers() {
    for (const Ref<Profiler>& p : list) {
      (void)p->guard_.release();
      StopLog(p->traffic_);
      p->open_.clear();
      p->running_ = false;
    }
  }
};

namespace {
thread_local ActiveProfilers active;
}  // namespace

std::vector<Ref<Profiler>> Profiler::Active() { return active.list; }

Status Profiler::Start() {
  if (running_) {
    return Error(ErrorKind::kRuntime,
                 "profile: it is recording already; another one may be opened inside it");
  }
  if (std::getenv("NVTX_INJECTION64_PATH")) (void)GetBackend(DeviceType::kCUDA);
  (void)Now();  // the clock's origin lies before all that is recorded
  running_ = true;
  thread_ = std::this_thread::get_id();
  if (!traffic_) traffic_ = std::make_shared<TrafficLog>();
  StartLog(traffic_);
  guard_ = std::make_unique<ModeGuard>(DispatchStage::kObserver, this);
  active.list.push_back(Ref<Profiler>(this));
  return OkStatus();
}

Status Profiler::Stop() {
  if (!running_) return Error(ErrorKind::kRuntime, "profile: it is not recording");
  if (thread_ != std::this_thread::get_id()) {
    return Error(ErrorKind::kRuntime, "profile: it ends in the thread in which it began");
  }
  const Ref<Profiler> keep(this);
  while (!open_.empty()) End(open_.front(), false);
  if (hears_launches_) SetLaunchListener(nullptr);
  hears_launches_ = false;
  StopLog(traffic_);
  running_ = false;
  guard_.reset();
  std::erase_if(active.list, [&](const Ref<Profiler>& p) { return p.get() == this; });
  for (auto& [index, device] : devices_) Resolve(device, /*wait=*/true);
  return OkStatus();
}

int64_t Profiler::OnClock(std::chrono::steady_clock::time_point time) {
  static const auto origin = std::chrono::steady_clock::now();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time - origin).count();
}

std::vector<ProfileRecord> Profiler::records() {
  std::vector<ProfileRecord> all = records_;
  if (!traffic_) return all;
  for (const TrafficRecord& t : traffic_->records()) {
    ProfileRecord r;
    r.kind = ProfileRecord::kCollective;
    r.name = Name(t.op);
    r.parent = t.parent;
    r.begin_ns = OnClock(t.begin);
    r.end_ns = OnClock(t.end);
    if (t.device.type == DeviceType::kMeta) r.device = ProfileRecord::kMeta;
    if (t.device.type == DeviceType::kCUDA) r.device = t.device.index;
    r.dtype = static_cast<int64_t>(t.dtype);
    r.failed = t.failed;
    r.bytes = t.bytes;
    Resolve(t, &r);
    all.push_back(r);
  }
  return all;
}

// When a GPU began and ended a collective; untimed where that cannot be said.
void Profiler::Resolve(const TrafficRecord& t, ProfileRecord* r) {
  if (!t.device_begin || !t.device_end || !t.device_end->Synchronize().ok()) return;
  const PerDevice* d = OnDevice(t.device.index);
  if (!d) return;
  const auto begin = d->origin->ElapsedMs(*t.device_begin);
  const auto end = d->origin->ElapsedMs(*t.device_end);
  if (!begin.ok() || !end.ok()) return;
  r->device_begin_ns = d->origin_ns + 1e6 * static_cast<double>(*begin);
  r->device_end_ns = d->origin_ns + 1e6 * static_cast<double>(*end);
}

int64_t Profiler::Name(const std::string& text) {
  const auto [it, added] = name_index_.emplace(text, static_cast<int64_t>(names_.size()));
  if (added) names_.push_back(text);
  return it->second;
}

// A map by address: no string is made for a call.
int64_t Profiler::NameOf(const OpDef& op) {
  const auto it = op_names_.find(&op);
  if (it != op_names_.end()) return it->second;
  return op_names_[&op] = Name(op.name);
}

int64_t Profiler::MemoryOn(int64_t device) {
  if (device == ProfileRecord::kMeta) return GetMetaMemory().held;
  PerDevice& d = devices_[device];
  if (!d.backend) {
    const auto backend = GetBackend(DeviceAt(device));
    if (!backend.ok()) return 0;
    d.backend = *backend;
  }
  return static_cast<int64_t>(
      d.backend->Stats(device < 0 ? 0 : static_cast<int>(device)).allocated);
}

int64_t Profiler::Begin(ProfileRecord::Kind kind, int64_t name) {
  const auto index = static_cast<int64_t>(records_.size());
  ProfileRecord r;
  r.kind = kind;
  r.name = name;
  r.parent = open_.empty() ? -1 : open_.back();
  r.launches = static_cast<int64_t>(LaunchCount());
  records_.push_back(r);
  open_.push_back(index);
  traffic_->parent = index;
  records_.back().begin_ns = Now();
  return index;
}

// Ends a record, and with it what began inside and did not end.
void Profiler::End(int64_t record, bool failed) {
  if (std::find(open_.begin(), open_.end(), record) == open_.end()) return;  // Stop was faster
  const int64_t now = Now();
  for (bool more = true; more;) {
    ProfileRecord& r = records_[open_.back()];
    more = open_.back() != record;
    open_.pop_back();
    r.end_ns = now;
    r.launches = static_cast<int64_t>(LaunchCount()) - r.launches;
    r.failed = !more && failed;
  }
  traffic_->parent = open_.empty() ? -1 : open_.back();
}

void Profiler::EndRange(int64_t record) {
  if (thread_ == std::this_thread::get_id()) End(record, false);
}

void Profiler::Describe(const OpCall& call, ProfileRecord* record) {
  const Cost cost = CostOfCall(call);
  record->bytes = cost.bytes;
  record->flops = cost.flops;
  for (const absl::Span<const Tensor> tensors :
       {call.inputs, absl::Span<const Tensor>(*call.outputs)}) {
    for (const Tensor& t : tensors) {
      if (record->dtype >= 0 || !t.defined() || !IsFloating(t.dtype())) continue;
      record->dtype = static_cast<int64_t>(t.dtype());
    }
  }
}

Status Profiler::Run(OpCall& call, const Next& next) {
  const Ref<Profiler> keep(this);  // the op may be one in Python, which ends the profile
  const OpDef& def = call.op.def();
  const int64_t gpu = DeviceOf(call);
  const int64_t shapes = options_.shapes ? Name(ShapesOf(call.inputs)) : -1;
  const RangeMarker marker = GetRangeMarker();
  PerDevice* const device = gpu >= 0 && !def.views() ? OnDevice(gpu) : nullptr;
  if (options_.synchronize && device) (void)device->backend->Synchronize(static_cast<int>(gpu));
  const int64_t memory = MemoryOn(gpu);
  if (marker.push) marker.push(def.name.c_str());
  const int64_t index = Begin(ProfileRecord::kOp, NameOf(def));
  Ref<Event> begin = device ? Mark(*device, gpu) : Ref<Event>();
  const bool listens = options_.launches && device && !hears_launches_;
  LaunchListener* const before = listens ? SetLaunchListener(this) : nullptr;
  if (listens) launch_device_ = gpu;
  hears_launches_ |= listens;

  const Status status = next(call);

  if (listens && hears_launches_) {
    SetLaunchListener(before);
    hears_launches_ = false;
  }
  if (marker.pop) marker.pop();
  const bool open = running_ && std::find(open_.begin(), open_.end(), index) != open_.end();
  if (begin && open) {
    if (Ref<Event> end = Mark(*device, gpu)) {
      device->pending.push_back({index, std::move(begin), std::move(end)});
    }
  }
  if (options_.synchronize && device) (void)device->backend->Synchronize(static_cast<int>(gpu));
  End(index, !status.ok());
  ProfileRecord work;
  if (status.ok()) Describe(call, &work);  // the op's cost may run ops, which are records, too
  ProfileRecord& r = records_[index];
  r.bytes = work.bytes;
  r.flops = work.flops;
  r.dtype = work.dtype;
  r.device = gpu;
  r.shapes = shapes;
  r.memory_begin = memory;
  r.memory_end = MemoryOn(gpu);
  if (device && open && device->pending.size() >= kHarvest) Resolve(*device, /*wait=*/false);
  return status;
}

Profiler::PerDevice* Profiler::OnDevice(int64_t device) {
  PerDevice& d = devices_[device];
  MemoryOn(device);
  const auto stream = CurrentStream(DeviceAt(device));
  if (!d.backend || !stream.ok() || (*stream)->capturing()) return nullptr;
  if (d.origin) return &d;
  auto origin = d.backend->NewEvent(static_cast<int>(device), /*timing=*/true);
  if (!origin.ok() || !(*origin)->Record(**stream).ok() || !(*origin)->Synchronize().ok()) {
    return nullptr;
  }
  d.origin_ns = static_cast<double>(Now());
  d.origin = *origin;
  return &d;
}

// An event recorded now on the current stream; null where that fails.
Ref<Event> Profiler::Mark(PerDevice& d, int64_t device) {
  const auto stream = CurrentStream(DeviceAt(device));
  if (!stream.ok()) return {};
  Ref<Event> event;
  if (d.idle.empty()) {
    auto made = d.backend->NewEvent(static_cast<int>(device), /*timing=*/true);
    if (!made.ok()) return {};
    event = *made;
  } else {
    event = std::move(d.idle.back());
    d.idle.pop_back();
  }
  return event->Record(**stream).ok() ? event : Ref<Event>();
}

// Reads the times of spans that have ended, of all of them where it may wait.
void Profiler::Resolve(PerDevice& d, bool wait) {
  while (!d.pending.empty()) {
    Pending& p = d.pending.front();
    if (wait) {
      if (!p.end->Synchronize().ok()) return d.pending.clear();
    } else if (const auto ended = p.end->Query(); !ended.ok() || !*ended) {
      return;
    }
    const auto begin = d.origin->ElapsedMs(*p.begin), end = d.origin->ElapsedMs(*p.end);
    if (begin.ok() && end.ok()) {
      ProfileRecord& r = records_[p.record];
      r.device_begin_ns = d.origin_ns + 1e6 * static_cast<double>(*begin);
      r.device_end_ns = d.origin_ns + 1e6 * static_cast<double>(*end);
    }
    d.idle.push_back(std::move(p.begin));
    d.idle.push_back(std::move(p.end));
    d.pending.pop_front();
  }
}

void Profiler::BeginLaunch(const char* name) {
  Pending launch{-1, {}, {}};
  if (PerDevice* d = OnDevice(launch_device_)) {
    launch.record = Begin(ProfileRecord::kLaunch, Name(name));
    records_[launch.record].device = launch_device_;
    launch.begin = Mark(*d, launch_device_);
  }
  launches_.push_back(std::move(launch));
}

void Profiler::EndLaunch() {
  if (launches_.empty()) return;
  Pending launch = std::move(launches_.back());
  launches_.pop_back();
  if (launch.record < 0) return;
  PerDevice& d = devices_[records_[launch.record].device];
  if (launch.begin) launch.end = Mark(d, records_[launch.record].device);
  End(launch.record, false);
  if (launch.end) d.pending.push_back(std::move(launch));
}

bool NodeSpan::AnyActive() { return !active.list.empty(); }

void NodeSpan::Begin(const Node& node) {
  const std::string name = node.name();
  for (const Ref<Profiler>& p : active.list) {
    spans_.push_back({p, p->Begin(ProfileRecord::kBackward, p->Name(name))});
  }
  if (const RangeMarker marker = GetRangeMarker(); marker.push && marker.pop) {
    marker.push(name.c_str());
    marked_ = true;
  }
}

void NodeSpan::End() {
  if (marked_) GetRangeMarker().pop();
  for (const auto& [profiler, record] : spans_) profiler->End(record, false);
}

}  // namespace oneflow_lite
