// SPDX-License-Identifier: Apache-2.0
//
// The world of processes and its communicators, for oneflow_lite/distributed.
#include <pybind11/stl.h>

#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/world.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/global.h"
#include "primitive/collective.h"
#include "python/bindings/classes.h"
#include "python/bindings/dtype_device.h"
#include "python/bindings/tensor_object.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

const Tensor& TensorOf(const py::handle& o) {
  if (!IsTensor(o.ptr())) throw py::type_error("a tensor is wanted");
  return Unwrap(o.ptr());
}
// What a collective reads or writes as it lies in memory.
const Tensor& DenseOf(const py::handle& o) {
  const Tensor& t = TensorOf(o);
  if (t.device().type == DeviceType::kMeta) throw py::value_error("a meta tensor has no data");
  if (!t.is_contiguous()) throw py::value_error("a contiguous tensor is wanted");
  return t;
}

template <class F>
void Unlocked(F&& f) {
  Status s;
  {
    GilRelease unlocked;
    s = f();
  }
  ThrowIfError(s);
}

std::optional<DType> DTypeOrNone(const py::object& o) {
  if (o.is_none()) return {};
  DType t;
  if (!AsDType(o.ptr(), &t)) throw py::type_error("reduce_dtype must be a dtype or None");
  return t;
}

Stream& StreamOf(const Tensor& t) { return *ValueOrThrow(CurrentStream(t.device())); }

using SharedCommunicator = std::shared_ptr<Communicator>;
using Sizes = std::vector<int64_t>;

SharedCommunicator Connect(const std::string& device, const std::vector<int>& ranks, int lane) {
  const Device d = ValueOrThrow(Device::Parse(device));
  StatusOr<SharedCommunicator> c = SharedCommunicator();
  {
    GilRelease unlocked;
    c = GetCommunicator(d.type, ranks, lane);
  }
  return ValueOrThrow(std::move(c));
}

void AllReduce(Communicator& c, const py::object& in, const py::object& out, int op,
               const py::object& reduce_dtype) {
  const Tensor x = DenseOf(in), y = DenseOf(out);
  const auto dtype = DTypeOrNone(reduce_dtype);
  y.storage()->BumpVersion();
  Unlocked([&] {
    return c.AllReduce(StreamOf(x), x.data(), y.data(), x.numel(), x.dtype(),
                       static_cast<CollectiveReduce>(op), dtype);
  });
}

// Each in place, in one collective.
void AllReduceTogether(Communicator& c, const std::vector<py::object>& tensors, int op) {
  std::vector<Tensor> held;
  std::vector<Communicator::Range> ranges;
  for (const py::object& o : tensors) {
    const Tensor& t = held.emplace_back(DenseOf(o));
    if (t.dtype() != held[0].dtype() || t.device() != held[0].device()) {
      throw py::value_error("tensors of one dtype and device are wanted");
    }
    t.storage()->BumpVersion();
    ranges.push_back({t.data(), t.numel()});
  }
  if (held.empty()) throw py::value_error("a tensor is wanted");
  Unlocked([&] {
    return c.AllReduceRanges(StreamOf(held[0]), ranges, held[0].dtype(),
                             static_cast<CollectiveReduce>(op));
  });
}

// Whether .grad may be changed in place without anybody's seeing it but through .grad.
bool HasGradOfItsOwn(const py::object& o) {
  const Tensor& t = TensorOf(o);
  const Tensor grad = autograd::Grad(t);
  // One reference is here, one in the slot; an object of Python's would be a third.
  return grad.defined() && !autograd::RequiresGrad(grad) && !GlobalOf(grad) &&
         grad.is_contiguous() && grad.impl()->use_count() == 2 &&
         grad.storage()->use_count() == 1 && grad.storage()->owns_memory();
}

void AllGather(Communicator& c, const py::object& in, const py::object& out, const Sizes& counts) {
  const Tensor x = DenseOf(in), y = DenseOf(out);
  y.storage()->BumpVersion();
  Unlocked([&] { return c.AllGather(StreamOf(x), x.data(), y.data(), counts, x.dtype()); });
}

void ReduceScatter(Communicator& c, const py::object& in, const py::object& out,
                   const Sizes& counts, int op, const py::object& reduce_dtype) {
  const Tensor x = DenseOf(in), y = DenseOf(out);
  const auto dtype = DTypeOrNone(reduce_dtype);
  y.storage()->BumpVersion();
  Unlocked([&] {
    return c.ReduceScatter(StreamOf(x), x.data(), y.data(), counts, x.dtype(),
                           static_cast<CollectiveReduce>(op), dtype);
  });
}

