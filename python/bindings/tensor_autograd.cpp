// SPDX-License-Identifier: Apache-2.0
//
// The methods of Tensor about gradients.
#include <utility>

#include "functional/binary.h"
#include "functional/copy.h"
#include "oneflow_lite/core/error.h"
#include "python/bindings/arguments.h"
#include "python/bindings/backward.h"
#include "python/bindings/collector.h"

namespace oneflow_lite::python {
namespace {

// What a hook gave: a Tensor or None, or an exception.
StatusOr<Tensor> ReadHookResult(const char* function, const PyRef& result) {
  if (!result) return TakeRaised();
  if (result.get() == Py_None) return Tensor();
  if (!IsTensor(result.get())) {
    return Error(ErrorKind::kType, function, "(): the hook gave ", Py_TYPE(result.get())->tp_name,
                 ", but must give a Tensor or None");
  }
  return Unwrap(result.get());
}

// A hook that calls Python. The callable is kept by the hook (Hook::foreign), not by this.
StatusOr<Tensor> CallHook(PyObject* callable, const Tensor& t) {
  GilAcquire locked;
  PyRef argument(Wrap(t));
  PyRef result(argument ? PyObject_CallOneArg(callable, argument.get()) : nullptr);
  return ReadHookResult("register_hook", result);
}
StatusOr<Tensor> CallPostHook(PyObject* callable, const Tensor& leaf) {
  GilAcquire locked;
  PyRef argument(Wrap(leaf));
  PyRef result(argument ? PyObject_CallOneArg(callable, argument.get()) : nullptr);
  return result ? StatusOr<Tensor>(Tensor()) : TakeRaised();
}

template <StatusOr<HookHandle> (*Add)(const Tensor&, GradHook, std::shared_ptr<void>),
          StatusOr<Tensor> (*Run)(PyObject*, const Tensor&)>
PyObject* Register(const char* function, PyObject* self, PyObject* callable) {
  return Protect([&]() -> PyObject* {
    if (!PyCallable_Check(callable)) {
      PyErr_Format(PyExc_TypeError, "%s(): argument 'hook' must be callable, not %s", function,
                   Py_TYPE(callable)->tp_name);
      return nullptr;
    }
    auto handle = Add(
        Unwrap(self), [callable](const Tensor& t) { return Run(callable, t); },
        ShareInGraph(callable));
    return handle.ok() ? WrapHookHandle(*std::move(handle)) : Raise(handle.status());
  });
}

PyObject* RegisterHook(PyObject* self, PyObject* callable) {
  return Register<autograd::AddHook, CallHook>("register_hook", self, callable);
}
PyObject* RegisterPostHook(PyObject* self, PyObject* callable) {
  return Register<autograd::AddPostHook, CallPostHook>("register_post_accumulate_grad_hook", self,
                                                       callable);
}

PyObject* BackwardMethod(PyObject* self, PyObject* args, PyObject* kwargs) {
  return Protect([&]() -> PyObject* {
    static const char* keywords[] = {"gradient", "retain_graph", "create_graph", "inputs", nullptr};
    PyObject *gradient = Py_None, *retain = Py_None, *create = nullptr, *inputs = Py_None;
    BackwardArgs b;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOO:backward", const_cast<char**>(keywords),
                                     &gradient, &retain, &create, &inputs) ||
        !ReadSwitch("backward", "create_graph", create, &b.create_graph)) {
      return nullptr;
    }
    b.outputs.push_back(Unwrap(self));
    b.retain_graph = b.create_graph;
    if (retain != Py_None && !ReadSwitch("backward", "retain_graph", retain, &b.retain_graph)) {
      return nullptr;
    }
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
    PyObject* given = nullptr;
    bool value = true;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:requires_grad_",
                                     const_cast<char**>(keywords), &given) ||
        !ReadFlag("requires_grad_", "requires_grad", given, &value)) {
      return nullptr;
    }
    const Status s = autograd::SetRequiresGrad(Unwrap(self), value);
    return s.ok() ? PyRef::Borrow(self).Give() : Raise(Renamed("requires_grad_", s));
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

}  // namespace

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
  return autograd::Backward(args.outputs, args.grads, args.retain_graph, args.create_graph,
                            args.inputs);
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
    {"register_post_accumulate_grad_hook", RegisterPostHook, METH_O,
     "register_post_accumulate_grad_hook($self, hook, /)\n--\n\n"
     "Calls hook(tensor) after backward has added into .grad of this leaf. Gives a handle with\n"
     "remove()."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace oneflow_lite::python
