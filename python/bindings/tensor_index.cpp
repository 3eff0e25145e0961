// SPDX-License-Identifier: Apache-2.0
//
// x[i], x[1:, None, ..., 0] and their assignment, as views that autograd follows.
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "python/bindings/arguments.h"
#include "python/bindings/creation.h"

namespace oneflow_lite::python {
namespace {

// Applies the items of an index one after the other.
class Indexing {
 public:
  explicit Indexing(const Tensor& t) : source_(t), view_(t) {}

  bool Apply(PyObject* const* items, Py_ssize_t n) {
    Py_ssize_t given = 0;
    bool ellipsis = false;
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (items[i] == Py_Ellipsis && std::exchange(ellipsis, true)) {
        PyErr_SetString(PyExc_IndexError, "an index can have only one ellipsis (...)");
        return false;
      }
      given += items[i] != Py_Ellipsis && items[i] != Py_None;
    }
    if (given > source_.ndim()) {
      Raise(ErrorKind::kIndex,
            absl::StrCat("too many indices: ", given, " for ", Describe(source_)));
      return false;
    }
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (items[i] == Py_Ellipsis) {
        dim_ += source_.ndim() - given;
        source_dim_ += source_.ndim() - given;
      } else if (!ApplyItem(items[i])) {
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

  bool ApplyItem(PyObject* item) {
    if (item == Py_None) return Set(functional::Unsqueeze(view_, dim_++));
    if (PySlice_Check(item)) return ApplySlice(item);
    int64_t index;
    switch (AsInt(item, &index)) {
      case Match::kYes:
        return ApplyInt(index);
      case Match::kError:
        return false;
      default:
        PyErr_Format(
            PyUnicode_Check(item) ? PyExc_TypeError : PyExc_IndexError,
            "a tensor can be indexed with ints, slices, None, ..., bools, tensors, arrays, "
            "lists and tuples of them, not with %s",
            Py_TYPE(item)->tp_name);
        return false;
    }
  }

  bool ApplyInt(int64_t index) {
    const int64_t size = view_.shape()[static_cast<int>(dim_)];
    if (index < -size || index >= size) {
      Raise(IndexOutOfRange("index", index, source_dim_, size));
      return false;
    }
    ++source_dim_;
    return Set(functional::Select(view_, dim_, index));
  }

  bool ApplySlice(PyObject* item) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) return false;
    if (step < 0) {
      PyErr_SetString(PyExc_ValueError, "the step of a slice of a tensor must be positive");
      return false;
    }
    const int64_t size = view_.shape()[static_cast<int>(dim_)];
    PySlice_AdjustIndices(size, &start, &stop, step);
    ++source_dim_;
    const int64_t dim = dim_++;
    if (start == 0 && stop == size && step == 1) return true;
    return Set(functional::Slice(view_, dim, start, std::max(start, stop), step));
  }

  const Tensor source_;
  Tensor view_;
  int64_t dim_ = 0;         // of view_, that the next item speaks of
  int64_t source_dim_ = 0;  // the same as a dim of source_, for messages
};

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
  if (!PyObject_HasAttrString(item, "__array__")) return false;
  // NumPy's bool is the scalar that counts as no integer.
  return PySequence_Check(item) || !PyIndex_Check(item);
}
bool HasData(PyObject* index) {
  if (!PyTuple_Check(index)) return IsData(index);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); ++i) {
    if (IsData(PyTuple_GET_ITEM(index, i))) return true;
  }
  return false;
}

PyObject* CallIndexing(const char* function, PyObject* self, PyObject* index, PyObject* value) {
  PyRef module(PyImport_ImportModule("oneflow_lite._indexing"));
  PyRef callable(module ? PyObject_GetAttrString(module.get(), function) : nullptr);
  return callable ? PyObject_CallFunctionObjArgs(callable.get(), self, index, value, nullptr)
                  : nullptr;
}

bool ApplyIndex(Indexing& indexing, PyObject* index) {
  if (!PyTuple_Check(index)) return indexing.Apply(&index, 1);
  return indexing.Apply(PySequence_Fast_ITEMS(index), PyTuple_GET_SIZE(index));
}

PyObject* Subscript(PyObject* self, PyObject* index) {
  return Protect([&]() -> PyObject* {
    if (HasData(index)) return CallIndexing("getitem", self, index, nullptr);
    Indexing indexing(Unwrap(self));
    if (!ApplyIndex(indexing, index)) return nullptr;
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

int AssignSubscript(PyObject* self, PyObject* index, PyObject* value) {
  return Protect([&] {
    if (!value) {
      PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
      return -1;
    }
    if (HasData(index)) {
      PyRef none(CallIndexing("setitem", self, index, value));
      return none ? 0 : -1;
    }
    Indexing indexing(Unwrap(self));
    if (!ApplyIndex(indexing, index)) return -1;
    const Tensor& view = indexing.view();
    Status s;
    Scalar scalar;
    const Match m = AsScalar(value, &scalar);
    if (m == Match::kError) return -1;
    if (m == Match::kYes) {
      s = functional::CheckFits("setitem", scalar, view.dtype());
      if (s.ok()) s = functional::FillInto(view, scalar).status();
    } else {
      Tensor from = IsTensor(value) ? Unwrap(value) : TensorFromData(value, view.dtype(), {});
      if (!from.defined()) return -1;
      s = Assign(view, std::move(from));
    }
    return s.ok() ? 0 : (Raise(s), -1);
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

PyType_Slot index_slots[] = {{Py_mp_subscript, Slot(&Subscript)},
                             {Py_mp_ass_subscript, Slot(&AssignSubscript)},
                             {Py_mp_length, Slot(&Length)},
                             {Py_sq_length, Slot(&Length)},
                             {Py_sq_item, Slot(&ItemAt)},
                             {Py_tp_iter, Slot(&Iterate)},
                             {0, nullptr}};

}  // namespace oneflow_lite::python
