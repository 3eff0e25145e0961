// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/creation.h"

#include "functional/copy.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"
#include "python/bindings/read.h"

namespace oneflow_lite::python {
namespace {

constexpr size_t kMaxDepth = 32;

// A number in a nested sequence, 0-dim tensors and arrays among them.
Match AsElement(PyObject* o, Scalar* out) {
  const Match m = AsScalar(o, out);
  if (m != Match::kNo) return m;
  const bool zero_dim = IsTensor(o) ? Unwrap(o).ndim() == 0 : IsArray(o) && PyObject_Size(o) < 0;
  if (!zero_dim) {
    PyErr_Clear();
    return Match::kNo;
  }
  PyErr_Clear();  // the array's TypeError about its length
  PyRef item(PyObject_CallMethod(o, "item", nullptr));
  return item ? AsScalar(item.get(), out) : Match::kError;
}

bool IsPlainNumber(PyObject* o) {
  return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o);
}

// The dtype that a part of a sequence brings; absent for Python's numbers and sequences.
std::optional<DType> DTypeOfData(PyObject* o) {
  if (PyList_CheckExact(o) || PyTuple_CheckExact(o) || o == Py_None) return {};
  return IsTensor(o) ? Unwrap(o).dtype() : DTypeOfNumpy(o);
}

// Reads nested sequences in two passes: what shape and kind of numbers, then the numbers.
class SequenceReader {
 public:
  bool Measure(PyObject* o) {
    Scalar s;
    switch (AsElement(o, &s)) {
      case Match::kYes:
        Count(o, s.kind());
        return CheckDepth("a number");
      case Match::kError:
        return false;
      default:
        return MeasureSequence(o);
    }
  }

  // Precondition: Measure gave true.
  bool Write(PyObject* o, size_t depth, DType dtype, char*& p) {
    if (depth == shape_.size()) return WriteElement(o, dtype, p);
    PyRef list = AsList(o);
    if (!list) return false;
    const Items items(list.get());
    if (items.size() != shape_[depth]) return RaiseChanged("tensor", "data");
    for (Py_ssize_t i = 0; i < items.size(); ++i) {
      const PyRef item = items[i];
      if (!item) return RaiseChanged("tensor", "data");
      if (!Write(item.get(), depth + 1, dtype, p)) return false;
    }
    return true;
  }

  const Dims& shape() const { return shape_; }
  // That to which all numbers are promoted; Python's count as float32, int64 and bool.
  DType dtype() const {
    if (plain_ < 0) return *typed_;
    const auto kind = static_cast<Scalar::Kind>(plain_);
    const DType plain = kind == Scalar::Kind::kBool    ? DType::kBool
                        : kind == Scalar::Kind::kFloat ? DType::kFloat32
                                                       : DType::kInt64;
    return typed_ ? PromoteTypes(plain, *typed_) : plain;
  }

 private:
  void Promote(DType t) { typed_ = typed_ ? PromoteTypes(*typed_, t) : t; }

  // Tensors, arrays and NumPy's numbers bring a dtype.
  void Count(PyObject* o, Scalar::Kind kind) {
    if (in_typed_) return;
    if (!IsPlainNumber(o)) {
      if (const auto t = DTypeOfData(o)) return Promote(*t);
    }
    plain_ = std::max(plain_, static_cast<int>(kind));
  }

  bool MeasureSequence(PyObject* o) {
    const bool outermost = !in_typed_;
    if (const auto t = outermost ? DTypeOfData(o) : std::nullopt) {
      Promote(*t);
      in_typed_ = true;
    }
    const bool measured = MeasureItems(o);
    if (outermost) in_typed_ = false;
    return measured;
  }

  bool MeasureItems(PyObject* o) {
    PyRef list = AsList(o);
    if (!list) return false;
    const Items items(list.get());
    const Py_ssize_t n = items.size();
    const size_t depth = place_.size();
    if (depth < shape_.size()) {
      if (shape_[depth] != n) return RaiseRagged("a sequence of length " + std::to_string(n));
    } else if (depth_known_ || depth == kMaxDepth) {
      return RaiseRagged("a sequence");
    } else {
      shape_.push_back(n);
    }
    if (n == 0) Count(Py_None, Scalar::Kind::kFloat);  // float32, as in PyTorch
    if (n == 0 && std::exchange(depth_known_, true)) {
      return depth + 1 == shape_.size() || RaiseRagged("an empty sequence");
    }
    for (Py_ssize_t i = 0; i < n; ++i) {
      place_.push_back(i);
      const PyRef item = items[i];
      if (!item) return RaiseChanged("tensor", "data");
      if (!Measure(item.get())) return false;
      place_.pop_back();
    }
    return true;
  }

