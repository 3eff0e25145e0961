// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/named_results.h"

#include <structseq.h>

#include "python/bindings/errors.h"
#include "python/bindings/items.h"

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

namespace {

// results_type("median", ("values", "indices")), for functions composed in Python.
PyObject* ResultsType(PyObject*, PyObject* args) {
  return Protect([&]() -> PyObject* {
    const char* function;
    PyObject* given;
    if (!PyArg_ParseTuple(args, "sO!:results_type", &function, &PyTuple_Type, &given)) {
      return nullptr;
    }
    std::vector<std::string> fields;
    const Items items(given);
    for (Py_ssize_t i = 0; i < items.size(); ++i) {
      const PyRef item = items[i];
      const char* field = PyUnicode_AsUTF8(item.get());
      if (!field) return nullptr;
      fields.emplace_back(field);
    }
    PyRef type(reinterpret_cast<PyObject*>(MakeResultsType(function, fields)));
    const PyRef functions(PyImport_ImportModule("oneflow_lite._C"));
    if (!type || !functions ||
        PyObject_SetAttrString(functions.get(), ResultsTypeName(function).c_str(), type.get()) <
            0) {
      return nullptr;
    }
    return type.Give();
  });
}

}  // namespace

PyMethodDef results_functions[] = {
    {"results_type", ResultsType, METH_VARARGS,
     "results_type(function, fields, /)\n--\n\n"
     "The named tuple that a function composed in Python gives, as those in C++ do."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
