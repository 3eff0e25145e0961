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
#include "functional/shapes.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"
#include "python/bindings/creation.h"
#include "python/bindings/indexing.h"
#include "python/bindings/items.h"

namespace oneflow_lite::python {
namespace {

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
bool IsMaskOf(const Tensor& x, const Tensor& index) {
  return IsLocal(x) && index.dtype() == DType::kBool && index.shape() == x.shape() &&
         index.device() == x.device() && !GlobalOf(index);
}

// x[index] for one tensor of places or a mask of x's shape, which need no plan. Null without an
// exception where it is neither.
PyObject* PickedBy(const Tensor& x, const Tensor& index) {
  if (IsMaskOf(x, index)) return WithoutLock([=] { return functional::MaskedSelect(x, index); });
  if (!IsLocal(x) || !IsPlacesOf(x, index)) return nullptr;
  return WithoutLock([=] { return functional::IndexFirst(x, index); });
}

// Whether places broadcast to one shape; where not, the plan says so.
bool GoTogether(const TensorList& places) { return functional::CommonShape("index", places).ok(); }

// A tuple of places for the leading dims of x; nothing where it is another.
TensorList PlacesOfAll(const Tensor& x, PyObject* index) {
  if (!PyTuple_Check(index) || !IsLocal(x)) return {};
  const Py_ssize_t count = PyTuple_GET_SIZE(index);
  if (count < 2 || count > x.ndim()) return {};
  TensorList places;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = TupleItem(index, i);
    if (!IsTensor(item) || !IsPlacesOf(x, Unwrap(item))) return {};
    places.push_back(Unwrap(item));
  }
  return GoTogether(places) ? places : TensorList();
}

// The items of an index that are data, where they are places as the C++ functions take them and no
// dim is named too many; none where the index wants a plan.
DataItems PlacesAmong(const Tensor& x, PyObject* index) {
  if (!IsLocal(x)) return {};
  if (!PyTuple_Check(index)) {
    return IsTensor(index) && IsPlacesOf(x, Unwrap(index)) ? DataItems{index} : DataItems();
  }
  DataItems data;
  int given = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); ++i) {
    PyObject* item = TupleItem(index, i);
    given += item != Py_None && item != Py_Ellipsis;
    if (!IsData(item)) continue;
    if (!IsTensor(item) || !IsPlacesOf(x, Unwrap(item))) return {};
    data.push_back(item);
  }
  return given <= x.ndim() ? data : DataItems();
}
TensorList Unwrapped(const DataItems& items) {
  TensorList tensors;
  for (PyObject* item : items) tensors.push_back(Unwrap(item));
  return tensors;
}

// x[..., places, ...] without a plan. Null without an exception where it wants one.
PyObject* PickedAmong(const Tensor& x, PyObject* index) {
  const DataItems data = PlacesAmong(x, index);
  const TensorList at = Unwrapped(data);
  if (data.empty() || !GoTogether(at)) return nullptr;
  Places places;
  if (!ReadIndex(index, &places, data)) return nullptr;
  Indexing indexing("index", x);
  if (!indexing.Apply(places)) return nullptr;
  return WithoutLock([&] {
    const Dims &dims = indexing.data_dims(), &source_dims = indexing.data_source_dims();
    if (at.size() > 1) return functional::IndexDims(indexing.view(), dims, at, source_dims);
    return functional::IndexDim(indexing.view(), dims[0], at[0], source_dims[0]);
  });
}

// A list of ints of Python's own, each within the first dim of a tensor on the CPU, as places;
// undefined where it is anything else.
Tensor PlacesOfList(const Tensor& x, PyObject* index) {
  if (!PyList_CheckExact(index) || !IsLocal(x) || x.device().type != DeviceType::kCPU)
    return Tensor();
  const Items items(index);
  StatusOr<Tensor> places = functional::Empty(Dims{items.size()}, DType::kInt64, Device{});
  if (items.size() == 0 || !places.ok()) return Tensor();
  for (Py_ssize_t i = 0; i < items.size(); ++i) {
    int64_t* const place = places->data<int64_t>() + i;
    if (!items.ReadInt(i, place) || *place < -x.shape()[0] || *place >= x.shape()[0]) {
      return Tensor();
    }
  }
  return *std::move(places);
}

