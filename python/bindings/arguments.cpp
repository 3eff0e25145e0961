// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/arguments.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/container/fixed_array.h"

namespace oneflow_lite::python {
namespace {

// NumPy's bool is neither a bool nor an index; its name is all that tells it from a float.
bool IsNumpyBool(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  return std::strncmp(name, "numpy.bool", 10) == 0 && (name[10] == 0 || name[10] == '_');
}

// Complex numbers of NumPy convert too, but lose a part.
bool HasFloat(PyObject* o) {
  const PyNumberMethods* n = Py_TYPE(o)->tp_as_number;
  return n && n->nb_float && !PyComplex_Check(o) &&
         std::strncmp(Py_TYPE(o)->tp_name, "numpy.complex", 13) != 0;
}

Match IntOf(PyObject* index, int64_t* out) {
  int overflow = 0;
  *out = PyLong_AsLongLongAndOverflow(index, &overflow);
  if (overflow) {
    PyErr_SetString(PyExc_OverflowError, "an integer argument does not fit in 64 bits");
    return Match::kError;
  }
  return *out == -1 && PyErr_Occurred() ? Match::kError : Match::kYes;
}

// A Python int, be it beyond int64.
Match IntegerOf(PyObject* index, Scalar* out) {
  int overflow = 0;
  const int64_t i = PyLong_AsLongLongAndOverflow(index, &overflow);
  if (i == -1 && PyErr_Occurred()) return Match::kError;
  if (!overflow) {
    *out = Scalar(i);
    return Match::kYes;
  }
  double nearest = PyLong_AsDouble(index);
  if (nearest == -1.0 && PyErr_Occurred()) {
    PyErr_Clear();
    nearest = overflow * std::numeric_limits<double>::infinity();
  }
  *out = Scalar::LargeInt(nearest);
  return Match::kYes;
}

Match AsDouble(PyObject* o, double* out) {
  if (PyFloat_CheckExact(o)) {
    *out = PyFloat_AS_DOUBLE(o);
    return Match::kYes;
  }
  if (!HasFloat(o) || PyUnicode_Check(o) || PyBytes_Check(o)) return Match::kNo;
  *out = PyFloat_AsDouble(o);
  return *out == -1.0 && PyErr_Occurred() ? Match::kError : Match::kYes;
}

// Says of which argument an OverflowError is that has been raised.
void NameTooLarge(const char* name, const ArgSchema& arg) {
  if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return;
  PyErr_Format(PyExc_OverflowError, "%s(): argument '%s' is a number too large for 64 bits", name,
               arg.name.c_str());
}

// Whether a tensor was read as a number or a list, and said that it is none.
bool IsRefusal(PyObject* o) {
  return IsTensor(o) && (PyErr_ExceptionMatches(PyExc_TypeError) || Unwrap(o).numel() != 1);
}

const char* Expected(const ArgSchema& arg) {
  switch (arg.type) {
    case ArgType::kTensor:
      return "Tensor";
    case ArgType::kTensorList:
      return "a list or tuple of Tensors";
    case ArgType::kInt:
      return "int";
    case ArgType::kInts:
      return "int or a tuple of ints";
    case ArgType::kFloat:
      return "float";
    case ArgType::kBool:
      return "bool";
    case ArgType::kScalar:
      return "a number";
    case ArgType::kOperand:
      return "Tensor or a number";
    case ArgType::kDType:
      return "oneflow_lite.dtype";
    case ArgType::kDevice:
      return "oneflow_lite.device or str";
    case ArgType::kString:
      return "str";
    case ArgType::kGenerator:
      return "oneflow_lite.Generator";
  }
  return "";
}

Match ReadSequence(const char* name, const ArgSchema& arg, PyObject* o, Value* out) {
  int64_t single;
  if (Items::AreIn(o)) return ReadInts(name, arg, Items(o), out) ? Match::kYes : Match::kError;
  // Before the check for a sequence: a 0-dim tensor is both.
  if (const Match m = AsInt(o, &single); m != Match::kNo) {
    if (m == Match::kYes) out->emplace<Dims>(1, single);
    return m;
  }
  if (!PySequence_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o)) return Match::kNo;
  const PyRef list = OwnList(name, arg.name.c_str(), o);
  if (!list) return Match::kError;
  return ReadSequence(name, arg, list.get(), out);
}

// A number, or the value of a 0-dim tensor.
Match ReadScalar(PyObject* o, Value* out) {
  Scalar s;
  Match m = AsScalar(o, &s);
  if (m == Match::kNo && IsTensor(o) && Unwrap(o).ndim() == 0) {
    PyRef item(PyObject_CallMethod(o, "item", nullptr));
    m = item ? AsScalar(item.get(), &s) : Match::kError;
  }
  if (m == Match::kYes) out->emplace<Scalar>(s);
  return m;
}

template <class T, class F>
Match Read(F as, PyObject* o, Value* out) {
  T v{};
  const Match m = as(o, &v);
  if (m == Match::kYes) out->emplace<T>(std::move(v));
  return m;
}

Match ReadBool(PyObject* o, Value* out) {
  if (!PyBool_Check(o) && !IsNumpyBool(o)) return Match::kNo;
  const int truth = PyObject_IsTrue(o);
  out->emplace<bool>(truth == 1);
  return truth < 0 ? Match::kError : Match::kYes;
}

Match ReadString(const char* name, const ArgSchema& arg, PyObject* o, Value* out) {
  if (!PyUnicode_Check(o)) return Match::kNo;
  Py_ssize_t n;
  const char* text = PyUnicode_AsUTF8AndSize(o, &n);
  if (text) {
    out->emplace<std::string>(text, n);
    return Match::kYes;
  }
  if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
    PyErr_Format(PyExc_ValueError, "%s(): argument '%s' has half of a surrogate pair: %A", name,
                 arg.name.c_str(), o);
  }
  return Match::kError;
}

