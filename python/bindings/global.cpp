// SPDX-License-Identifier: Apache-2.0
//
// Global tensors: flow.placement, flow.sbp, and the methods of Tensor that lead to them and back.
#include "python/bindings/global.h"

#include <pybind11/stl.h>

#include "functional/copy.h"
#include "functional/global.h"
#include "oneflow_lite/core/error.h"
#include "python/bindings/classes.h"
#include "python/bindings/dtype_device.h"
#include "python/bindings/items.h"
#include "python/bindings/tensor_object.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

struct PlacementObject {
  PlacementRef value;
};

// The items of a sequence, in a tuple of our own.
std::vector<PyObject*> ItemsOf(const py::tuple& owned) {
  std::vector<PyObject*> items;
  for (size_t i = 0; i < owned.size(); ++i) {
    items.push_back(TupleItem(owned.ptr(), static_cast<Py_ssize_t>(i)));
  }
  return items;
}

PlacementObject MakePlacement(const std::string& type, const py::object& ranks) {
  const Device device = ValueOrThrow(Device::Parse(type));
  const py::tuple given(ranks);
  std::vector<py::tuple> rows;  // of a grid
  std::vector<int> flat, grid;
  for (PyObject* row : ItemsOf(given)) {
    if (PyIndex_Check(row)) {
      flat.push_back(py::handle(row).cast<int>());
    } else {
      rows.emplace_back(py::reinterpret_borrow<py::object>(row));
    }
  }
  for (const py::tuple& row : rows) {
    if (row.size() != rows[0].size() || rows.size() != given.size()) {
      throw py::value_error("placement(): ranks must be a list, or a list of lists of one length");
    }
    for (PyObject* rank : ItemsOf(row)) flat.push_back(py::handle(rank).cast<int>());
  }
  if (rows.empty()) {
    grid = {static_cast<int>(flat.size())};
  } else {
    grid = {static_cast<int>(rows.size()), static_cast<int>(rows[0].size())};
  }
  return {ValueOrThrow(Placement::Get(device.type, flat, grid))};
}

py::object RanksOf(const PlacementObject& p) {
  py::list all;
  const int columns = p.value->grid().back();
  if (p.value->ndim() == 1) {
    for (const int r : p.value->ranks()) all.append(r);
    return all;
  }
  for (int row = 0; row < p.value->grid()[0]; ++row) {
    py::list places;
    for (int c = 0; c < columns; ++c) places.append(p.value->ranks()[row * columns + c]);
    all.append(places);
  }
  return all;
}

std::string TextOf(const Sbp& s) {
  switch (s.kind) {
    case Sbp::Kind::kSplit:
      return "oneflow_lite.sbp.split(" + std::to_string(s.axis) + ")";
    case Sbp::Kind::kBroadcast:
      return "oneflow_lite.sbp.broadcast";
    default:
      return "oneflow_lite.sbp.partial_sum";
  }
}

// One SBP, or one per dim of the grid.
NdSbp ReadSbp(const char* function, const py::handle& o, const Placement& p) {
  NdSbp sbp;
  if (py::isinstance<Sbp>(o)) {
    sbp.push_back(o.cast<Sbp>());
  } else if (py::isinstance<py::sequence>(o) && !py::isinstance<py::str>(o)) {
    const py::tuple given(py::reinterpret_borrow<py::object>(o));
    for (PyObject* given_item : ItemsOf(given)) {
      const py::handle item = given_item;
      if (!py::isinstance<Sbp>(item)) {
        throw py::type_error(std::string(function) + "(): argument 'sbp' must hold SBPs, not " +
                             Py_TYPE(item.ptr())->tp_name);
      }
      sbp.push_back(item.cast<Sbp>());
    }
  } else {
    throw py::type_error(std::string(function) +
                         "(): argument 'sbp' must be an SBP, as oneflow_lite.sbp.split(0), or a "
                         "list of one per dim of the placement, not " +
                         Py_TYPE(o.ptr())->tp_name);
  }
  if (static_cast<int>(sbp.size()) != p.ndim()) {
    ThrowIfError(BadValue(function, "sbp", ToString(sbp),
                          absl::StrCat("one entry per dim of the placement, ", p.ndim())));
  }
  return sbp;
}

