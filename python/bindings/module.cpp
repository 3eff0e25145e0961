// SPDX-License-Identifier: Apache-2.0
//
// The extension module oneflow_lite._oneflow_lite. The hot path (tensors, functions) speaks the C
// API; pybind11 binds the small classes.
#include <exception>
#include <new>

#include "python/bindings/classes.h"
#include "python/bindings/functions.h"
#include "python/bindings/named_results.h"
#include "python/bindings/size.h"
#include "python/bindings/tensor_object.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {

// Here rather than in errors.cpp because it knows pybind11's exception, whose header is expensive.
PyObject* RaiseCaught() {
  try {
    throw;
  } catch (pybind11::error_already_set& e) {
    e.restore();
  } catch (const pybind11::builtin_exception& e) {
    e.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
  return nullptr;
}

}  // namespace oneflow_lite::python

PYBIND11_MODULE(_oneflow_lite, m) {
  using namespace oneflow_lite::python;
  const auto check = [](bool ok) {
    if (!ok) throw pybind11::error_already_set();
  };
  m.doc() = "The C++ half of oneflow_lite.";
  check(AddErrors(m.ptr()));
  AddDTypeAndDevice(m);
  check(AddSizeType(m.ptr()));
  PyMethodDef* function_methods = FunctionMethods();
  check(function_methods);
  check(AddTensorType(m.ptr(), function_methods));
  check(AddFunctions(m.ptr()));
  for (PyMethodDef* functions :
       {creation_functions, numpy_functions, dlpack_functions, index_functions, pickle_functions,
        registry_functions, items_functions, composed_functions, last_name_functions}) {
    check(PyModule_AddFunctions(m.ptr(), functions) == 0);
  }
  check(AddArgumentNames(m.ptr()));
  AddAutocast(m);
  AddAutograd(m);
  AddAutogradFunction(m);
  AddCuda(m);
  AddObserver(m);
  AddProfiler(m);
  AddOpFunction(m);
  AddOpDefinition(m);
  AddCustomOp(m);
  AddFusedRows(m);
  AddPrivateFolder(m);
  AddGlobal(m);
  AddDistributed(m);
  // What knows no __array_ufunc__ leaves operators between its objects and tensors to Tensor.
  m.attr("Tensor").attr("__array_priority__") = 1000;
}