Match ReadSlow(const char* name, const ArgSchema& arg, PyObject* o, Value* out) {
  const auto yes = [](bool matched) { return matched ? Match::kYes : Match::kNo; };
  if (arg.tensor_elsewhere && IsTensor(o)) return Match::kNo;
  switch (arg.type) {
    case ArgType::kTensor:
      return Match::kNo;
    case ArgType::kTensorList:
      if (!Items::AreIn(o)) return Match::kNo;
      return ReadTensors(name, arg, Items(o), out) ? Match::kYes : Match::kError;
    case ArgType::kInt:
      return Read<int64_t>(AsInt, o, out);
    case ArgType::kInts:
      return ReadSequence(name, arg, o, out);
    case ArgType::kFloat:
      return Read<double>(AsDouble, o, out);
    case ArgType::kBool:
      return ReadBool(o, out);
    case ArgType::kScalar:
      return ReadScalar(o, out);
    case ArgType::kOperand:
      return Read<Scalar>(AsScalar, o, out);
    case ArgType::kDType:
      return Read<DType>([&](PyObject* p, DType* t) { return yes(AsDType(p, t)); }, o, out);
    case ArgType::kDevice:
      return Read<Device>(AsDevice, o, out);
    case ArgType::kString:
      return ReadString(name, arg, o, out);
    case ArgType::kGenerator:
      return Read<Ref<Generator>>(
          [&](PyObject* p, Ref<Generator>* g) { return yes(AsGenerator(p, g)); }, o, out);
  }
  return Match::kNo;
}

}  // namespace

Match AsScalar(PyObject* o, Scalar* out) {
  if (PyFloat_Check(o)) {
    *out = Scalar(PyFloat_AS_DOUBLE(o));
    return Match::kYes;
  }
  if (PyBool_Check(o) || IsNumpyBool(o)) {
    const int truth = PyObject_IsTrue(o);
    *out = Scalar(truth == 1);
    return truth < 0 ? Match::kError : Match::kYes;
  }
  if (PyLong_Check(o)) return IntegerOf(o, out);
  // NumPy's numbers. Tensors and arrays are no scalars, though they convert.
  if (IsTensor(o) || !HasFloat(o) || PySequence_Check(o)) return Match::kNo;
  if (PyIndex_Check(o)) {
    PyRef index(PyNumber_Index(o));
    return index ? IntegerOf(index.get(), out) : Match::kError;
  }
  double d;
  const Match m = AsDouble(o, &d);
  *out = Scalar(d);
  return m;
}

Match AsInt(PyObject* o, int64_t* out) {
  if (PyLong_CheckExact(o)) return IntOf(o, out);
  if (PyBool_Check(o) || !PyIndex_Check(o)) return Match::kNo;
  PyRef index(PyNumber_Index(o));
  if (!index) {
    // A tensor or an array has __index__ and refuses it: then it is no int.
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return Match::kError;
    PyErr_Clear();
    return Match::kNo;
  }
  return IntOf(index.get(), out);
}

bool ReadArgument(const char* name, const ArgSchema& arg, PyObject* o, Value* out) {
  if (IsTensor(o) && (arg.type == ArgType::kTensor || arg.type == ArgType::kOperand)) {
    out->emplace<Tensor>(Unwrap(o));
    return true;
  }
  if (o == Py_None && arg.optional) {
    out->emplace<std::monostate>();
    return true;
  }
  Match m = ReadSlow(name, arg, o, out);
  if (m == Match::kError && IsRefusal(o)) {
    PyErr_Clear();
    m = Match::kNo;
  }
  if (m == Match::kError) NameTooLarge(name, arg);
  if (m == Match::kNo) {
    PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s%s, not %s", name,
                 arg.name.c_str(), Expected(arg), arg.optional ? " or None" : "",
                 o == Py_None ? "None" : Py_TYPE(o)->tp_name);
  }
  return m == Match::kYes;
}

bool ReadFlag(const char* name, const char* argument, PyObject* o, bool* out) {
  if (!o) return true;
  const ArgSchema arg{argument, ArgType::kBool};
  Value v;
  if (!ReadArgument(name, arg, o, &v)) return false;
  *out = std::get<bool>(v);
  return true;
}

