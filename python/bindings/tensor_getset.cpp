// SPDX-License-Identifier: Apache-2.0
//
// The attributes of a Tensor.
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/global.h"
#include "python/bindings/arguments.h"
#include "python/bindings/classes.h"
#include "python/bindings/out_argument.h"
#include "python/bindings/size.h"

namespace oneflow_lite::python {
namespace {

PyObject* GetShape(PyObject* self, void*) { return WrapSize(Unwrap(self).shape()); }
PyObject* GetDType(PyObject* self, void*) { return WrapDType(Unwrap(self).dtype()); }
PyObject* GetDevice(PyObject* self, void*) {
  return Protect([&] { return WrapDevice(Unwrap(self).device()); });
}
PyObject* GetNdim(PyObject* self, void*) { return PyLong_FromLong(Unwrap(self).ndim()); }
PyObject* GetItemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(SizeOf(Unwrap(self).dtype()));
}
PyObject* GetNbytes(PyObject* self, void*) { return PyLong_FromSize_t(Unwrap(self).nbytes()); }
PyObject* GetVersion(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(Unwrap(self).version());
}
PyObject* IsOn(PyObject* self, void* type) {
  return PyBool_FromLong(Unwrap(self).device().type ==
                         static_cast<DeviceType>(reinterpret_cast<intptr_t>(type)));
}

PyObject* GetRequiresGrad(PyObject* self, void*) {
  return PyBool_FromLong(autograd::RequiresGrad(Unwrap(self)));
}
int SetRequiresGrad(PyObject* self, PyObject* value, void*) {
  return Protect([&] {
    if (!value || !PyBool_Check(value)) {
      PyErr_SetString(PyExc_TypeError, "requires_grad must be True or False");
      return -1;
    }
    const Status s = autograd::SetRequiresGrad(Unwrap(self), value == Py_True);
    return s.ok() ? 0 : (Raise(s), -1);
  });
}

const AutogradMeta* MetaOrNull(PyObject* self) {
  return static_cast<const AutogradMeta*>(Unwrap(self).impl()->autograd.get());
}

// Whether backward leaves no gradient here, whatever the program expects.
bool NeverHasGrad(PyObject* self) {
  const AutogradMeta* meta = MetaOrNull(self);
  return !autograd::IsLeaf(Unwrap(self)) && !(meta && meta->retained);
}

constexpr char kNonLeafGrad[] =
    "the .grad of a tensor that is not a leaf is read: backward leaves none there; call "
    "retain_grad() on the tensor before backward, or read the .grad of a leaf";

PyObject* GetGrad(PyObject* self, void*) {
  return Protect([&]() -> PyObject* {
    const Tensor grad = autograd::Grad(Unwrap(self));
    if (!grad.defined() && NeverHasGrad(self) &&
        PyErr_WarnEx(PyExc_UserWarning, kNonLeafGrad, 1) != 0) {
      return nullptr;
    }
    return Wrap(grad);
  });
}
int SetGrad(PyObject* self, PyObject* value, void*) {
  return Protect([&] {
    Tensor grad;
    if (value == self) {
      PyErr_SetString(PyExc_RuntimeError, "grad: a tensor cannot be its own gradient");
      return -1;
    }
    if (value && IsTensor(value)) {
      grad = Unwrap(value);
    } else if (value && value != Py_None) {
      PyErr_Format(PyExc_TypeError, "grad must be Tensor or None, not %s", Py_TYPE(value)->tp_name);
      return -1;
    }
    const Status s = autograd::SetGrad(Unwrap(self), std::move(grad));
    return s.ok() ? 0 : (Raise(s), -1);
  });
}

PyObject* GetGradFn(PyObject* self, void*) {
  return Protect([&] { return WrapNode(autograd::GradFn(Unwrap(self))); });
}
PyObject* GetIsLeaf(PyObject* self, void*) {
  return PyBool_FromLong(autograd::IsLeaf(Unwrap(self)));
}
PyObject* GetOutputNr(PyObject* self, void*) {
  const AutogradMeta* meta = MetaOrNull(self);
  return PyLong_FromLong(meta ? meta->output_nr : 0);
}
PyObject* GetRetainsGrad(PyObject* self, void*) {
  const AutogradMeta* meta = MetaOrNull(self);
  return PyBool_FromLong(meta && meta->retained);
}
PyObject* GetBase(PyObject* self, void*) {
  return Protect([&] { return Wrap(autograd::Base(Unwrap(self))); });
}

// What is changed in place there is not counted as a change of the tensor; of a global tensor it
// is.
PyObject* GetData(PyObject* self, void*) {
  return Protect([&] {
    const Tensor& t = Unwrap(self);
    if (GlobalOf(t)) return Wrap(t.Detach());
    return Wrap(Tensor(MakeRef<TensorImpl>(Storage::Aside(t.storage()), t.shape(), t.strides(),
                                           t.offset(), t.dtype())));
  });
}
// The tensor takes over storage and geometry of another, history and object stay.
int SetData(PyObject* self, PyObject* value, void*) {
  return Protect([&] {
    if (!value || !IsTensor(value)) {
      PyErr_SetString(PyExc_TypeError, "data must be a Tensor");
      return -1;
    }
    const Tensor& t = Unwrap(self);
    const Tensor from = Unwrap(value);
    if (autograd::RequiresGrad(t) && !IsFloating(from.dtype())) {
      Raise(DTypeMismatch("data", "the new data", from.dtype(),
                          "a floating dtype, because the tensor requires grad"));
      return -1;
    }
    TakeOver(t, from);
    return 0;
  });
}

PyObject* GetT(PyObject* self, void*) {
  return Protect([&] {
    Dims dims;
    for (int i = Unwrap(self).ndim(); i-- > 0;) dims.push_back(i);
    return WrapResult(functional::Permute(Unwrap(self), dims));
  });
}
// `name`: the attribute that was asked for.
PyObject* GetMatrixT(PyObject* self, void* name) {
  return Protect([&] {
    if (Unwrap(self).ndim() < 2) {
      return Raise(ShapeMismatch(static_cast<const char*>(name), "the tensor", Unwrap(self).shape(),
                                 "at least 2 dims"));
    }
    return WrapResult(functional::Transpose(Unwrap(self), -2, -1));
  });
}

PyObject* GetH(PyObject* self, void*) {
  return Protect([&] {
    const int ndim = Unwrap(self).ndim();
    if (ndim != 0 && ndim != 2) {
      return Raise(ShapeMismatch("H", "the tensor", Unwrap(self).shape(), "2 dims"));
    }
    return GetT(self, nullptr);
  });
}

void* OfType(DeviceType t) { return reinterpret_cast<void*>(static_cast<intptr_t>(t)); }

}  // namespace

