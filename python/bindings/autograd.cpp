// SPDX-License-Identifier: Apache-2.0
//
// Autograd beside the methods of Tensor: modes, the engine, nodes, hooks on saving.
#include "oneflow_lite/framework/autograd.h"

#include <vector>

#include "oneflow_lite/framework/dispatch.h"
#include "python/bindings/arguments.h"
#include "python/bindings/backward.h"
#include "python/bindings/classes.h"
#include "python/bindings/collector.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

TensorList ReadListOrThrow(const char* function, const char* argument, const py::object& o) {
  TensorList list;
  if (!ReadTensorList(function, argument, o.ptr(), &list)) throw py::error_already_set();
  return list;
}

void CheckDefined(const char* function, const char* argument, const TensorList& list) {
  for (const Tensor& t : list) {
    if (!t.defined()) {
      throw py::type_error(absl::StrCat(function, "(): argument '", argument,
                                        "' must be Tensors, but None is among them"));
    }
  }
}

bool SwitchOrThrow(const char* function, const char* argument, const py::object& o) {
  bool value = false;
  if (!ReadSwitch(function, argument, o.ptr(), &value)) throw py::error_already_set();
  return value;
}

void BackwardFunction(const py::object& tensors, const py::object& grads, const py::object& retain,
                      const py::object& create, const py::object& inputs) {
  BackwardArgs b;
  b.outputs = ReadListOrThrow("backward", "tensors", tensors);
  b.grads = ReadListOrThrow("backward", "grad_tensors", grads);
  b.inputs = ReadListOrThrow("backward", "inputs", inputs);
  CheckDefined("backward", "tensors", b.outputs);
  CheckDefined("backward", "inputs", b.inputs);
  b.has_inputs = !inputs.is_none();
  b.retain_graph = SwitchOrThrow("backward", "retain_graph", retain);
  b.create_graph = SwitchOrThrow("backward", "create_graph", create);
  Status s;
  {
    GilRelease unlocked;
    s = RunBackward(std::move(b));
  }
  ThrowIfError(s);
}

py::object GradFunction(const py::object& outputs, const py::object& inputs,
                        const py::object& grads, const py::object& retain, const py::object& create,
                        const py::object& unused) {
  const TensorList of = ReadListOrThrow("grad", "outputs", outputs);
  const TensorList by = ReadListOrThrow("grad", "inputs", inputs);
  TensorList given = ReadListOrThrow("grad", "grad_outputs", grads);
  CheckDefined("grad", "outputs", of);
  CheckDefined("grad", "inputs", by);
  const bool retain_graph = SwitchOrThrow("grad", "retain_graph", retain);
  const bool create_graph = SwitchOrThrow("grad", "create_graph", create);
  const bool allow_unused = SwitchOrThrow("grad", "allow_unused", unused);
  const auto gradients = [&]() -> StatusOr<TensorList> {
    GilRelease unlocked;
    OFL_RETURN_IF_ERROR(CastGradients(of, &given));
    return autograd::Gradients(of, by, given, retain_graph, create_graph, allow_unused);
  };
  return OwnedOrThrow(WrapTensors(ValueOrThrow(gradients())));
}

py::tuple NextFunctions(const Node& node) {
  py::tuple next(node.edges.size());
  for (size_t i = 0; i < node.edges.size(); ++i) {
    const Edge& e = node.edges[i];
    next[i] = py::make_tuple(OwnedOrThrow(WrapNode(e.node)), e.slot);
  }
  return next;
}

void AfterBackward(const py::object& callable) {
  if (!PyCallable_Check(callable.ptr())) {
    throw py::type_error("after_backward(): a callable is needed");
  }
  const SharedObject kept = ShareObject(callable.ptr());
  ThrowIfError(autograd::AddPassEnd([kept](bool ok) -> Status {
    GilAcquire locked;
    const PyRef result(PyObject_CallOneArg(kept.get(), ok ? Py_True : Py_False));
    return result ? OkStatus() : TakeRaised();
  }));
}

// The hooks in force on this thread, innermost last.
thread_local std::vector<std::unique_ptr<SavedTensorHooksGuard>> saved_hooks;

// The functions are kept by the hooks (SavedTensorHooks::foreign_pack).
StatusOr<std::shared_ptr<void>> Pack(PyObject* pack, const Tensor& t) {
  GilAcquire locked;
  PyRef argument(Wrap(t));
  PyRef packed(argument ? PyObject_CallOneArg(pack, argument.get()) : nullptr);
  if (!packed) return TakeRaised();
  return std::shared_ptr<void>(ShareInGraph(packed.get()));
}