const Tensor& AnyTensor(const py::handle& o) {
  if (!IsTensor(o.ptr())) throw py::type_error("a tensor is wanted");
  return Unwrap(o.ptr());
}
py::object WrappedOrThrow(Tensor t) { return OwnedOrThrow(Wrap(std::move(t))); }

py::object ToGlobal(const py::handle& self, const py::object& placement, const py::object& sbp,
                    const py::object& grad_sbp) {
  constexpr char kName[] = "to_global";
  const Tensor x = AnyTensor(self);
  const GlobalSpec* g = GlobalOf(x);
  if (placement.is_none() && !g) {
    throw py::type_error("to_global(): a local tensor needs a placement");
  }
  if (!placement.is_none() && !py::isinstance<PlacementObject>(placement)) {
    throw py::type_error(
        std::string("to_global(): argument 'placement' must be a placement, not ") +
        Py_TYPE(placement.ptr())->tp_name);
  }
  PlacementRef p = placement.is_none() ? g->placement : placement.cast<PlacementObject>().value;
  if (sbp.is_none() && !g) throw py::type_error("to_global(): a local tensor needs an sbp");
  const NdSbp want = sbp.is_none() ? g->sbp : ReadSbp(kName, sbp, *p);
  std::optional<NdSbp> back;
  if (!grad_sbp.is_none()) back = ReadSbp(kName, grad_sbp, g ? *g->placement : *p);
  StatusOr<Tensor> y = Tensor();
  {
    const py::gil_scoped_release release;
    y = functional::ToGlobal(x, p, want, std::move(back));
  }
  return WrappedOrThrow(ValueOrThrow(std::move(y)));
}

py::object ToLocal(const py::handle& self, const py::object& grad_sbp) {
  const Tensor& x = AnyTensor(self);
  std::optional<NdSbp> back;
  if (const GlobalSpec* g = GlobalOf(x); g && !grad_sbp.is_none()) {
    back = ReadSbp("to_local", grad_sbp, *g->placement);
  }
  return WrappedOrThrow(ValueOrThrow(functional::ToLocal(x, std::move(back))));
}

const GlobalSpec& SpecOf(const py::handle& self, const char* what) {
  const GlobalSpec* g = GlobalOf(AnyTensor(self));
  if (!g) {
    ThrowIfError(Error(ErrorKind::kRuntime, what, ": ", Describe(AnyTensor(self)),
                       " is a local tensor, which has none; to_global() makes it global"));
  }
  return *g;
}

// with _GlobalScope(placement): what is made there of no tensors is global.
class ScopeObject {
 public:
  explicit ScopeObject(const PlacementObject& p) : placement_(p.value) {}
  void Enter() { scope_.emplace(placement_, NdSbp(placement_->ndim(), Sbp::Broadcast())); }
  void Exit(const py::args&) { scope_.reset(); }

 private:
  PlacementRef placement_;
  std::optional<GlobalScope> scope_;
};

void AddPlacement(py::module_& m) {
  py::class_<PlacementObject> placement(
      m, "placement",
      "placement(type, ranks)\n\nThe ranks, in a list or in a grid of two dims, that hold a tensor "
      "together, each on a device of this type.");
  placement.attr("__module__") = "oneflow_lite";
  placement.def(py::init(&MakePlacement), py::arg("type"), py::arg("ranks"))
      .def_property_readonly(
          "type", [](const PlacementObject& p) { return Name(p.value->type()); },
          "\"cpu\" or \"cuda\".")
      .def_property_readonly("ranks", &RanksOf, "As they were given, as lists.")
      .def_property_readonly(
          "shape", [](const PlacementObject& p) { return py::tuple(py::cast(p.value->grid())); },
          "The sizes of the grid.")
      .def("__eq__",
           [](const PlacementObject& p, const py::object& o) {
             return py::isinstance<PlacementObject>(o) &&
                    o.cast<PlacementObject>().value == p.value;
           })
      .def("__hash__", [](const PlacementObject& p) { return std::hash<PlacementRef>()(p.value); })
      .def("__reduce__",
           [placement](const PlacementObject& p) {
             return py::make_tuple(placement, py::make_tuple(Name(p.value->type()), RanksOf(p)));
           })
      .def("__repr__",
           [](const PlacementObject& p) { return "oneflow_lite." + p.value->ToString(); });
}

