// SPDX-License-Identifier: Apache-2.0
//
// x[i], x[1:, None, ..., 0] and their assignment, as views that autograd follows.
#include <optional>

#include "functional/compact.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/global.h"
#include "functional/index_rows.h"
#include "functional/ravel_multi_index.h"
#include "functional/select.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"
#include "python/bindings/creation.h"

namespace oneflow_lite::python {
namespace {

// What an item of an index says.
struct Place {
  enum class Kind { kInt, kSlice, kNone, kEllipsis } kind;
  int64_t start = 0;  // of an int, the index
  int64_t stop = 0, step = 1;
};
using Places = absl::InlinedVector<Place, 4>;

bool ReadPlace(PyObject* item, Places* places) {
  if (item == Py_None) {
    places->push_back({Place::Kind::kNone});
    return true;
  }
  if (item == Py_Ellipsis) {
    places->push_back({Place::Kind::kEllipsis});
    return true;
  }
  if (PySlice_Check(item)) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) return false;
    if (step < 0) {
      PyErr_SetString(PyExc_ValueError, "the step of a slice of a tensor must be positive");
      return false;
    }
    places->push_back({Place::Kind::kSlice, start, stop, step});
    return true;
  }
  int64_t index;
  const Match m = AsInt(item, &index);
  if (m == Match::kNo) {
    PyErr_Format(PyUnicode_Check(item) ? PyExc_TypeError : PyExc_IndexError,
                 "a tensor can be indexed with ints, slices, None, ..., bools, tensors, arrays, "
                 "lists and tuples of them, not with %s",
                 Py_TYPE(item)->tp_name);
  }
  if (m == Match::kYes) places->push_back({Place::Kind::kInt, index});
  return m == Match::kYes;
}

// All of an index is read before the tensor is looked at: __index__ may give it another shape.
bool ReadIndex(PyObject* index, Places* places) {
  if (!PyTuple_Check(index)) return ReadPlace(index, places);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); ++i) {
    if (!ReadPlace(TupleItem(index, i), places)) return false;
  }
  return true;
}

// Applies the places of an index one after the other.
class Indexing {
 public:
  Indexing(const char* op, const Tensor& t) : op_(op), view_(t) {}

  bool Apply(const Places& places) {
    int64_t given = 0, ellipses = 0;
    for (const Place& p : places) {
      ellipses += p.kind == Place::Kind::kEllipsis;
      given += p.kind == Place::Kind::kInt || p.kind == Place::Kind::kSlice;
    }
    if (ellipses > 1) {
      Raise(Error(ErrorKind::kIndex, op_, "(): an index can have only one ellipsis (...)"));
      return false;
    }
    const int64_t unnamed = view_.ndim() - given;
    if (unnamed < 0) {
      Raise(
          Error(ErrorKind::kIndex, op_, "(): too many indices: ", given, " for ", Describe(view_)));
      return false;
    }
    for (const Place& p : places) {
      if (p.kind == Place::Kind::kEllipsis) {
        dim_ += unnamed;
        source_dim_ += unnamed;
      } else if (!ApplyPlace(p)) {
        return false;
      }
    }
    return true;
  }

  const Tensor& view() const { return view_; }

 private:
  bool Set(StatusOr<Tensor> t) {
    if (!t.ok()) return Raise(t.status()), false;
    view_ = *std::move(t);
    return true;
  }

  bool ApplyPlace(const Place& p) {
    if (p.kind == Place::Kind::kNone) return Set(functional::Unsqueeze(view_, dim_++));
    return p.kind == Place::Kind::kInt ? ApplyInt(p.start) : ApplySlice(p);
  }

  bool ApplyInt(int64_t index) {
    const int64_t size = view_.shape()[static_cast<int>(dim_)];
    if (index < -size || index >= size) {
      Raise(IndexOutOfRange(op_, index, source_dim_, size));
      return false;
    }
    ++source_dim_;
    return Set(functional::Select(view_, dim_, index));
  }

  bool ApplySlice(const Place& p) {
    const int64_t size = view_.shape()[static_cast<int>(dim_)];
    Py_ssize_t start = p.start, stop = p.stop;
    PySlice_AdjustIndices(size, &start, &stop, p.step);
    ++source_dim_;
    const int64_t dim = dim_++;
    if (start == 0 && stop == size && p.step == 1) return true;
    return Set(functional::Slice(view_, dim, start, std::max(start, stop), p.step));
  }

  const char* op_;
  Tensor view_;
  int64_t dim_ = 0;         // of view_, that the next place speaks of
  int64_t source_dim_ = 0;  // the same as a dim of the indexed tensor, for messages
};

