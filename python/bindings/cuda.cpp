// SPDX-License-Identifier: Apache-2.0
//
// Streams, events, graphs and memory of CUDA devices, and the CPU's threads.
#include <pybind11/stl.h>

#include "oneflow_lite/core/deterministic.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/parallel.h"
#include "oneflow_lite/core/thread_limit.h"
#include "oneflow_lite/framework/autocast.h"
#include "oneflow_lite/framework/global.h"
#include "primitive/attention.h"
#include "python/bindings/classes.h"
#include "python/bindings/dtype_device.h"
#include "python/bindings/tensor_object.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

DeviceBackend* CudaOrNull() {
  auto backend = GetBackend(DeviceType::kCUDA);
  return backend.ok() && (*backend)->DeviceCount() > 0 ? *backend : nullptr;
}

Device CudaDevice(int index) {
  const Device d = ValueOrThrow(Device::Parse(absl::StrCat("cuda:", index)));
  ValueOrThrow(GetBackend(d));
  return d;
}
Device CurrentCuda() { return CudaDevice(CurrentDeviceIndex(DeviceType::kCUDA)); }
DeviceBackend& BackendOf(Device d) { return *ValueOrThrow(GetBackend(d)); }

// None is the current CUDA device.
Device DeviceOrCurrent(const py::object& o) {
  if (o.is_none()) return CurrentCuda();
  Device d;
  const Match m = AsDevice(o.ptr(), &d);
  if (m == Match::kError) throw py::error_already_set();
  if (m == Match::kNo) throw py::type_error("a device, a str or an int is needed");
  return d;
}

Ref<Stream> CurrentOf(Device d) { return Ref<Stream>(ValueOrThrow(CurrentStream(d))); }

template <class F>
void Unlocked(F&& f) {
  Status s;
  {
    GilRelease unlocked;
    s = f();
  }
  ThrowIfError(s);
}

// An event is made when it is first recorded: on the device of that stream.
class LazyEvent {
 public:
  explicit LazyEvent(bool timing) : timing_(timing) {}

  void Record(const Ref<Stream>& given) {
    const Ref<Stream> stream = given ? given : CurrentOf(CurrentCuda());
    if (!event_) {
      const Device d = stream->device();
      event_ = ValueOrThrow(BackendOf(d).NewEvent(d.index, timing_));
    }
    ThrowIfError(event_->Record(*stream));
  }
  void Wait(const Ref<Stream>& given) {
    if (!event_) return;
    ThrowIfError(event_->Wait(given ? *given : *CurrentOf(CurrentCuda())));
  }
  void Synchronize() {
    if (event_) Unlocked([&] { return event_->Synchronize(); });
  }
  bool Query() { return !event_ || ValueOrThrow(event_->Query()); }
  float ElapsedTime(LazyEvent& end) {
    if (!event_ || !end.event_ || !timing_ || !end.timing_) {
      throw std::runtime_error(
          "elapsed_time(): both events must be made with enable_timing=True and be recorded");
    }
    return ValueOrThrow(event_->ElapsedMs(*end.event_));
  }

 private:
  bool timing_;
  Ref<Event> event_;
};

class CudaGraph {
 public:
  // No cast of before is captured, and none of the capture is used behind it.
  void Begin(const Ref<Stream>& given) {
    DropAutocastCache();
    const Ref<Stream> stream = given ? given : CurrentOf(CurrentCuda());
    device_ = stream->device();
    graph_ = ValueOrThrow(BackendOf(device_).NewGraph(device_.index));
    ThrowIfError(graph_->CaptureBegin(*stream));
  }
  void End() {
    DropAutocastCache();
    ThrowIfError(Captured().CaptureEnd());
  }
  void Replay() {
    Graph& graph = Captured();
    const Ref<Stream> stream = CurrentOf(device_);
    Unlocked([&] { return graph.Replay(*stream); });
  }

 private:
  Graph& Captured() {
    if (!graph_) throw std::runtime_error("CUDAGraph: nothing was captured; call capture_begin()");
    return *graph_;
  }
  Ref<Graph> graph_;
  Device device_;
};

void WaitStream(Stream& self, Stream& other) {
  const Ref<Event> event =
      ValueOrThrow(BackendOf(other.device()).NewEvent(other.device().index, false));
  ThrowIfError(event->Record(other));
  ThrowIfError(event->Wait(self));
}

