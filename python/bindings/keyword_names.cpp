// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/keyword_names.h"

#include "absl/strings/string_view.h"
#include "python/bindings/older_arguments.h"

namespace oneflow_lite::python {

size_t FindByOtherName(const FunctionSchema& f, PyObject* name) {
  for (const OtherName& other : OtherNames()) {
    if (!IsNamed(name, other.given)) continue;
    for (size_t i = 0; i < f.args.size(); ++i) {
      if (f.args[i].name == other.meant) return i;
    }
  }
  return f.args.size();
}

bool MeansNothing(PyObject* name, PyObject* value) {
  if (value == Py_None && (IsNamed(name, "out") || IsNamed(name, "dtype"))) return true;
  for (const absl::string_view known : MeaninglessNames()) {
    if (IsNamed(name, known)) return true;
  }
  return false;
}

std::string NearName(const BoundFunction& b, PyObject* name) {
  std::string hint;
  const PyRef difflib(PyImport_ImportModule("difflib"));
  const PyRef names(PyList_New(0));
  for (PyObject* known : b.names) {
    if (names) PyList_Append(names.get(), known);
  }
  if (difflib && names) {
    const PyRef near(
        PyObject_CallMethod(difflib.get(), "get_close_matches", "OOi", name, names.get(), 1));
    const PyRef first(near ? PySequence_GetItem(near.get(), 0) : nullptr);
    if (first && PyUnicode_Check(first.get())) {
      const char* text = PyUnicode_AsUTF8(first.get());
      if (text) hint = "; did you mean '" + std::string(text) + "'?";
    }
  }
  PyErr_Clear();
  return hint;
}

}  // namespace oneflow_lite::python