bool ReadSwitch(const char* name, const char* argument, PyObject* o, bool* out) {
  if (!o || !PyLong_CheckExact(o)) return ReadFlag(name, argument, o, out);
  *out = PyObject_IsTrue(o) == 1;
  return true;
}

bool ReadInts(const char* name, const ArgSchema& arg, const Items& items, Value* out) {
  Dims dims;
  for (Py_ssize_t i = 0; i < items.size(); ++i) {
    int64_t v;
    if (items.ReadInt(i, &v)) {
      dims.push_back(v);
      continue;
    }
    const PyRef item = items[i];
    if (!item) return RaiseChanged(name, arg.name.c_str());
    switch (AsInt(item.get(), &v)) {
      case Match::kYes:
        dims.push_back(v);
        break;
      case Match::kNo:
        PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be ints, but item %zd is %s", name,
                     arg.name.c_str(), i, Py_TYPE(item.get())->tp_name);
        return false;
      case Match::kError:
        NameTooLarge(name, arg);
        return false;
    }
  }
  out->emplace<Dims>(std::move(dims));
  return true;
}

bool ReadTensors(const char* name, const ArgSchema& arg, const Items& items, Value* out) {
  TensorList list;
  list.reserve(static_cast<size_t>(items.size()));
  for (Py_ssize_t i = 0; i < items.size(); ++i) {
    const PyRef item = items[i];
    if (!item) return RaiseChanged(name, arg.name.c_str());
    if (!IsTensor(item.get())) {
      PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s, but item %zd is %s", name,
                   arg.name.c_str(), Expected(arg), i, Py_TYPE(item.get())->tp_name);
      return false;
    }
    list.push_back(Unwrap(item.get()));
  }
  out->emplace<TensorList>(std::move(list));
  return true;
}

PyObject* WrapDims(absl::Span<const int64_t> span) {
  // Making a tuple may collect garbage, and a finalizer may give the tensor another shape.
  const absl::FixedArray<int64_t, 8> dims(span.begin(), span.end());
  PyRef tuple(PyTuple_New(static_cast<Py_ssize_t>(dims.size())));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < dims.size(); ++i) {
    PyObject* item = PyLong_FromLongLong(dims[i]);
    if (!item) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple.Give();
}

PyObject* WrapTensors(TensorList&& list) {
  PyRef tuple(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < list.size(); ++i) {
    PyObject* item = Wrap(std::move(list[i]));
    if (!item) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple.Give();
}

static PyObject* WrapScalar(const Scalar& s) {
  if (s.kind() == Scalar::Kind::kBool) return PyBool_FromLong(s.to<bool>());
  return s.is_float() ? PyFloat_FromDouble(s.to<double>()) : PyLong_FromLongLong(s.to<int64_t>());
}

PyObject* WrapValue(Value&& v) {
  if (Tensor* t = std::get_if<Tensor>(&v)) return Wrap(std::move(*t));
  if (TensorList* list = std::get_if<TensorList>(&v)) return WrapTensors(std::move(*list));
  if (bool* b = std::get_if<bool>(&v)) return PyBool_FromLong(*b);
  if (int64_t* i = std::get_if<int64_t>(&v)) return PyLong_FromLongLong(*i);
  if (double* d = std::get_if<double>(&v)) return PyFloat_FromDouble(*d);
  if (Scalar* s = std::get_if<Scalar>(&v)) return WrapScalar(*s);
  if (DType* t = std::get_if<DType>(&v)) return WrapDType(*t);
  if (Device* d = std::get_if<Device>(&v)) return WrapDevice(*d);
  if (Dims* dims = std::get_if<Dims>(&v)) return WrapDims(*dims);
  if (std::string* s = std::get_if<std::string>(&v)) {
    return PyUnicode_FromStringAndSize(s->data(), static_cast<Py_ssize_t>(s->size()));
  }
  Py_RETURN_NONE;
}

bool AnyOnGpu(absl::Span<const Value> args) {
  const auto on_gpu = [](const Tensor& t) {
    return t.defined() && t.device().type == DeviceType::kCUDA;
  };
  return std::any_of(args.begin(), args.end(), [&](const Value& v) {
    if (const Tensor* t = std::get_if<Tensor>(&v)) return on_gpu(*t);
    const TensorList* list = std::get_if<TensorList>(&v);
    return list && std::any_of(list->begin(), list->end(), on_gpu);
  });
}

bool IsLargeWork(absl::Span<const Value> args) {
  for (const Value& v : args) {
    if (const Tensor* t = std::get_if<Tensor>(&v)) {
      if (t->defined() && t->numel() >= kLargeWork) return true;
    } else if (const TensorList* list = std::get_if<TensorList>(&v)) {
      int64_t n = 0;
      for (const Tensor& t : *list) n += t.defined() ? t.numel() : 0;
      if (n >= kLargeWork) return true;
    } else if (const Dims* dims = std::get_if<Dims>(&v)) {
      double n = 1;
      for (int64_t d : *dims) n *= static_cast<double>(d);
      if (n >= kLargeWork) return true;
    }
  }
  return false;
}

}  // namespace oneflow_lite::python