void AddSbp(py::module_& m) {
  py::class_<Sbp> sbp(m, "Sbp", "How a tensor lies along one dim of a placement.");
  sbp.attr("__module__") = "oneflow_lite.sbp";
  sbp.def_property_readonly(
         "axis",
         [](const Sbp& s) -> std::optional<int> {
           if (s.kind != Sbp::Kind::kSplit) return {};
           return s.axis;
         },
         "The dim that is split, or None.")
      .def("__eq__",
           [](const Sbp& s, const py::object& o) {
             return py::isinstance<Sbp>(o) && o.cast<Sbp>() == s;
           })
      .def("__hash__", [](const Sbp& s) { return static_cast<int>(s.kind) * 131 + s.axis; })
      .def("__str__", &Sbp::ToString)
      .def("__repr__", &TextOf)
      .def("__reduce__", [](const Sbp& s) {
        const py::object maker = py::module_::import("oneflow_lite._oneflow_lite").attr("sbp_of");
        return py::make_tuple(maker, py::make_tuple(static_cast<int>(s.kind), s.axis));
      });
  m.def(
      "sbp_of",
      [](int kind, int axis) {
        if (kind < 0 || kind > 2) throw py::value_error("sbp_of(): no such kind");
        return Sbp{static_cast<Sbp::Kind>(kind), axis};
      },
      py::arg("kind"), py::arg("axis"), "0: broadcast, 1: split along the axis, 2: partial sum.");
}

// The global tensor of which `local` is this rank's shard, in its memory, without asking the others
// whether theirs go with it.
py::object TensorOfShard(const py::handle& local, const Dims& shape, const PlacementObject& place,
                         const py::object& sbp) {
  constexpr char kName[] = "_tensor_of_shard";
  const Tensor& shard = AnyTensor(local);
  const Placement& p = *place.value;
  const Shape whole(shape);
  NdSbp want = ReadSbp(kName, sbp, p);
  ThrowIfError(CheckSbp(kName, p, whole, &want));
  if (p.Here().empty() || GlobalOf(shard)) {
    throw py::value_error(
        "_tensor_of_shard(): a local tensor of a rank of the placement is needed");
  }
  const Shape part = ShardOf(whole, p, want, p.Here());
  if (shard.shape() != part || shard.device() != p.device()) {
    throw py::value_error(absl::StrCat("_tensor_of_shard(): the shard has shape ",
                                       shard.shape().ToString(), " on ", shard.device().ToString(),
                                       ", but must have ", part.ToString(), " on ",
                                       p.device().ToString()));
  }
  return WrappedOrThrow(MakeGlobal(whole, shard.dtype(), {place.value, want, shard}));
}

// A tensor that is the same on every rank, as a global one that is whole on each; nobody is asked.
py::object Everywhere(const py::handle& same, const PlacementObject& place) {
  const Placement& p = *place.value;
  const Tensor& t = AnyTensor(same);
  if (GlobalOf(t)) throw py::value_error("_everywhere(): a local tensor is needed");
  Tensor shard;
  if (!p.Here().empty()) {
    shard = ValueOrThrow(functional::To(t.Detach(), p.device(), {}, /*copy=*/false));
  }
  return WrappedOrThrow(
      MakeGlobal(t.shape(), t.dtype(),
                 {place.value, NdSbp(p.ndim(), Sbp::Broadcast()), std::move(shard), false}));
}

// Where the shard of a rank, by its place in the list, lies in the whole: begin and end by dim.
std::vector<std::pair<int64_t, int64_t>> BoxOfShard(const Dims& shape, const PlacementObject& place,
                                                    const py::object& sbp, int position) {
  constexpr char kName[] = "_box_of_shard";
  const Placement& p = *place.value;
  const Shape whole(shape);
  NdSbp want = ReadSbp(kName, sbp, p);
  ThrowIfError(CheckSbp(kName, p, whole, &want));
  if (position < 0 || position >= p.size()) throw py::index_error("_box_of_shard(): position");
  const GridPlace at = p.PlaceOf(position);
  const Shape part = ShardOf(whole, p, want, at);
  std::vector<std::pair<int64_t, int64_t>> box;
  for (int axis = 0; axis < whole.ndim(); ++axis) {
    const int64_t begin = ShardStart(whole, p, want, at, axis);
    box.emplace_back(begin, begin + part[axis]);
  }
  return box;
}