  PyRef AsList(PyObject* o) {
    // One copy to the host instead of one per element; a meta tensor has no numbers to give.
    if (IsTensor(o)) {
      PyRef list(PyObject_CallMethod(o, "tolist", nullptr));  // a subclass may give anything
      PyRef items = list ? ListOf(list.get()) : PyRef();
      if (!items && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_SetString(PyExc_TypeError, "tensor(): tolist() gave no list");
      }
      return items;
    }
    if (PyUnicode_Check(o) || PyBytes_Check(o) || !PySequence_Check(o)) {
      const std::string at = place_.empty() ? "" : " at " + ToString(place_);
      PyErr_Format(PyExc_TypeError,
                   "tensor(): argument 'data' must be a number, a nested sequence of numbers, an "
                   "array or a tensor, but%s there is %s",
                   at.c_str(), Py_TYPE(o)->tp_name);
      return PyRef();
    }
    return ListOf(o);
  }

  static PyRef ListOf(PyObject* o) {
    const bool is_list = PyList_CheckExact(o) || PyTuple_CheckExact(o);
    return is_list ? PyRef::Borrow(o) : OwnList("tensor", "data", o);
  }

  // All numbers lie as deep as the first one.
  bool CheckDepth(const char* what) {
    if (!std::exchange(depth_known_, true)) return true;
    return place_.size() == shape_.size() || RaiseRagged(what);
  }

  bool RaiseRagged(const std::string& what) {
    const size_t depth = place_.size();
    const std::string expected = depth < shape_.size()
                                     ? "a sequence of length " + std::to_string(shape_[depth])
                                     : "a number";
    PyErr_Format(PyExc_ValueError, "tensor(): ragged sequences: at %s there is %s, expected %s",
                 ToString(place_).c_str(), what.c_str(), expected.c_str());
    return false;
  }

  bool WriteElement(PyObject* o, DType dtype, char*& p) {
    if (dtype == DType::kFloat32 && PyFloat_CheckExact(o)) {  // most elements
      *reinterpret_cast<float*>(p) = static_cast<float>(PyFloat_AS_DOUBLE(o));
      p += sizeof(float);
      return true;
    }
    Scalar s;
    const Match m = AsElement(o, &s);
    if (m == Match::kNo) PyErr_SetString(PyExc_TypeError, "tensor(): a number changed its type");
    if (m != Match::kYes) return false;
    const bool fits = VisitAll(dtype, [&]<class T>(Tag<T>) {
      if (s.fits<T>()) *reinterpret_cast<T*>(p) = s.to<T>();
      return s.fits<T>();
    });
    if (!fits) Raise(NumberOutOfRange("tensor", s, dtype));
    p += SizeOf(dtype);
    return fits;
  }