StatusOr<Tensor> Unpack(PyObject* unpack, void* packed) {
  GilAcquire locked;
  PyRef result(PyObject_CallOneArg(unpack, static_cast<PyObject*>(packed)));
  if (!result) return TakeRaised();
  if (!IsTensor(result.get())) {
    return Error(ErrorKind::kType, "saved_tensors_hooks(): unpack gave ",
                 Py_TYPE(result.get())->tp_name, ", but must give a Tensor");
  }
  return Unwrap(result.get());
}

void PushSavedHooks(const py::function& pack, const py::function& unpack) {
  SavedTensorHooks hooks;
  hooks.foreign_pack = ShareInGraph(pack.ptr());
  hooks.foreign_unpack = ShareInGraph(unpack.ptr());
  hooks.pack = [f = pack.ptr()](const Tensor& t) { return Pack(f, t); };
  hooks.unpack = [f = unpack.ptr()](void* p) { return Unpack(f, p); };
  saved_hooks.push_back(std::make_unique<SavedTensorHooksGuard>(std::move(hooks)));
}
void PopSavedHooks() {
  if (saved_hooks.empty()) {
    throw std::runtime_error("pop_saved_tensors_hooks(): none are in force on this thread");
  }
  saved_hooks.pop_back();
}

// A node's object holds one reference, as a tensor's does: see tensor_object.cpp.
Node* NodeOf(PyObject* o) {
  auto* instance = reinterpret_cast<py::detail::instance*>(o);
  return instance->get_value_and_holder().value_ptr<Node>();
}
int TraverseNode(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Node* node = NodeOf(o);
  return node ? VisitGraph(o, *node, visit, arg) : 0;
}
int ClearNode(PyObject* o) {
  EndCollection();
  Node* node = NodeOf(o);
  if (node && node->use_count() == 1) node->ClearOwned();
  return 0;
}
destructor free_node = nullptr;  // the base class'
void DeallocNode(PyObject* o) {
  EndCollection();
  free_node(o);
}
void AddCollection(PyHeapTypeObject* type) {
  free_node = type->ht_type.tp_base->tp_dealloc;
  type->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  type->ht_type.tp_dealloc = &DeallocNode;
  type->ht_type.tp_traverse = &TraverseNode;
  type->ht_type.tp_clear = &ClearNode;
}

}  // namespace

PyObject* WrapNode(const Ref<Node>& node) {
  if (!node) Py_RETURN_NONE;
  return py::cast(node).release().ptr();
}

PyObject* WrapHookHandle(HookHandle handle) { return py::cast(std::move(handle)).release().ptr(); }

void AddAutograd(py::module_& m) {
  AddCollector();
  py::class_<Node, Ref<Node>>(m, "Node", py::custom_type_setup(&AddCollection),
                              "A step of backward.")
      .def("name", [](const Node& n) { return n.name(); })
      .def_property_readonly("next_functions", &NextFunctions,
                             "For each input the node that gets its gradient (or None) and which "
                             "of that node's outputs it is.")
      .def("__repr__", [](const Node& n) { return "<" + n.name() + ">"; });
  py::class_<HookHandle>(m, "HookHandle", "A registered hook.")
      .def("remove", &HookHandle::Remove, "Takes the hook away; calling it twice does no harm.")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](HookHandle& h, const py::args&) { h.Remove(); });

  m.def("is_grad_enabled", &GradEnabled, "Whether autograd records on this thread.");
  m.def("set_grad_enabled", &SetGradEnabled, py::arg("enabled"));
  m.def("backward", &BackwardFunction, py::arg("tensors"), py::arg("grad_tensors") = py::none(),
        py::arg("retain_graph") = false, py::arg("create_graph") = false,
        py::arg("inputs") = py::none());
  m.def("grad", &GradFunction, py::arg("outputs"), py::arg("inputs"),
        py::arg("grad_outputs") = py::none(), py::arg("retain_graph") = false,
        py::arg("create_graph") = false, py::arg("allow_unused") = false);
  m.def("after_backward", &AfterBackward, py::arg("callable"),
        "Calls callable(ok) when the backward that is under way on this thread has ended.");
  m.def("push_saved_tensors_hooks", &PushSavedHooks, py::arg("pack"), py::arg("unpack"));
  m.def("pop_saved_tensors_hooks", &PopSavedHooks);
}

}  // namespace oneflow_lite::python
