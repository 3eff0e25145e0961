// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/dtype_device.h"

#include <pybind11/stl.h>

#include "oneflow_lite/core/device_backend.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

struct DTypeObject {
  DType value;
};
PyObject* dtype_objects[kNumDTypes];
PyObject* generator_type;
PyObject* device_type;

// Devices that were seen, so that x.device makes no new object.
constexpr int kMaxCachedIndex = 16;
PyObject* device_objects[kNumDeviceTypes][kMaxCachedIndex];

Device DeviceFromObject(const py::object& o, std::optional<int> index) {
  Device d;
  const Match m = AsDevice(o.ptr(), &d);
  if (m == Match::kNo) {
    throw py::type_error(std::string("device(): argument 'type' must be str, int or device, not ") +
                         Py_TYPE(o.ptr())->tp_name);
  }
  if (m == Match::kError) throw py::error_already_set();
  if (!index) return d;
  // Not "cuda:1" with an index beside it, nor an index for what has none.
  if (!PyUnicode_Check(o.ptr()) || std::string(py::str(o)) != "cuda") {
    throw py::value_error("device(): an index goes with \"cuda\" alone");
  }
  return ValueOrThrow(Device::Parse("cuda:" + std::to_string(*index)));
}

void AddDTypes(py::module_& m) {
  py::class_<DTypeObject> type(m, "dtype", "The type of a tensor's elements, such as float32.");
  type.attr("__module__") = "oneflow_lite";
  type.def_property_readonly("name", [](const DTypeObject& t) { return Name(t.value); })
      .def_property_readonly("itemsize", [](const DTypeObject& t) { return SizeOf(t.value); })
      .def_property_readonly("is_floating_point",
                             [](const DTypeObject& t) { return IsFloating(t.value); })
      .def_property_readonly("is_complex", [](const DTypeObject&) { return false; })
      .def_property_readonly(
          "is_signed",
          [](const DTypeObject& t) { return t.value != DType::kBool && t.value != DType::kUInt8; })
      .def("__repr__",
           [](const DTypeObject& t) { return std::string("oneflow_lite.") + Name(t.value); })
      // A name: pickle and copy find the one object of that dtype.
      .def("__reduce__", [](const DTypeObject& t) { return Name(t.value); });
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType t = static_cast<DType>(i);
    py::object o = py::cast(new DTypeObject{t}, py::return_value_policy::take_ownership);
    m.attr(Name(t)) = o;
    dtype_objects[i] = o.release().ptr();
  }
}

void AddDevices(py::module_& m) {
  py::class_<Device> type(m, "device",
                          "device(type, index=None)\n\nWhere a tensor is: \"cpu\", \"cuda\", "
                          "\"cuda:1\", \"meta\".");
  type.attr("__module__") = "oneflow_lite";
  device_type = type.ptr();
  type.def(py::init(&DeviceFromObject), py::arg("type"), py::arg("index") = py::none())
      .def_property_readonly("type", [](const Device& d) { return Name(d.type); })
      .def_property_readonly("index",
                             [](const Device& d) -> std::optional<int> {
                               if (d.type != DeviceType::kCUDA) return {};
                               return d.index;
                             })
      .def("__str__", &Device::ToString)
      .def("__repr__",
           [](const Device& d) {
             std::string text = std::string("device(type='") + Name(d.type) + "'";
             if (d.type == DeviceType::kCUDA) text += ", index=" + std::to_string(d.index);
             return text + ")";
           })
      .def(
          "__eq__", [](const Device& a, const Device& b) { return a == b; }, py::is_operator())
      .def(
          "__ne__", [](const Device& a, const Device& b) { return a != b; }, py::is_operator())
      .def("__hash__", [](const Device& d) { return (static_cast<int>(d.type) << 16) + d.index; })
      .def("__reduce__", [](const Device& d) {
        return py::make_tuple(py::reinterpret_borrow<py::object>(device_type),
                              py::make_tuple(d.ToString()));
      });
}

// Any Python int of 64 bits; negative ones count from the top, as in PyTorch.
uint64_t SeedFrom(const py::object& given) {
  const py::object seed = py::reinterpret_steal<py::object>(PyNumber_Index(given.ptr()));
  if (!seed) {
    PyErr_Clear();
    throw py::type_error(std::string("manual_seed(): argument 'seed' must be int, not ") +
                         Py_TYPE(given.ptr())->tp_name);
  }
  int overflow = 0;
  const long long s = PyLong_AsLongLongAndOverflow(seed.ptr(), &overflow);
  if (overflow == 0) return static_cast<uint64_t>(s);
  const uint64_t u = overflow > 0 ? PyLong_AsUnsignedLongLong(seed.ptr()) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    throw py::value_error("manual_seed(): the seed does not fit in 64 bits");
  }
  return u;
}

