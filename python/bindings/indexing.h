// SPDX-License-Identifier: Apache-2.0
//
// The items of an index that make views: ints, slices, None and ..., read and applied.
//
//   Places places;
//   if (!ReadIndex(index, &places)) return nullptr;
//   Indexing indexing("index", x);
//   if (!indexing.Apply(places)) return nullptr;  // else indexing.view()
#pragma once

#include <algorithm>

#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "python/bindings/arguments.h"

namespace oneflow_lite::python {

// What an item of an index says.
struct Place {
  enum class Kind { kInt, kSlice, kNone, kEllipsis, kData } kind;
  int64_t start = 0;  // of an int, the index
  int64_t stop = 0, step = 1;
};
using Places = absl::InlinedVector<Place, 4>;

// The items of an index that are places as data.
using DataItems = absl::InlinedVector<PyObject*, 4>;

inline bool ReadPlace(PyObject* item, Places* places, const DataItems& data = {}) {
  if (std::find(data.begin(), data.end(), item) != data.end()) {
    places->push_back({Place::Kind::kData});
    return true;
  }
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
inline bool ReadIndex(PyObject* index, Places* places, const DataItems& data = {}) {
  if (!PyTuple_Check(index)) return ReadPlace(index, places, data);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(index); ++i) {
    if (!ReadPlace(TupleItem(index, i), places, data)) return false;
  }
  return true;
}

// Applies the places of an index one after the other; a dim with data stays whole.
class Indexing {
 public:
  Indexing(const char* op, const Tensor& t) : op_(op), view_(t) {}

  bool Apply(const Places& places) {
    int64_t given = 0, ellipses = 0;
    for (const Place& p : places) {
      ellipses += p.kind == Place::Kind::kEllipsis;
      given += p.kind != Place::Kind::kNone && p.kind != Place::Kind::kEllipsis;
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
  // The dims with data, of the view and of the tensor.
  const Dims& data_dims() const { return data_dims_; }
  const Dims& data_source_dims() const { return data_source_dims_; }

 private:
  bool Set(StatusOr<Tensor> t) {
    if (!t.ok()) return Raise(t.status()), false;
    view_ = *std::move(t);
    return true;
  }

  bool ApplyPlace(const Place& p) {
    if (p.kind == Place::Kind::kNone) return Set(functional::Unsqueeze(view_, dim_++));
    if (p.kind == Place::Kind::kData) {
      data_dims_.push_back(dim_++);
      data_source_dims_.push_back(source_dim_++);
      return true;
    }
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
  Dims data_dims_, data_source_dims_;
};

}  // namespace oneflow_lite::python