// Whether any library's protocol gives its elements; text is no array.
bool HoldsElements(PyObject* item) {
  for (const char* protocol : {"__array__", "__dlpack__", "__array_interface__"}) {
    if (PyObject_HasAttrString(item, protocol)) return true;
  }
  return PyObject_CheckBuffer(item) && !PyBytes_Check(item) && !PyByteArray_Check(item);
}
// Places as data (a tensor that is no number, a sequence, an array, a truth value) make a copy, not
// a view: oneflow_lite/_indexing.py composes it.
bool IsData(PyObject* item) {
  if (PyLong_CheckExact(item) || PySlice_Check(item) || item == Py_None || item == Py_Ellipsis) {
    return false;
  }
  if (PyBool_Check(item) || PyList_Check(item) || PyTuple_Check(item) || PyRange_Check(item)) {
    return true;
  }
  if (IsTensor(item)) {
    const DType dtype = Unwrap(item).dtype();
    return Unwrap(item).ndim() > 0 || dtype == DType::kBool || dtype == DType::kUInt8;  // masks
  }
  if (!HoldsElements(item)) return false;
  // NumPy's bool is the scalar that counts as no integer.
  return PySequence_Check(item) || !PyIndex_Check(item);
}
bool HasData(PyObject* index) {
  if (!PyTuple_Check(index)) return IsData(index);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); ++i) {
    if (IsData(TupleItem(index, i))) return true;
  }
  return false;
}

PyObject* CallIndexing(const char* function, PyObject* self, PyObject* index, PyObject* value) {
  PyRef module(PyImport_ImportModule("oneflow_lite._indexing"));
  PyRef callable(module ? PyObject_GetAttrString(module.get(), function) : nullptr);
  return callable ? PyObject_CallFunctionObjArgs(callable.get(), self, index, value, nullptr)
                  : nullptr;
}

// Whether an index is an int of Python's own, within the first dim: the commonest one by far.
bool IsPlainInt(const Tensor& t, PyObject* index, int64_t* out) {
  if (!PyLong_CheckExact(index) || t.ndim() == 0) return false;
  int overflow = 0;
  *out = PyLong_AsLongLongAndOverflow(index, &overflow);
  return overflow == 0 && *out >= -t.shape()[0] && *out < t.shape()[0];
}

// Whether an index is places for a dim of x, and all that the C++ functions ask for.
bool IsPlacesOf(const Tensor& x, const Tensor& index) {
  return index.ndim() > 0 && index.device() == x.device() && !GlobalOf(index) &&
         IsIntegral(index.dtype()) && index.dtype() != DType::kUInt8;  // which is a mask
}
bool IsLocal(const Tensor& x) {
  return x.ndim() > 0 && x.device().type != DeviceType::kMeta && !GlobalOf(x);
}
template <class F>
PyObject* WithoutLock(F&& f) {
  std::optional<StatusOr<Tensor>> found;
  {
    const GilRelease unlocked;
    found = f();
  }
  return WrapResult(*std::move(found));
}

// Whether an index is a mask of x's shape that lies beside it.
bool IsMaskOf(const Tensor& x, PyObject* index) {
  if (!IsTensor(index) || !IsLocal(x)) return false;
  const Tensor& mask = Unwrap(index);
  return mask.dtype() == DType::kBool && mask.shape() == x.shape() && mask.device() == x.device() &&
         !GlobalOf(mask);
}
// x[mask]. Null without an exception where it is none.
PyObject* PickedByMask(const Tensor& x, PyObject* index) {
  if (!IsMaskOf(x, index)) return nullptr;
  const Tensor mask = Unwrap(index);
  return WithoutLock([=] { return functional::MaskedSelect(x, mask); });
}
// x[mask] = a number, of floats. Null without an exception where it is another assignment.
PyObject* FilledByMask(const Tensor& x, PyObject* index, PyObject* value) {
  const bool number = PyFloat_CheckExact(value) || PyLong_CheckExact(value);
  if (!number || !IsFloating(x.dtype()) || !IsMaskOf(x, index)) return nullptr;
  const Tensor mask = Unwrap(index), filled = TensorFromData(value, x.dtype(), {});
  if (!filled.defined()) return nullptr;
  return WithoutLock([=]() -> StatusOr<Tensor> {
    OFL_ASSIGN_OR_RETURN(const Tensor there, functional::To(filled, x.device(), {}));
    OFL_ASSIGN_OR_RETURN(const Tensor y, functional::Where(mask, there, x));
    StatusOr<Tensor> written = functional::CopyInto(x, y);
    return written.ok() ? written : Renamed("setitem", written.status());
  });
}

