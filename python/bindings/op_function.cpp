// SPDX-License-Identifier: Apache-2.0
//
// Ops as Python callables: flow.ops.<namespace>.<name>. Ops come at run time, so each is an object
// with the vectorcall protocol instead of a builtin.

#include "oneflow_lite/framework/op_function.h"

#include <Python.h>
#include <structmember.h>

#include <map>
#include <mutex>

#include "oneflow_lite/framework/op_registry.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"
#include "python/bindings/functions.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

struct OpFunctionObject {
  PyObject_HEAD;
  vectorcallfunc call;
  BoundFunction* bound;  // lives forever, like the op
};
PyTypeObject* op_function_type;

const BoundFunction& BoundOf(PyObject* self) {
  return *reinterpret_cast<OpFunctionObject*>(self)->bound;
}

PyObject* CallOpFunction(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return CallBound(BoundOf(self), nullptr, args, PyVectorcall_NARGS(nargsf), kwnames);
}

PyObject* Repr(PyObject* self) {
  return PyUnicode_FromFormat("<op %s>", BoundOf(self).schema->text.c_str());
}

void Dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* GetName(PyObject* self, void*) {
  return PyUnicode_FromString(BoundOf(self).schema->name.c_str());
}
// The part before "\n--\n\n" is the signature, as builtins keep it.
PyObject* GetDoc(PyObject* self, void*) {
  const std::string& doc = BoundOf(self).doc;  // an extension's may be of any bytes
  const size_t begin = doc.find("\n--\n\n") + 5;
  return PyUnicode_DecodeUTF8(doc.c_str() + begin, static_cast<Py_ssize_t>(doc.size() - begin),
                              "replace");
}
PyObject* GetTextSignature(PyObject* self, void*) {
  const std::string& doc = BoundOf(self).doc;
  const size_t open = doc.find('('), end = doc.find("\n--\n\n");
  return PyUnicode_FromStringAndSize(doc.c_str() + open, static_cast<Py_ssize_t>(end - open));
}
PyObject* GetModule(PyObject*, void*) { return PyUnicode_FromString("oneflow_lite.ops"); }

// inspect.Signature made of the schema, as Python's own would have it: an argument named by a
// keyword of Python ("in") goes by its place, one that must be given after one that need not be, by
// its name.
PyObject* GetSignature(PyObject* self, void*) {
  return Protect([&]() -> PyObject* {
    const py::module_ inspect = py::module_::import("inspect");
    const py::object is_keyword = py::module_::import("keyword").attr("iskeyword");
    const py::object parameter = inspect.attr("Parameter");
    const std::vector<ArgSchema>& args = BoundOf(self).schema->args;
    size_t by_place = 0;
    for (size_t i = 0; i < args.size(); ++i) {
      if (py::cast<bool>(is_keyword(args[i].name))) by_place = i + 1;
    }
    py::list parameters;
    bool optional = false, by_name = false;
    for (size_t i = 0; i < args.size(); ++i) {
      py::object value = parameter.attr("empty");
      if (args[i].has_default) value = OwnedOrThrow(WrapValue(Value(args[i].default_value)));
      by_name = by_name || (optional && !args[i].has_default);
      optional = optional || args[i].has_default;
      const char* kind = i < by_place ? "POSITIONAL_ONLY"
                         : by_name    ? "KEYWORD_ONLY"
                                      : "POSITIONAL_OR_KEYWORD";
      parameters.append(parameter(args[i].name, parameter.attr(kind), py::arg("default") = value));
    }
    return inspect.attr("Signature")(parameters).release().ptr();
  });
}

// Pickled and copied by its name.
PyObject* Reduce(PyObject* self, PyObject*) {
  return Protect([&]() -> PyObject* {
    const py::object load = py::module_::import("oneflow_lite.ops").attr("_op");
    return py::make_tuple(load, py::make_tuple(BoundOf(self).schema->name)).release().ptr();
  });
}

PyGetSetDef getset[] = {{"__name__", GetName, nullptr, nullptr, nullptr},
                        {"__qualname__", GetName, nullptr, nullptr, nullptr},
                        {"__doc__", GetDoc, nullptr, nullptr, nullptr},
                        {"__signature__", GetSignature, nullptr, nullptr, nullptr},
                        {"__module__", GetModule, nullptr, nullptr, nullptr},
                        {"__text_signature__", GetTextSignature, nullptr, nullptr, nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {{"__reduce__", Reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OpFunctionObject, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_repr, reinterpret_cast<void*>(Repr)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
                       {Py_tp_getset, getset},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {
    "oneflow_lite.OpFunction", sizeof(OpFunctionObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

py::object OpFunction(const std::string& name) {
  // One object per op. Guarded by the interpreter's lock.
  static auto* objects = new std::map<std::string, PyObject*>;
  if (auto it = objects->find(name); it != objects->end()) {
    return py::reinterpret_borrow<py::object>(it->second);
  }
  const OpExpr* op = ValueOrThrow(FindOp(name));
  auto bound = std::make_unique<BoundFunction>();
  if (!Bind(FunctionOf(*op), bound.get())) throw py::error_already_set();
  auto* self = PyObject_New(OpFunctionObject, op_function_type);
  if (!self) throw py::error_already_set();
  self->call = CallOpFunction;
  self->bound = bound.release();
  auto* object = reinterpret_cast<PyObject*>(self);
  (*objects)[name] = Py_NewRef(object);
  return py::reinterpret_steal<py::object>(object);
}

}  // namespace

void AddOpFunction(py::module_& m) {
  op_function_type =
      reinterpret_cast<PyTypeObject*>(OwnedOrThrow(PyType_FromSpec(&spec)).release().ptr());
  m.def("op_function", &OpFunction, py::arg("name"), "The op of that name as a callable.");
}

}  // namespace oneflow_lite::python
