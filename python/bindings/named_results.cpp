// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/named_results.h"

#include <structseq.h>

namespace oneflow_lite::python {

std::string ResultsTypeName(const std::string& function) { return "_" + function + "_results"; }

PyTypeObject* MakeResultsType(const std::string& function, const std::vector<std::string>& fields) {
  // Names are not copied by Python.
  auto* names = new std::vector<std::string>(fields);
  std::vector<PyStructSequence_Field> described;
  for (const std::string& name : *names) described.push_back({name.c_str(), nullptr});
  described.push_back({nullptr, nullptr});
  auto* name = new std::string("oneflow_lite._C." + ResultsTypeName(function));
  PyStructSequence_Desc desc = {name->c_str(), "Results by name.", described.data(),
                                static_cast<int>(names->size())};
  return PyStructSequence_NewType(&desc);
}

PyObject* WrapNamed(PyTypeObject* type, const std::vector<PyRef>& items) {
  PyObject* tuple = PyStructSequence_New(type);
  for (size_t i = 0; tuple && i < items.size(); ++i) {
    PyStructSequence_SetItem(tuple, static_cast<Py_ssize_t>(i),
                             PyRef::Borrow(items[i].get()).Give());
  }
  return tuple;
}

}  // namespace oneflow_lite::python