// Places that need no plan: of dim `dim`, or of all leading dims if there are several.
struct PlainPlaces {
  int64_t dim = 0;
  TensorList of_dims;  // none where an index is another

  StatusOr<Tensor> PickFrom(const Tensor& x) const {
    return of_dims.size() == 1 ? functional::IndexAlong(x, dim, of_dims[0])
                               : functional::IndexLeading(x, of_dims);
  }
  StatusOr<Tensor> WriteInto(const Tensor& x, const Tensor& value, bool accumulate) const {
    return of_dims.size() == 1 ? functional::IndexAlongInto(x, dim, of_dims[0], value, accumulate)
                               : functional::IndexLeadingInto(x, of_dims, value, accumulate);
  }
};

// Whether an item is `:`.
bool IsWholeDim(PyObject* item) {
  if (!PySlice_Check(item)) return false;
  const auto* slice = reinterpret_cast<PySliceObject*>(item);
  return slice->start == Py_None && slice->stop == Py_None && slice->step == Py_None;
}

// Of a tensor, of a tuple of tensors of one shape for the leading dims, and of one tensor between
// whole dims.
PlainPlaces PlainPlacesOf(const Tensor& x, PyObject* index) {
  PlainPlaces none, found;
  if (!IsLocal(x)) return none;
  if (IsTensor(index)) {
    if (IsPlacesOf(x, Unwrap(index))) found.of_dims.push_back(Unwrap(index));
    return found;
  }
  if (!PyTuple_Check(index) || PyTuple_GET_SIZE(index) > x.ndim()) return none;
  Py_ssize_t whole = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); ++i) {
    PyObject* item = TupleItem(index, i);
    if (IsWholeDim(item)) {
      ++whole;
      continue;
    }
    if (!IsTensor(item) || !IsPlacesOf(x, Unwrap(item))) return none;
    if (found.of_dims.empty()) found.dim = i;
    found.of_dims.push_back(Unwrap(item));
    if (found.of_dims.back().shape() != found.of_dims.front().shape()) return none;
  }
  return whole > 0 && found.of_dims.size() != 1 ? none : found;
}

PyObject* Subscript(PyObject* self, PyObject* index) {
  return Protect([&]() -> PyObject* {
    int64_t number;
    if (IsPlainInt(Unwrap(self), index, &number)) {
      return WrapResult(functional::Select(Unwrap(self), 0, number));
    }
    if (const PlainPlaces plain = PlainPlacesOf(Unwrap(self), index); !plain.of_dims.empty()) {
      const Tensor x = Unwrap(self);
      return WithoutLock([&] { return plain.PickFrom(x); });
    }
    if (PyObject* found = PickedByMask(Unwrap(self), index)) return found;
    if (PyErr_Occurred()) return nullptr;
    if (HasData(index)) return CallIndexing("getitem", self, index, nullptr);
    Places places;
    if (!ReadIndex(index, &places)) return nullptr;
    Indexing indexing("index", Unwrap(self));
    if (!indexing.Apply(places)) return nullptr;
    const Tensor& view = indexing.view();
    // Also x[...] is a view and not x itself.
    if (view.IsSame(Unwrap(self))) return WrapResult(functional::View(view, view.shape()));
    return Wrap(view);
  });
}

// Writes a tensor whose extra leading dims have size 1 as well.
Status Assign(const Tensor& view, Tensor value) {
  int extra = value.ndim() - view.ndim();
  while (extra > 0 && value.shape()[0] == 1) {
    OFL_ASSIGN_OR_RETURN(value, functional::Select(value, 0, 0));
    --extra;
  }
  return functional::CopyInto(view, value).status();
}

// Whether a value is the view itself, cut before: x[1:3] += v has written it when it assigns it.
// What only shares its memory is another value to autograd; a leaf that requires grad is to refuse.
bool IsThere(const Tensor& self, const Tensor& view, const Tensor& value) {
  const bool same = value.storage() == view.storage() && value.dtype() == view.dtype() &&
                    value.shape() == view.shape() && value.strides() == view.strides() &&
                    value.offset() == view.offset();
  if (!same || !GradEnabled()) return same;
  const bool tracked = autograd::RequiresGrad(view);
  if (tracked != autograd::RequiresGrad(value)) return false;
  if (!tracked) return true;
  const Tensor base = autograd::Base(value);
  return !autograd::IsLeaf(self) && base.defined() && base.IsSame(autograd::Base(view));
}