  Dims shape_, place_;
  bool depth_known_ = false;
  int plain_ = -1;              // the largest kind of Python's numbers; -1: there are none
  std::optional<DType> typed_;  // of what brings a dtype, promoted
  bool in_typed_ = false;       // within a tensor or an array, whose numbers do not count
};

Tensor FromSequence(PyObject* data, std::optional<DType> dtype) {
  SequenceReader reader;
  if (!reader.Measure(data)) return Tensor();
  auto t = Tensor::Empty(Shape(reader.shape()), dtype.value_or(reader.dtype()), Device{});
  if (!t.ok()) return Raise(t.status()), Tensor();
  char* p = static_cast<char*>(t->data());
  if (t->numel() > 0 && !reader.Write(data, 0, t->dtype(), p)) return Tensor();
  return *std::move(t);
}

// An array or what converts to one; a copy, so that read-only and reversed ones are fine.
Tensor FromArray(PyObject* data) {
  PyRef array =
      IsArray(data) ? PyRef::Borrow(data) : PyRef(PyObject_CallMethod(data, "__array__", nullptr));
  if (!array) return Tensor();
  if (!IsArray(array.get())) {
    PyErr_Format(PyExc_TypeError, "tensor(): __array__() of %s gave %s, not an array",
                 Py_TYPE(data)->tp_name, Py_TYPE(array.get())->tp_name);
    return Tensor();
  }
  PyRef copy(PyObject_CallMethod(array.get(), "copy", nullptr));
  return copy ? TensorFromNumpy("tensor", copy.get()) : Tensor();
}

// Undefined without an exception where `t` is and a protocol's failure leaves another way.
Tensor OrElse(Tensor t, bool other_way) {
  if (!t.defined() && other_way && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
  return t;
}

// What speaks a protocol of arrays: DLPack, NumPy's, the buffer protocol. Undefined without an
// exception: none, or one that gives what no tensor can be, while it is a number or a sequence too.
Tensor FromProtocol(PyObject* data) {
  if (PyType_Check(data) || PyUnicode_Check(data) || PyBytes_Check(data)) return Tensor();
  const bool converts = PyObject_HasAttrString(data, "__array__");
  const bool described = PyObject_HasAttrString(data, "__array_interface__") ||
                         PyObject_HasAttrString(data, "__array_struct__") ||
                         PyObject_CheckBuffer(data);
  const bool readable = PySequence_Check(data) || PyNumber_Check(data);
  if (HasDlpack(data)) {
    Tensor t = OrElse(TensorFromDlpack(data), converts || described || readable);
    if (t.defined() || PyErr_Occurred()) return t;
  }
  if (converts) return OrElse(FromArray(data), readable);
  if (!described) return Tensor();
  const PyRef numpy(PyImport_ImportModule("numpy"));
  const PyRef array(numpy ? PyObject_CallMethod(numpy.get(), "asarray", "O", data) : nullptr);
  return OrElse(array ? FromArray(array.get()) : Tensor(), readable);
}

PyObject* TensorFunction(PyObject*, PyObject* args, PyObject* kwargs) {
  return Protect([&]() -> PyObject* {
    static const char* keywords[] = {"data",          "dtype",      "device",
                                     "requires_grad", "pin_memory", nullptr};
    PyObject *data, *dtype = Py_None, *device = Py_None, *given = nullptr;
    PyObject* pins = nullptr;  // means nothing
    bool requires_grad = false;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOO:tensor", const_cast<char**>(keywords),
                                     &data, &dtype, &device, &given, &pins) ||
        !ReadFlag("tensor", "requires_grad", given, &requires_grad)) {
      return nullptr;
    }
    std::optional<DType> wanted;
    std::optional<Device> where;
    if (!ReadOptions("tensor", dtype, device, &wanted, &where)) return nullptr;
    Tensor result = TensorFromData(data, wanted, where);
    if (!result.defined()) return nullptr;
    if (requires_grad) {
      const Status s = autograd::SetRequiresGrad(result, true);
      if (!s.ok()) return Raise(Renamed("tensor", s));
    }
    return Wrap(std::move(result));
  });
}

}  // namespace

bool ReadOptions(const char* name, PyObject* dtype, PyObject* device,
                 std::optional<DType>* dtype_out, std::optional<Device>* device_out) {
  static const ArgSchema dtype_arg{.name = "dtype", .type = ArgType::kDType, .optional = true};
  static const ArgSchema device_arg{.name = "device", .type = ArgType::kDevice, .optional = true};
  Value t, d;
  if (!ReadArgument(name, dtype_arg, dtype, &t)) return false;
  if (!ReadArgument(name, device_arg, device, &d)) return false;
  if (const DType* wanted = std::get_if<DType>(&t)) *dtype_out = *wanted;
  if (const Device* where = std::get_if<Device>(&d)) *device_out = *where;
  return true;
}

Tensor TensorFromData(PyObject* data, std::optional<DType> dtype, std::optional<Device> device) {
  Tensor t;
  bool own = true;
  if (IsTensor(data)) {
    t = Unwrap(data).Detach();
    own = false;
  } else if (PyList_CheckExact(data) || PyTuple_CheckExact(data) || IsPlainNumber(data)) {
    t = FromSequence(data, dtype);
  } else if (IsArray(data)) {
    t = FromArray(data);
  } else if (t = FromProtocol(data); !t.defined() && !PyErr_Occurred()) {
    t = FromSequence(data, dtype);
  }
  if (!t.defined()) return t;
  auto moved = functional::To(t, device, dtype, !own);
  if (!moved.ok()) return Raise(moved.status()), Tensor();
  return *std::move(moved);
}

PyMethodDef creation_functions[] = {
    {"tensor", WithKeywords<TensorFunction>(), METH_VARARGS | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\n"
     "A tensor with a copy of data: a number, nested sequences, an array, a tensor, or whatever\n"
     "has __dlpack__, __array__, __array_interface__ or a buffer.\n\n"
     "Without a dtype it is that of the array or tensor. In a sequence, those of the tensors,\n"
     "arrays and numbers of NumPy's in it are promoted, where Python's numbers count as float32,\n"
     "int64 and bool."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