PyObject* Subscript(PyObject* self, PyObject* index) {
  return Protect([&]() -> PyObject* {
    int64_t plain;
    if (IsPlainInt(Unwrap(self), index, &plain)) {
      return WrapResult(functional::Select(Unwrap(self), 0, plain));
    }
    if (IsTensor(index)) {
      if (PyObject* found = PickedBy(Unwrap(self), Unwrap(index))) return found;
      if (PyErr_Occurred()) return nullptr;
    }
    const TensorList places_of_all = PlacesOfAll(Unwrap(self), index);
    if (!places_of_all.empty()) {
      const Tensor x = Unwrap(self);
      return WithoutLock([=] { return functional::IndexLeading(x, places_of_all); });
    }
    if (HasData(index)) {
      if (PyObject* found = PickedAmong(Unwrap(self), index)) return found;
      if (PyErr_Occurred()) return nullptr;
      const Tensor list = PlacesOfList(Unwrap(self), index);
      if (!list.defined()) return CallIndexing("getitem", self, index, nullptr);
      return WithoutLock([x = Unwrap(self), &list] { return functional::IndexFirst(x, list); });
    }
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

// x[..., places, ...] = value, or +=, without a plan. Null without an exception where it wants one.
PyObject* WrittenAmong(const Tensor& x, PyObject* index, const Tensor& value, bool accumulate) {
  const DataItems data = PlacesAmong(x, index);
  if (data.size() != 1 || x.numel() == 0) return nullptr;
  Places places;
  if (!ReadIndex(index, &places, data)) return nullptr;
  Indexing indexing("setitem", x);
  if (!indexing.Apply(places)) return nullptr;
  return WithoutLock([&indexing, &value, accumulate, at = Unwrap(data[0])] {
    StatusOr<Tensor> y =
        functional::IndexDimInto(indexing.view(), indexing.data_dims()[0], at, value,
                                 indexing.data_source_dims()[0], accumulate);
    return y.ok() ? y : Renamed("setitem", y.status());
  });
}

// The same, and x[i, j] = value, or +=, for places of the leading dims of a contiguous tensor.
PyObject* WrittenAt(const Tensor& target, PyObject* index, PyObject* value, bool accumulate) {
  if (PlacesOfAll(target, index).empty() && PlacesAmong(target, index).size() != 1) return nullptr;
  const Tensor from = IsTensor(value) ? Unwrap(value) : TensorFromData(value, target.dtype(), {});
  if (!from.defined() || GlobalOf(from)) return nullptr;
  // Reading the value may have given the target other data, and so may another thread from here on.
  const Tensor x = target;
  const TensorList leading = x.is_contiguous() ? PlacesOfAll(x, index) : TensorList();
  if (leading.empty()) return WrittenAmong(x, index, from, accumulate);
  return WithoutLock([&] {
    StatusOr<Tensor> y = functional::IndexLeadingInto(x, leading, from, accumulate);
    return y.ok() ? y : Renamed("setitem", y.status());
  });
}

// The same for index_put_, whose index is a tuple: whether it wanted no plan.
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

// x[mask] = number, of a mask of x's shape; likewise.
PyObject* AssignedWhere(const Tensor& x, PyObject* index, PyObject* value) {
  if (!IsTensor(index) || !IsMaskOf(x, Unwrap(index)) || IsTensor(value)) return nullptr;
  const Tensor& mask = Unwrap(index);
  Scalar number;
  const Match m = AsScalar(value, &number);
  const bool fits = m == Match::kYes &&
                    (IsFloating(x.dtype()) || (IsIntegral(x.dtype()) && !number.is_float())) &&
                    CheckFits("setitem", number, x.dtype()).ok();
  if (!fits) return nullptr;
  return WithoutLock([=]() -> StatusOr<Tensor> {
    OFL_ASSIGN_OR_RETURN(const Tensor filled, functional::MaskedFill(x, mask, number));
    StatusOr<Tensor> y = functional::CopyInto(x, filled);
    return y.ok() ? y : Renamed("setitem", y.status());
  });
}

int AssignSubscript(PyObject* self, PyObject* index, PyObject* value) {
  return Protect([&] {
    if (!value) {
      PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
      return -1;
    }
    if (HasData(index)) {
      PyRef same(WrittenAt(Unwrap(self), index, value, /*accumulate=*/false));
      if (!same && !PyErr_Occurred()) same = PyRef(AssignedWhere(Unwrap(self), index, value));
      if (same || PyErr_Occurred()) return same ? 0 : -1;
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
    const bool large = view.numel() >= kLargeWork || GlobalOf(view);
    if (m == Match::kYes) {
      s = CheckFits("setitem", scalar, view.dtype());
      const GilRelease unlocked(large);
      if (s.ok()) s = functional::FillInto(view, scalar).status();
    } else {
      Tensor from = IsTensor(value) ? Unwrap(value) : TensorFromData(value, view.dtype(), {});
      if (!from.defined()) return -1;
      if (IsThere(Unwrap(self), view, from)) return 0;
      const GilRelease unlocked(large || from.device() != view.device());
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