// x[i, j] = value, or +=, for places that need no plan. Null without an exception where they do.
PyObject* WrittenAt(const Tensor& x, PyObject* index, PyObject* value, bool accumulate) {
  if (!x.is_contiguous()) return nullptr;
  const PlainPlaces plain = PlainPlacesOf(x, index);
  if (plain.of_dims.empty()) return nullptr;
  const Tensor from = IsTensor(value) ? Unwrap(value) : TensorFromData(value, x.dtype(), {});
  if (!from.defined() || GlobalOf(from)) return nullptr;
  return WithoutLock([&] {
    StatusOr<Tensor> y = plain.WriteInto(x, from, accumulate);
    return y.ok() ? y : Renamed("setitem", y.status());
  });
}

// The same for index_put_, whose index is a tuple: whether they needed none.
PyObject* WriteAt(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return Protect([&]() -> PyObject* {
    if (nargs != 4 || !IsTensor(args[0])) {
      PyErr_SetString(PyExc_TypeError, "_write_at() takes a tensor, an index, a value and a bool");
      return nullptr;
    }
    const int accumulate = PyObject_IsTrue(args[3]);
    if (accumulate < 0) return nullptr;
    const PyRef same(WrittenAt(Unwrap(args[0]), args[1], args[2], accumulate != 0));
    return !same && PyErr_Occurred() ? nullptr : PyBool_FromLong(same ? 1 : 0);
  });
}

int AssignSubscript(PyObject* self, PyObject* index, PyObject* value) {
  return Protect([&] {
    if (!value) {
      PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
      return -1;
    }
    PyRef same(WrittenAt(Unwrap(self), index, value, /*accumulate=*/false));
    if (!same && !PyErr_Occurred()) same = PyRef(FilledByMask(Unwrap(self), index, value));
    if (same || PyErr_Occurred()) return same ? 0 : -1;
    if (HasData(index)) {
      PyRef none(CallIndexing("setitem", self, index, value));
      return none ? 0 : -1;
    }
    Places places;
    if (!ReadIndex(index, &places)) return -1;
    Indexing indexing("setitem", Unwrap(self));
    if (!indexing.Apply(places)) return -1;
    const Tensor& view = indexing.view();
    Status s;
    Scalar scalar;
    const Match m = AsScalar(value, &scalar);
    if (m == Match::kError) return -1;
    if (m == Match::kYes) {
      s = CheckFits("setitem", scalar, view.dtype());
      if (s.ok()) s = functional::FillInto(view, scalar).status();
    } else {
      Tensor from = IsTensor(value) ? Unwrap(value) : TensorFromData(value, view.dtype(), {});
      if (!from.defined()) return -1;
      if (IsThere(Unwrap(self), view, from)) return 0;
      s = Assign(view, std::move(from));
    }
    return s.ok() ? 0 : (Raise(Renamed("setitem", s)), -1);
  });
}

Py_ssize_t Length(PyObject* self) {
  const Tensor& t = Unwrap(self);
  if (t.ndim() > 0) return t.shape()[0];
  PyErr_SetString(PyExc_TypeError, "a tensor without dims has no len()");
  return -1;
}

PyObject* ItemAt(PyObject* self, Py_ssize_t i) {
  return Protect([&]() -> PyObject* {
    const Tensor& t = Unwrap(self);
    if (t.ndim() == 0 || i < 0 || i >= t.shape()[0]) {
      PyErr_SetString(PyExc_IndexError, "index out of range");
      return nullptr;
    }
    return WrapResult(functional::Select(t, 0, i));
  });
}

PyObject* Iterate(PyObject* self) {
  if (Unwrap(self).ndim() > 0) return PySeqIter_New(self);
  PyErr_SetString(PyExc_TypeError, "a tensor without dims cannot be iterated over");
  return nullptr;
}

}  // namespace

PyMethodDef index_functions[] = {
    {"_write_at", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&WriteAt)), METH_FASTCALL,
     "_write_at(tensor, index, value, accumulate)\n--\n\nWrites or adds at places that need no "
     "plan; False where they do."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot index_slots[] = {{Py_mp_subscript, Slot(&Subscript)},
                             {Py_mp_ass_subscript, Slot(&AssignSubscript)},
                             {Py_mp_length, Slot(&Length)},
                             {Py_sq_length, Slot(&Length)},
                             {Py_sq_item, Slot(&ItemAt)},
                             {Py_tp_iter, Slot(&Iterate)},
                             {0, nullptr}};

}  // namespace oneflow_lite::python