PyGetSetDef tensor_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"shape", GetShape, nullptr, "The size of each dim, a tuple.", nullptr},
    {"dtype", GetDType, nullptr, "The type of the elements.", nullptr},
    {"device", GetDevice, nullptr, "Where the elements are.", nullptr},
    {"ndim", GetNdim, nullptr, "The number of dims.", nullptr},
    {"itemsize", GetItemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", GetNbytes, nullptr, "Bytes of all elements.", nullptr},
    {"is_cuda", IsOn, nullptr, "Whether it is on a CUDA device.", OfType(DeviceType::kCUDA)},
    {"is_cpu", IsOn, nullptr, "Whether it is on the CPU.", OfType(DeviceType::kCPU)},
    {"is_meta", IsOn, nullptr, "Whether it has no data.", OfType(DeviceType::kMeta)},
    {"requires_grad", GetRequiresGrad, SetRequiresGrad,
     "Whether operations on it are recorded for backward.", nullptr},
    {"grad", GetGrad, SetGrad, "The gradient that backward left here, or None.", nullptr},
    {"grad_fn", GetGradFn, nullptr, "The node that made it, None for a leaf.", nullptr},
    {"is_leaf", GetIsLeaf, nullptr, "Whether no recorded operation made it.", nullptr},
    {"output_nr", GetOutputNr, nullptr, "Which output of grad_fn it is.", nullptr},
    {"retains_grad", GetRetainsGrad, nullptr, "Whether retain_grad() was called on a non-leaf.",
     nullptr},
    {"_version", GetVersion, nullptr, "How often its memory was changed in place.", nullptr},
    {"_base", GetBase, nullptr, "The tensor that it is a view of, or None.", nullptr},
    {"data", GetData, SetData, "The same memory without history.", nullptr},
    {"T", GetT, nullptr, "The dims in reversed order.", nullptr},
    {"mT", GetMatrixT, nullptr, "The last two dims exchanged.", const_cast<char*>("mT")},
    {"mH", GetMatrixT, nullptr, "The last two dims exchanged, as mT: the numbers are real.",
     const_cast<char*>("mH")},
    {"H", GetH, nullptr, "A matrix with its dims exchanged.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace oneflow_lite::python
