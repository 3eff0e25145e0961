// SPDX-License-Identifier: Apache-2.0
//
// The methods of Tensor about gradients.
#include <utility>

#include "functional/binary.h"
#include "functional/copy.h"
#include "python/bindings/arguments.h"
#include "python/bindings/backward.h"

namespace oneflow_lite::python {
namespace {

// A hook of a tensor that calls Python.
struct PythonHook {
  std::shared_ptr<HookSlot> slot;

  StatusOr<Tensor> operator()(const Tensor& grad) const {
    GilAcquire locked;
    if (!slot->callable) return Tensor();
    const SharedObject callable = slot->callable;  // the hook may remove itself
    PyRef argument(Wrap(grad));
    PyRef result(argument ? PyObject_CallOneArg(callable.get(), argument.get()) : nullptr);
    if (!result) return TakeRaised();
    if (result.get() == Py_None) return Tensor();
    if (!IsTensor(result.get())) {
      return Error(ErrorKind::kType, "register_hook(): the hook gave ",
                   Py_TYPE(result.get())->tp_name, ", but must give a Tensor or None");
    }
    return Unwrap(result.get());
  }
};

PyObject* RegisterHook(PyObject* self, PyObject* callable) {
  return Protect([&]() -> PyObject* {
    if (!PyCallable_Check(callable)) {
      PyErr_Format(PyExc_TypeError, "register_hook(): argument 'hook' must be callable, not %s",
                   Py_TYPE(callable)->tp_name);
      return nullptr;
    }
    auto slot = std::make_shared<HookSlot>(HookSlot{ShareObject(callable)});
    PyRef handle(WrapHookHandle(slot));
    if (!handle) return nullptr;
    const Status s = autograd::AddHook(Unwrap(self), PythonHook{std::move(slot)});
    return s.ok() ? handle.Give() : Raise(s);
  });
}

PyObject* BackwardMethod(PyObject* self, PyObject* args, PyObject* kwargs) {
  return Protect([&]() -> PyObject* {
    static const char* keywords[] = {"gradient", "retain_graph", "create_graph", "inputs", nullptr};
    PyObject *gradient = Py_None, *retain = Py_None, *inputs = Py_None;
    int create = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOpO:backward", const_cast<char**>(keywords),
                                     &gradient, &retain, &create, &inputs)) {
      return nullptr;
    }
    BackwardArgs b;
    b.outputs.push_back(Unwrap(self));
    b.create_graph = create;
    const int keeps = retain == Py_None ? create : PyObject_IsTrue(retain);
    if (keeps < 0) return nullptr;
    b.retain_graph = keeps;
    b.has_inputs = inputs != Py_None;
    if (gradient != Py_None) {
      if (!IsTensor(gradient)) {
        PyErr_Format(PyExc_TypeError,
                     "backward(): argument 'gradient' must be Tensor or None, not %s",
                     Py_TYPE(gradient)->tp_name);
        return nullptr;
      }
      b.grads.push_back(Unwrap(gradient));
    }
    if (!ReadTensorList("backward", "inputs", inputs, &b.inputs)) return nullptr;
    Status s;
    {
      GilRelease unlocked;
      s = RunBackward(std::move(b));
    }
    if (!s.ok()) return Raise(s);
    Py_RETURN_NONE;
  });
}

PyObject* RequiresGradInPlace(PyObject* self, PyObject* args, PyObject* kwargs) {
  return Protect([&]() -> PyObject* {
    static const char* keywords[] = {"requires_grad", nullptr};
    int value = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:requires_grad_",
                                     const_cast<char**>(keywords), &value)) {
      return nullptr;
    }
    const Status s = autograd::SetRequiresGrad(Unwrap(self), value);
    return s.ok() ? PyRef::Borrow(self).Give() : Raise(s);
  });
}

PyObject* RetainGradMethod(PyObject* self, PyObject*) {
  return Protect([&]() -> PyObject* {
    const Status s = autograd::RetainGrad(Unwrap(self));
    if (!s.ok()) return Raise(s);
    Py_RETURN_NONE;
  });
}

// What was computed from the tensor keeps its history; the tensor itself becomes a leaf.
PyObject* DetachInPlace(PyObject* self, PyObject*) {
  return Protect([&]() -> PyObject* {
    const Tensor& t = Unwrap(self);
    if (autograd::Base(t).defined()) {
      return Raise(Error(ErrorKind::kRuntime,
                         "detach_(): a view cannot be detached in place; use detach()"));
    }
    if (auto* meta = static_cast<AutogradMeta*>(t.impl()->autograd.get())) {
      if (meta->retained) meta->grad = *std::exchange(meta->retained, nullptr);
      meta->grad_fn = Ref<Node>();
      meta->output_nr = 0;
      meta->requires_grad = false;
    }
    return PyRef::Borrow(self).Give();
  });
}