void AddScope(py::module_& m) {
  const auto of_shard = [](const py::object& local, const std::vector<int64_t>& shape,
                           const PlacementObject& p, const py::object& sbp) {
    return TensorOfShard(local, Dims(shape.begin(), shape.end()), p, sbp);
  };
  const auto box_of = [](const std::vector<int64_t>& shape, const PlacementObject& p,
                         const py::object& sbp, int position) {
    return BoxOfShard(Dims(shape.begin(), shape.end()), p, sbp, position);
  };
  m.def("_tensor_of_shard", of_shard, py::arg("local"), py::arg("shape"), py::arg("placement"),
        py::arg("sbp"));
  m.def(
      "_is_out_of_date",
      [](const py::handle& t) {
        return GlobalOf(AnyTensor(t)) && !CheckFresh("", AnyTensor(t)).ok();
      },
      py::arg("tensor"), "Whether it is a view that was cut before its global tensor changed.");
  m.def(
      "_takes_part", [](const py::handle& t) { return TakesPart(AnyTensor(t)); }, py::arg("tensor"),
      "Whether this rank holds elements of it, as it does of a local tensor.");
  m.def("_everywhere", &Everywhere, py::arg("same"), py::arg("placement"));
  m.def("_box_of_shard", box_of, py::arg("shape"), py::arg("placement"), py::arg("sbp"),
        py::arg("position"));
  py::class_<ScopeObject>(m, "_GlobalScope")
      .def(py::init<const PlacementObject&>(), py::arg("placement"))
      .def("__enter__", &ScopeObject::Enter)
      .def("__exit__", &ScopeObject::Exit);
}

}  // namespace

PyObject* WrapPlacement(const PlacementRef& placement) {
  return py::cast(PlacementObject{placement}).release().ptr();
}

bool ReadPlaced(const char* function, PyObject* placement, PyObject* sbp, PlacedAt* out) {
  try {
    if (!py::isinstance<PlacementObject>(placement)) {
      throw py::type_error(std::string(function) + "(): argument 'placement' must be a placement");
    }
    if (!sbp) throw py::type_error(std::string(function) + "(): a placement needs an sbp");
    out->placement = py::handle(placement).cast<PlacementObject>().value;
    out->sbp = ReadSbp(function, sbp, *out->placement);
    return true;
  } catch (...) {
    RaiseCaught();
    return false;
  }
}

void AddGlobal(py::module_& m) {
  AddPlacement(m);
  AddSbp(m);
  AddScope(m);
  const py::object tensor = m.attr("Tensor");
  const auto property = [&](const char* name, auto&& get, const char* doc) {
    const py::object type =
        py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(&PyProperty_Type));
    tensor.attr(name) = type(py::cpp_function(get), py::none(), py::none(), doc);
  };
  tensor.attr("to_global") = py::cpp_function(
      &ToGlobal, py::name("to_global"), py::is_method(tensor), py::arg("placement") = py::none(),
      py::arg("sbp") = py::none(), py::arg("grad_sbp") = py::none(),
      "Of a local tensor the global one of which it is this rank's shard; of a global one the same "
      "elsewhere.\nAll ranks call it. The gradient goes back by grad_sbp.");
  tensor.attr("to_local") = py::cpp_function(
      &ToLocal, py::name("to_local"), py::is_method(tensor), py::arg("grad_sbp") = py::none(),
      "This rank's shard of a global tensor, in its memory.");
  property(
      "is_global", [](const py::handle& self) { return GlobalOf(AnyTensor(self)) != nullptr; },
      "Whether it lies on a placement.");
  property(
      "placement",
      [](const py::handle& self) { return PlacementObject{SpecOf(self, "placement").placement}; },
      "The ranks on which a global tensor lies.");
  property(
      "sbp",
      [](const py::handle& self) {
        py::list list;
        for (const Sbp& s : SpecOf(self, "sbp").sbp) list.append(s);
        return py::tuple(list);
      },
      "How a global tensor is spread: an SBP per dim of its placement.");
}

}  // namespace oneflow_lite::python