// A method of Tensor: its memory is not given out before what the stream has been given so far.
void RecordStream(const py::handle& self, Stream& stream) {
  if (!IsTensor(self.ptr())) throw py::type_error("record_stream(): a tensor is needed");
  Tensor t = Unwrap(self.ptr());
  if (const GlobalSpec* g = GlobalOf(t)) t = g->local;
  if (!t.defined()) return;  // this rank has no part of it
  if (t.device() != stream.device()) {
    ThrowIfError(
        DeviceMismatch("record_stream", "self", t.device(), "the stream", stream.device()));
  }
  ThrowIfError(BackendOf(t.device()).RecordStream(t.storage()->data(), stream));
}

void AddStreams(py::module_& m) {
  py::class_<Stream, Ref<Stream>>(m, "Stream",
                                  "Stream(device=None)\n\nAn order of work on a CUDA device.")
      .def(py::init([](const py::object& device) {
             const Device d = DeviceOrCurrent(device);
             return ValueOrThrow(BackendOf(d).NewStream(d.index));
           }),
           py::arg("device") = py::none())
      .def_property_readonly("device",
                             [](const Stream& s) { return OwnedOrThrow(WrapDevice(s.device())); })
      .def_property_readonly(
          "cuda_stream", [](const Stream& s) { return reinterpret_cast<uintptr_t>(s.native()); },
          "The cudaStream_t as a number.")
      .def_property_readonly("capturing", &Stream::capturing)
      .def(
          "synchronize", [](Stream& s) { Unlocked([&] { return s.Synchronize(); }); },
          "Waits for the work enqueued so far.")
      .def("wait_stream", &WaitStream, py::arg("stream"),
           "Later work here waits for what was enqueued on the other stream.")
      .def(
          "wait_event", [](const Ref<Stream>& s, LazyEvent& e) { e.Wait(s); }, py::arg("event"))
      .def(
          "record_event", [](const Ref<Stream>& s, LazyEvent& e) { e.Record(s); }, py::arg("event"))
      .def(
          "__eq__", [](const Stream& a, const Stream& b) { return &a == &b; }, py::is_operator())
      .def("__hash__", [](const Stream& s) { return reinterpret_cast<intptr_t>(&s) >> 4; })
      .def("__repr__", [](const Stream& s) {
        return absl::StrCat("<oneflow_lite.Stream ", reinterpret_cast<uintptr_t>(s.native()),
                            " on ", s.device().ToString(), ">");
      });
  py::class_<LazyEvent>(m, "Event", "Event(enable_timing=False)\n\nA point in a stream's work.")
      .def(py::init<bool>(), py::arg("enable_timing") = false)
      .def("record", &LazyEvent::Record, py::arg("stream") = py::none())
      .def("wait", &LazyEvent::Wait, py::arg("stream") = py::none())
      .def("synchronize", &LazyEvent::Synchronize)
      .def("query", &LazyEvent::Query, "Whether the point was reached.")
      .def("elapsed_time", &LazyEvent::ElapsedTime, py::arg("end"), "Milliseconds to `end`.");
  py::class_<CudaGraph>(m, "CUDAGraph", "Captured work, to be launched again as a whole.")
      .def(py::init<>())
      .def("capture_begin", &CudaGraph::Begin, py::arg("stream") = py::none(),
           "Captures the work of a stream, by default the current one.")
      .def("capture_end", &CudaGraph::End)
      .def("replay", &CudaGraph::Replay,
           "Runs what was captured on the current stream of its GPU.");
}

void AddProperties(py::module_& m) {
  using P = DeviceProperties;
  py::class_<P>(m, "DeviceProperties", "What a device is and has.")
      .def_readonly("name", &P::name)
      .def_property_readonly("major", [](const P& p) { return p.compute_capability / 10; })
      .def_property_readonly("minor", [](const P& p) { return p.compute_capability % 10; })
      .def_readonly("multi_processor_count", &P::multiprocessors)
      .def_readonly("total_memory", &P::total_memory)
      .def_readonly("l2_cache_size", &P::l2_bytes)
      .def_readonly("shared_memory_per_block", &P::shared_memory_per_block)
      .def_readonly("shared_memory_per_multiprocessor", &P::shared_memory_per_sm)
      .def_readonly("supports_clusters", &P::supports_clusters)
      .def_readonly("supports_cooperative_launch", &P::supports_cooperative_launch)
      .def("__repr__", [](const P& p) {
        return absl::StrCat(
            "DeviceProperties(name='", p.name, "', major=", p.compute_capability / 10,
            ", minor=", p.compute_capability % 10, ", multi_processor_count=", p.multiprocessors,
            ", total_memory=", p.total_memory, ")");
      });
}