template <class F>
void ForEachPythonHook(const Tensor& t, F&& f) {
  auto* meta = static_cast<AutogradMeta*>(t.impl()->autograd.get());
  if (!meta) return;
  const auto see = [&](GradHook& hook) {
    if (auto* h = hook.target<PythonHook>()) f(*h->slot, h->slot.use_count());
  };
  for (GradHook& hook : meta->hooks) see(hook);
  // Those of a non-leaf hang on its node, which what was computed from it keeps too.
  if (!meta->grad_fn || meta->grad_fn->use_count() != 1) return;
  for (auto& [output, hook] : meta->grad_fn->hooks) see(hook);
}

}  // namespace

int VisitHooks(const Tensor& t, visitproc visit, void* arg) {
  int result = 0;
  ForEachPythonHook(t, [&](HookSlot& slot, long owners) {
    if (result == 0 && slot.callable && owners == 1 && slot.callable.use_count() == 1) {
      result = visit(slot.callable.get(), arg);
    }
  });
  return result;
}

void ClearHooks(const Tensor& t) {
  ForEachPythonHook(t, [](HookSlot& slot, long) { slot.callable.reset(); });
}

bool ReadTensorList(const char* function, const char* argument, PyObject* o, TensorList* out) {
  if (o == Py_None) return true;
  if (IsTensor(o)) {
    out->push_back(Unwrap(o));
    return true;
  }
  if (!Items::AreIn(o)) {
    PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be Tensor or a list of Tensors, not %s",
                 function, argument, Py_TYPE(o)->tp_name);
    return false;
  }
  const Items items(o);
  for (Py_ssize_t i = 0; i < items.size(); ++i) {
    const PyRef item = items[i];
    if (!item) return RaiseChanged(function, argument);
    if (IsTensor(item.get())) {
      out->push_back(Unwrap(item.get()));
    } else if (item.get() == Py_None) {
      out->push_back(Tensor());
    } else {
      PyErr_Format(PyExc_TypeError, "%s(): item %zd of argument '%s' must be Tensor, not %s",
                   function, i, argument, Py_TYPE(item.get())->tp_name);
      return false;
    }
  }
  return true;
}

Status CastGradients(const TensorList& outputs, TensorList* grads) {
  for (size_t i = 0; i < grads->size() && i < outputs.size(); ++i) {
    Tensor& g = (*grads)[i];
    const DType dtype = outputs[i].dtype();
    if (!g.defined() || g.dtype() == dtype || !IsFloating(dtype)) continue;
    OFL_ASSIGN_OR_RETURN(g, functional::Cast(g, dtype));
  }
  return OkStatus();
}

Status RunBackward(BackwardArgs args) {
  if (args.has_inputs && args.inputs.empty()) {
    return Error(ErrorKind::kRuntime,
                 "backward(): inputs is empty; without it all leaves get gradients");
  }
  OFL_RETURN_IF_ERROR(CastGradients(args.outputs, &args.grads));
  if (!args.has_inputs) {
    return autograd::Backward(args.outputs, args.grads, args.retain_graph, args.create_graph);
  }
  OFL_ASSIGN_OR_RETURN(TensorList grads,
                       autograd::Gradients(args.outputs, args.inputs, args.grads, args.retain_graph,
                                           args.create_graph, true));
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    const Tensor before = autograd::Grad(args.inputs[i]);
    if (before.defined()) {
      OFL_ASSIGN_OR_RETURN(grads[i], functional::Add(before, grads[i]));
    }
    OFL_RETURN_IF_ERROR(autograd::SetGrad(args.inputs[i], grads[i]));
  }
  return OkStatus();
}

PyMethodDef autograd_methods[] = {
    {"backward", WithKeywords<BackwardMethod>(), METH_VARARGS | METH_KEYWORDS,
     "backward($self, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     "Adds the gradients of this tensor into the .grad of the leaves, or of `inputs` alone.\n\n"
     "gradient is that of this tensor itself; it may be left out where there is one element."},
    {"requires_grad_", WithKeywords<RequiresGradInPlace>(), METH_VARARGS | METH_KEYWORDS,
     "requires_grad_($self, requires_grad=True)\n--\n\nSets requires_grad; gives the tensor."},
    {"detach_", DetachInPlace, METH_NOARGS,
     "detach_($self, /)\n--\n\nMakes the tensor a leaf that requires no grad; gives the tensor."},
    {"retain_grad", RetainGradMethod, METH_NOARGS,
     "retain_grad($self, /)\n--\n\nMakes backward leave a gradient in .grad of a non-leaf too."},
    {"register_hook", RegisterHook, METH_O,
     "register_hook($self, hook, /)\n--\n\n"
     "Calls hook(grad) when backward has the tensor's gradient; a Tensor that it gives replaces\n"
     "the gradient. Gives a handle with remove()."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