// One of Python's, which knows the device that it was named for.
class NamedGenerator final : public Generator {
 public:
  explicit NamedGenerator(Device device) : device_(device) {}
  Device device() const { return device_; }

 private:
  Device device_;
};

// The device that a generator was named for, or whose default it is.
Device DeviceOf(const Generator& g) {
  if (const auto* named = dynamic_cast<const NamedGenerator*>(&g)) return named->device();
  if (DefaultGenerator(Device{}).get() == &g) return Device{};
  const auto cuda = GetBackend(DeviceType::kCUDA);
  for (int i = 0; cuda.ok() && i < (*cuda)->DeviceCount(); ++i) {
    const Device device{DeviceType::kCUDA, static_cast<int16_t>(i)};
    if (DefaultGenerator(device).get() == &g) return device;
  }
  return Device{};
}

void AddGenerators(py::module_& m) {
  py::class_<Generator, Ref<Generator>> type(
      m, "Generator",
      "Generator(device=\"cpu\")\n\nA source of random numbers: the same ones on every device from "
      "one seed. So it serves\nevery device, whichever is named.");
  type.attr("__module__") = "oneflow_lite";
  generator_type = type.ptr();
  type.def(py::init([](const py::object& device) {
             return static_cast<Generator*>(new NamedGenerator(DeviceFromObject(device, {})));
           }),
           py::arg("device") = "cpu")
      .def(
          "manual_seed",
          [](py::object self, const py::object& seed) {
            self.cast<Generator&>().Seed(SeedFrom(seed));
            return self;
          },
          py::arg("seed"), "Starts the sequence of a seed; gives the generator.")
      .def(
          "initial_seed", [](const Generator& g) { return g.state().seed; }, "The seed.")
      .def(
          "_get_state",
          [](const Generator& g) {
            const Generator::State s = g.state();
            return py::make_tuple(s.seed, s.offset);
          },
          "Seed and place in its sequence, for _set_state.")
      .def(
          "_set_state",
          [](Generator& g, const std::pair<uint64_t, uint64_t>& s) {
            g.set_state({s.first, s.second});
          },
          py::arg("state"), "Goes to a place that _get_state gave.")
      .def_property_readonly("device", &DeviceOf,
                             "Whose default it is, or the one that it was named for.");
  m.def(
      "default_generator",
      [](const py::object& device) { return DefaultGenerator(DeviceFromObject(device, {})); },
      py::arg("device") = "cpu", "The generator that random functions use on a device.");
  m.def(
      "manual_seed",
      [](const py::object& seed) {
        ManualSeed(SeedFrom(seed));
        return DefaultGenerator(Device{});
      },
      py::arg("seed"), "Seeds the default generators of all devices; gives the CPU's.");
}

}  // namespace

PyObject* WrapDType(DType t) {
  PyObject* o = dtype_objects[static_cast<int>(t)];
  Py_INCREF(o);
  return o;
}

bool AsDType(PyObject* o, DType* out) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (o == dtype_objects[i]) return *out = static_cast<DType>(i), true;
  }
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return *out = DType::kFloat64, true;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return *out = DType::kInt64, true;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return *out = DType::kBool, true;
  return false;
}

PyObject* WrapDevice(Device d) {
  if (d.index < 0 || d.index >= kMaxCachedIndex) return py::cast(d).release().ptr();
  PyObject*& o = device_objects[static_cast<int>(d.type)][d.index];
  if (!o) o = py::cast(d).release().ptr();
  Py_XINCREF(o);
  return o;
}

Match AsDevice(PyObject* o, Device* out) {
  StatusOr<Device> d = Device{};
  if (reinterpret_cast<PyObject*>(Py_TYPE(o)) == device_type) {
    *out = py::cast<Device>(py::handle(o));
    return Match::kYes;
  }
  if (PyUnicode_Check(o)) {
    Py_ssize_t n;
    const char* text = PyUnicode_AsUTF8AndSize(o, &n);
    if (!text) return Match::kError;
    d = Device::Parse(absl::string_view(text, static_cast<size_t>(n)));
  } else {
    int64_t index;
    const Match m = AsInt(o, &index);
    if (m != Match::kYes) return m;
    d = Device::Parse(absl::StrCat("cuda:", index));
  }
  if (!d.ok()) return Raise(d.status()), Match::kError;
  *out = *d;
  return Match::kYes;
}

bool AsGenerator(PyObject* o, Ref<Generator>* out) {
  if (!PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(generator_type))) return false;
  *out = py::cast<Ref<Generator>>(py::handle(o));
  return true;
}

void AddDTypeAndDevice(py::module_& m) {
  AddDTypes(m);
  AddDevices(m);
  AddGenerators(m);
}

}  // namespace oneflow_lite::python