void AllToAll(Communicator& c, const py::object& in, const Sizes& send_counts,
              const py::object& out, const Sizes& recv_counts) {
  const Tensor x = DenseOf(in), y = DenseOf(out);
  y.storage()->BumpVersion();
  Unlocked([&] {
    return c.AllToAll(StreamOf(x), x.data(), send_counts, y.data(), recv_counts, x.dtype());
  });
}

void Broadcast(Communicator& c, const py::object& tensor, int root) {
  const Tensor x = DenseOf(tensor);
  x.storage()->BumpVersion();
  Unlocked(
      [&] { return c.Broadcast(StreamOf(x), x.data(), x.data(), x.numel(), x.dtype(), root); });
}

void Send(Communicator& c, const py::object& tensor, int to) {
  const Tensor x = DenseOf(tensor);
  Unlocked([&] { return c.Send(StreamOf(x), x.data(), x.numel(), x.dtype(), to); });
}

void Recv(Communicator& c, const py::object& tensor, int from) {
  const Tensor x = DenseOf(tensor);
  x.storage()->BumpVersion();
  Unlocked([&] { return c.Recv(StreamOf(x), x.data(), x.numel(), x.dtype(), from); });
}

void Barrier(Communicator& c) {
  const auto index = static_cast<int16_t>(CurrentDeviceIndex(c.device_type()));
  Stream& stream = *ValueOrThrow(CurrentStream({c.device_type(), index}));
  Unlocked([&] { return c.Barrier(stream); });
}

void Init(std::optional<int> rank, std::optional<int> world_size, std::optional<int> local_rank,
          std::optional<int> local_world_size, const std::optional<std::string>& address,
          std::optional<int> port, std::optional<double> timeout) {
  WorldOptions options{rank, world_size, local_rank, local_world_size, address, port, {}};
  if (timeout) {
    if (!(*timeout > 0 && *timeout <= 1e7)) {
      throw py::value_error(absl::StrCat("init(): timeout is ", *timeout,
                                         " s, but must be positive and at most 1e7 s"));
    }
    options.timeout = std::chrono::milliseconds(static_cast<int64_t>(*timeout * 1000));
  }
  Unlocked([&] { return InitWorld(options); });
}

py::dict WorldDict() {
  const World& w = [] {
    StatusOr<const World*> world = nullptr;
    {
      GilRelease unlocked;
      world = GetWorld();
    }
    return std::ref(*ValueOrThrow(world));
  }();
  py::dict d;
  d["rank"] = w.rank;
  d["world_size"] = w.size;
  d["local_rank"] = w.local_rank;
  d["local_world_size"] = w.local_size;
  d["timeout"] = static_cast<double>(w.timeout.count()) / 1000;
  return d;
}

}  // namespace

void AddDistributed(py::module_& m) {
  m.def("distributed_init", &Init, py::arg("rank"), py::arg("world_size"), py::arg("local_rank"),
        py::arg("local_world_size"), py::arg("master_addr"), py::arg("master_port"),
        py::arg("timeout"));
  m.def("distributed_world", &WorldDict, "What the processes agreed on; meets them at need.");
  m.def("distributed_is_initialized", &IsInitialized);
  m.def("distributed_rank", &Rank);
  m.def("distributed_world_size", &WorldSize);
  m.def("distributed_local_rank", &LocalRank);
  m.def("distributed_report_failure", [](const std::string& message) {
    GilRelease unlocked;
    ReportFailure(message);
  });
  m.def("distributed_communicator", &Connect, py::arg("device"), py::arg("ranks"),
        py::arg("lane") = 0);

  m.def("_has_grad_of_its_own", &HasGradOfItsOwn, py::arg("tensor"));

  py::class_<Communicator, SharedCommunicator>(m, "Communicator",
                                               "Collectives over an ordered list of ranks.")
      .def_property_readonly("ranks",
                             [](const Communicator& c) {
                               return std::vector<int>(c.ranks().begin(), c.ranks().end());
                             })
      .def_property_readonly("rank", &Communicator::rank)
      .def_property_readonly("size", &Communicator::size)
      .def("all_reduce", &AllReduce)
      .def("all_reduce_together", &AllReduceTogether, py::arg("tensors"), py::arg("op"))
      .def("all_gather", &AllGather)
      .def("reduce_scatter", &ReduceScatter)
      .def("all_to_all", &AllToAll)
      .def("broadcast", &Broadcast)
      .def("send", &Send)
      .def("recv", &Recv)
      .def("group_begin", [](Communicator& c) { Unlocked([&] { return c.GroupBegin(); }); })
      .def("group_drop",
           [](Communicator& c) { Unlocked([&] { return c.GroupDrop(), OkStatus(); }); })
      .def("group_end", [](Communicator& c) { Unlocked([&] { return c.GroupEnd(); }); })
      .def("barrier", &Barrier);
}

}  // namespace oneflow_lite::python
