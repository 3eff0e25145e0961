// SPDX-License-Identifier: Apache-2.0
//
// Arguments that functions took before they got a better one, read from a call's keywords and, in
// PyTorch's order, by place.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "python/bindings/arguments.h"

namespace oneflow_lite::python {

inline bool IsNamed(PyObject* name, absl::string_view text) {
  return PyUnicode_CompareWithASCIIString(name, std::string(text).c_str()) == 0;
}

// What PyTorch's losses took before there was "reduction".
struct OlderReduction {
  PyObject *size_average = nullptr, *reduce = nullptr;

  // Takes both out of arguments by place in PyTorch's order, in which `reduce` is before
  // `reduction`, and `size_average` before that or before ignore_index and eps, if they are there;
  // false where they are in our order: `size_average` is then no bool and not None.
  bool TakeByPlace(const FunctionSchema& f, std::vector<PyObject*>* args) {
    const size_t i = PlaceOf(f);
    if (i == f.args.size() || i == 0) return false;
    const std::string& before = f.args[i - 1].name;
    const size_t first = before == "ignore_index" || before == "eps" ? i - 1 : i;
    const auto is_older = [&](size_t at) {
      return at < args->size() && ((*args)[at] == Py_None || PyBool_Check((*args)[at]));
    };
    if (!is_older(first)) return false;
    if (args->size() > i + 1 && !is_older(i + 1)) return false;
    size_average = (*args)[first];
    if (args->size() > i + 1) {
      reduce = (*args)[i + 1];
      args->erase(args->begin() + static_cast<std::ptrdiff_t>(i + 1));
    }
    args->erase(args->begin() + static_cast<std::ptrdiff_t>(first));
    return true;
  }

  // Whether the keyword is one of the two, in a function that has them; then it is kept.
  bool Takes(const FunctionSchema& f, PyObject* name, PyObject* value) {
    PyObject** const place = IsNamed(name, "size_average") ? &size_average
                             : IsNamed(name, "reduce")     ? &reduce
                                                           : nullptr;
    if (!place || PlaceOf(f) == f.args.size()) return false;
    *place = value;
    return true;
  }
  static size_t PlaceOf(const FunctionSchema& f) {
    size_t i = 0;
    while (i < f.args.size() && f.args[i].name != "reduction") ++i;
    return i;
  }
  // Sets "reduction", with a warning, where either is given and is not None.
  bool Set(const FunctionSchema& f, uint64_t* given, Value* out) const {
    const auto is_given = [](PyObject* o) { return o && o != Py_None; };
    if (!is_given(size_average) && !is_given(reduce)) return true;
    const int mean = is_given(size_average) ? PyObject_IsTrue(size_average) : 1;
    const int reduced = is_given(reduce) ? PyObject_IsTrue(reduce) : 1;
    if (mean < 0 || reduced < 0) return false;
    const char* meant = !reduced ? "none" : mean ? "mean" : "sum";
    const PyRef warnings(PyImport_ImportModule("oneflow_lite._warnings"));
    const std::string text = absl::StrCat(
        f.name, "(): size_average and reduce are older arguments; pass reduction='", meant, "'");
    if (!warnings || !PyRef(PyObject_CallMethod(warnings.get(), "warn", "s", text.c_str()))) {
      return false;
    }
    const size_t i = PlaceOf(f);
    *given |= uint64_t{1} << i;
    const PyRef value(PyUnicode_FromString(meant));
    return value && ReadArgument(f.name.c_str(), f.args[i], value.get(), &out[i]);
  }
};

}  // namespace oneflow_lite::python