void AddMemory(py::module_& m) {
  m.def(
      "memory_stats",
      [](const py::object& device) {
        const Device d = DeviceOrCurrent(device);
        const MemoryStats s = BackendOf(d).Stats(d.index);
        py::dict stats;
        stats["allocated"] = s.allocated;
        stats["reserved"] = s.reserved;
        stats["peak_allocated"] = s.peak_allocated;
        return stats;
      },
      py::arg("device") = py::none(), "Bytes: allocated, reserved, peak_allocated.");
  m.def(
      "empty_cache",
      [](const py::object& device) {
        const Device d = DeviceOrCurrent(device);
        BackendOf(d).EmptyCache(d.index);
      },
      py::arg("device") = py::none());
  m.def(
      "reset_peak_memory",
      [](const py::object& device) {
        const Device d = DeviceOrCurrent(device);
        BackendOf(d).ResetPeak(d.index);
      },
      py::arg("device") = py::none());
}

void AddProcess(py::module_& m) {
  m.def("get_num_threads", &NumThreads, "How many threads CPU kernels use.");
  m.def(
      "set_num_threads",
      [](int n) {
        SetNumThreads(n);
        GilRelease unlocked;
        // Of n, not of NumThreads(): another thread may have set another number since.
        return InSerialRegion() ? n : GrantThreads(n);
      },
      py::arg("n"), "Gives how many of them the system grants.");
  m.attr("max_num_threads") = kMaxThreads;

  m.def("deterministic_algorithms", &DeterministicAlgorithms);
  m.def("set_deterministic_algorithms", &SetDeterministicAlgorithms, py::arg("value"));
  m.def(
      "attention_use",
      [] {
        py::dict d;
        WithAttentionUse([&](AttentionUse& use) {
          d["library"] = use.library;
          d["library_calls"] = use.library_calls;
          d["composed_calls"] = use.composed_calls;
          d["composed_for"] = use.composed_for;
          d["plans_built"] = use.plans_built;
          d["plans_kept"] = use.plans_kept;
        });
        return d;
      },
      "Who served the calls of attention on CUDA in this process.");
}

}  // namespace

void AddCuda(py::module_& m) {
  AddStreams(m);
  const py::object tensor = m.attr("Tensor");
  tensor.attr("record_stream") = py::cpp_function(
      &RecordStream, py::name("record_stream"), py::is_method(tensor), py::arg("stream"),
      "Keeps the tensor's memory, once nobody holds it, until the work that the "
      "stream has been given so far has ended.\n\nFor a tensor that was made on "
      "another stream.");
  AddProperties(m);
  AddMemory(m);
  m.def("cuda_is_available", [] { return CudaOrNull() != nullptr; });
  m.def("cuda_device_count", [] {
    DeviceBackend* backend = CudaOrNull();
    return backend ? backend->DeviceCount() : 0;
  });
  m.def("cuda_current_device", [] { return CurrentDeviceIndex(DeviceType::kCUDA); });
  m.def(
      "cuda_set_device",
      [](int index) { SetCurrentDeviceIndex(DeviceType::kCUDA, CudaDevice(index).index); },
      py::arg("index"));
  m.def(
      "cuda_device_properties",
      [](std::optional<int> index) {
        const Device d = index ? CudaDevice(*index) : CurrentCuda();
        return BackendOf(d).Properties(d.index);
      },
      py::arg("index") = py::none());
  m.def(
      "cuda_synchronize",
      [](std::optional<int> index) {
        const Device d = index ? CudaDevice(*index) : CurrentCuda();
        Unlocked([&] { return BackendOf(d).Synchronize(d.index); });
      },
      py::arg("index") = py::none());
  m.def(
      "cuda_current_stream",
      [](std::optional<int> index) {
        return CurrentOf(index ? CudaDevice(*index) : CurrentCuda());
      },
      py::arg("index") = py::none());
  m.def(
      "cuda_set_stream", [](const Ref<Stream>& stream) { SetCurrentStream(stream); },
      py::arg("stream").none(false));
  AddProcess(m);
}

}  // namespace oneflow_lite::python
