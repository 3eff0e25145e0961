// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/out_argument.h"

#include <vector>

#include "functional/copy.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "python/bindings/errors.h"
#include "python/bindings/items.h"
#include "python/bindings/named_results.h"
#include "python/bindings/tensor_object.h"

namespace oneflow_lite::python {
namespace {

int Generality(DType t) { return t == DType::kBool ? 0 : IsFloating(t) ? 2 : 1; }

Status Store(const char* function, const Tensor& result, const Tensor& out) {
  if (autograd::RequiresGrad(result)) {
    return Error(ErrorKind::kRuntime, function,
                 "(): out= keeps no history, but the result requires grad; call it under no_grad() "
                 "or without out=");
  }
  if (Generality(result.dtype()) > Generality(out.dtype())) {
    return DTypeMismatch(function, "out", out.dtype(), Name(result.dtype()));
  }
  if (result.device() != out.device()) {
    return DeviceMismatch(function, "out", out.device(), "the result", result.device());
  }
  if (result.IsSame(out)) return OkStatus();
  if (result.shape() == out.shape()) {
    return Renamed(function, functional::CopyInto(out, result).status());
  }
  if (out.numel() != 0) {
    return ShapeMismatch(function, "out", out.shape(), result.shape().ToString());
  }
  OFL_ASSIGN_OR_RETURN(const Tensor cast, functional::Cast(result, out.dtype()));
  // A view, or the argument itself, must not be shared with the target unseen.
  OFL_ASSIGN_OR_RETURN(const Tensor own, functional::Clone(cast));
  TakeOver(out, own);
  return OkStatus();
}

// Whether a call may write `out` before it has read t.
bool MayWriteBefore(const Tensor& out, const Tensor& t) {
  if (!t.defined()) return true;
  return !t.impl()->global_spec && !t.storage()->Overlaps(*out.storage()) &&
         !(GradEnabled() && autograd::RequiresGrad(t));
}

}  // namespace

Tensor WrittenAtOnce(absl::Span<const Value> values, PyObject* out) {
  if (!IsTensor(out)) return Tensor();
  const Tensor& t = Unwrap(out);
  if (!t.is_contiguous() || t.numel() == 0 || t.impl()->global_spec || t.impl()->autograd ||
      t.device().type == DeviceType::kMeta) {
    return Tensor();
  }
  for (const Value& value : values) {
    if (const Tensor* one = std::get_if<Tensor>(&value)) {
      if (!MayWriteBefore(t, *one)) return Tensor();
    } else if (const TensorList* list = std::get_if<TensorList>(&value)) {
      for (const Tensor& each : *list) {
        if (!MayWriteBefore(t, each)) return Tensor();
      }
    }
  }
  return t;
}

void TakeOver(const Tensor& t, const Tensor& from) {
  TensorImpl& impl = *t.impl();
  impl.shape = from.shape();
  impl.strides = from.strides();
  impl.offset = from.offset();
  impl.numel = from.numel();
  impl.dtype = from.dtype();
  impl.contiguous = from.is_contiguous();
  impl.storage = from.storage();
  impl.global_spec = from.impl()->global_spec;
}

PyObject* StoreResults(const char* function, const Value& result, PyObject* out,
                       PyTypeObject* named) {
  TensorList results;
  std::vector<PyRef> targets;
  if (const Tensor* one = std::get_if<Tensor>(&result)) {
    results.push_back(*one);
    targets.push_back(PyRef::Borrow(out));
  } else if (const TensorList* list = std::get_if<TensorList>(&result)) {
    results = *list;
    if (Items::AreIn(out)) {
      const Items items(out);
      for (Py_ssize_t i = 0; i < items.size(); ++i) targets.push_back(items[i]);
    }
  }
  bool fits = !targets.empty() && targets.size() == results.size();
  for (const PyRef& t : targets) fits = fits && IsTensor(t.get());
  if (!fits) {
    PyErr_Format(PyExc_TypeError, "%s(): argument 'out' must be %s", function,
                 std::holds_alternative<Tensor>(result) ? "Tensor"
                                                        : "a tuple of as many Tensors as results");
    return nullptr;
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    const Status s = Store(function, results[i], Unwrap(targets[i].get()));
    if (!s.ok()) return Raise(s);
  }
  if (!named || std::holds_alternative<Tensor>(result)) return PyRef::Borrow(out).Give();
  return WrapNamed(named, targets);
}

}  // namespace oneflow_lite::python
