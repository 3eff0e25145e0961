// SPDX-License-Identifier: Apache-2.0
//
// The small classes, bound by pybind11, and the parts of the module.
#pragma once

#include "oneflow_lite/framework/autograd.h"
#include "python/bindings/reference.h"

namespace pybind11 {
class module_;
}

namespace oneflow_lite::python {

// The node's object; None for a null node.
PyObject* WrapNode(const Ref<Node>& node);

void AddDTypeAndDevice(pybind11::module_& m);    // dtype_device.cpp
void AddAutocast(pybind11::module_& m);          // autocast.cpp
void AddAutograd(pybind11::module_& m);          // autograd.cpp
void AddAutogradFunction(pybind11::module_& m);  // autograd_function.cpp
void AddCuda(pybind11::module_& m);              // cuda.cpp
void AddObserver(pybind11::module_& m);          // observer.cpp
void AddProfiler(pybind11::module_& m);          // profiler.cpp
void AddCustomOp(pybind11::module_& m);          // custom_op.cpp
void AddOpFunction(pybind11::module_& m);        // op_function.cpp
void AddOpDefinition(pybind11::module_& m);      // op_definition.cpp
void AddFusedRows(pybind11::module_& m);         // fused_rows.cpp
void AddPrivateFolder(pybind11::module_& m);     // private_folder.cpp
void AddGlobal(pybind11::module_& m);            // global.cpp
void AddDistributed(pybind11::module_& m);       // distributed.cpp
// OTHER_NAMES and MEANINGLESS, for functions composed in Python. False: an exception is set.
bool AddArgumentNames(PyObject* module);   // registry.cpp
extern PyMethodDef registry_functions[];   // registry.cpp
extern PyMethodDef creation_functions[];   // creation.cpp
extern PyMethodDef index_functions[];      // tensor_index.cpp
extern PyMethodDef numpy_functions[];      // numpy.cpp
extern PyMethodDef items_functions[];      // items.cpp
extern PyMethodDef composed_functions[];   // composed.cpp
extern PyMethodDef dlpack_functions[];     // dlpack.cpp
extern PyMethodDef pickle_functions[];     // tensor_pickle.cpp
extern PyMethodDef last_name_functions[];  // last_names.cpp

}  // namespace oneflow_lite::python
