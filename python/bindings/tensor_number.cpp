// SPDX-License-Identifier: Apache-2.0
//
// Operators and conversions of Tensor.
#include <cstring>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/matmul.h"
#include "functional/unary.h"
#include "python/bindings/arguments.h"
#include "python/bindings/creation.h"
#include "python/bindings/read.h"

namespace oneflow_lite::python {
namespace {

// The tensor that an array of NumPy's counts as beside `other`: which must be in host memory, and
// without a gradient, since nothing would be recorded of the array's side.
Match ArrayAsOperand(PyObject* o, PyObject* other, Tensor* out) {
  if (!IsArray(o)) return Match::kNo;
  if (IsTensor(other)) {
    if (const Status s = CheckBesideArray("operator", Unwrap(other)); !s.ok()) {
      Raise(s);
      return Match::kError;
    }
  }
  *out = TensorOfArray("operator", o);
  return out->defined() ? Match::kYes : Match::kError;
}

Match AsOperand(PyObject* o, PyObject* other, Operand* out) {
  if (IsTensor(o)) {
    *out = Unwrap(o);
    return Match::kYes;
  }
  Scalar s;
  Match m = AsScalar(o, &s);
  if (m == Match::kYes) *out = s;
  if (m != Match::kNo) return m;
  Tensor t;
  m = ArrayAsOperand(o, other, &t);
  if (m == Match::kYes) *out = std::move(t);
  return m;
}

// Other classes may know what to do with a tensor; NumPy's other numbers do not.
PyObject* NotOperand(PyObject* o) {
  const char* type = Py_TYPE(o)->tp_name;
  if (std::strncmp(type, "numpy.", 6) != 0) Py_RETURN_NOTIMPLEMENTED;
  PyErr_Format(PyExc_TypeError, "operators take tensors, arrays and real numbers, not %s", type);
  return nullptr;
}

bool IsLarge(const Operand& o) {
  const Tensor* t = std::get_if<Tensor>(&o);
  return t && t->numel() >= kLargeWork;
}

template <StatusOr<Tensor> (*F)(const Operand&, const Operand&)>
PyObject* Binary(PyObject* a, PyObject* b) {
  return Protect([&]() -> PyObject* {
    Operand x, y;
    const Match mx = AsOperand(a, b, &x), my = AsOperand(b, a, &y);
    if (mx == Match::kError || my == Match::kError) return nullptr;
    if (mx == Match::kNo) return NotOperand(a);
    if (my == Match::kNo) return NotOperand(b);
    StatusOr<Tensor> result = Tensor();
    {
      GilRelease unlocked(IsLarge(x) || IsLarge(y));
      result = F(x, y);
    }
    return WrapResult(std::move(result));
  });
}

template <StatusOr<Tensor> (*F)(const Tensor&, const Operand&)>
PyObject* InPlace(PyObject* self, PyObject* b) {
  return Protect([&]() -> PyObject* {
    Operand y;
    const Match m = AsOperand(b, self, &y);
    if (m == Match::kError) return nullptr;
    if (m == Match::kNo) return NotOperand(b);
    Status s;
    {
      GilRelease unlocked(Unwrap(self).numel() >= kLargeWork);
      s = F(Unwrap(self), y).status();
    }
    return s.ok() ? PyRef::Borrow(self).Give() : Raise(s);
  });
}

// No number is a factor of a matrix product. An array has the dtype it happens to have.
Status PromoteWithArray(Tensor* x, Tensor* y) {
  const DType both = PromoteTypes(x->dtype(), y->dtype());
  OFL_ASSIGN_OR_RETURN(*x, functional::Cast(*x, both));
  OFL_ASSIGN_OR_RETURN(*y, functional::Cast(*y, both));
  return OkStatus();
}

Match AsFactor(PyObject* o, PyObject* other, Tensor* out) {
  if (!IsTensor(o)) return ArrayAsOperand(o, other, out);
  *out = Unwrap(o);
  return Match::kYes;
}

PyObject* Matmul(PyObject* a, PyObject* b) {
  return Protect([&]() -> PyObject* {
    Tensor x, y;
    const Match mx = AsFactor(a, b, &x), my = AsFactor(b, a, &y);
    if (mx == Match::kError || my == Match::kError) return nullptr;
    if (mx == Match::kNo) return NotOperand(a);
    if (my == Match::kNo) return NotOperand(b);
    if (!IsTensor(a) || !IsTensor(b)) {
      if (const Status s = PromoteWithArray(&x, &y); !s.ok()) return Raise(s);
    }
    StatusOr<Tensor> result = Tensor();
    {
      GilRelease unlocked(x.numel() >= kLargeWork || y.numel() >= kLargeWork);
      result = functional::Matmul(x, y);
    }
    return WrapResult(std::move(result));
  });
}

PyObject* Power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) return NotOperand(modulus);
  return Binary<functional::Pow>(a, b);
}
PyObject* Invert(PyObject* self) {
  return Protect([&] { return WrapResult(functional::BitwiseNot(Unwrap(self))); });
}
PyObject* Absolute(PyObject* self) {
  return Protect([&] { return WrapResult(functional::Abs(Unwrap(self))); });
}
PyObject* Negative(PyObject* self) {
  return Protect([&] { return WrapResult(functional::Neg(Unwrap(self))); });
}
PyObject* Positive(PyObject* self) { return PyRef::Borrow(self).Give(); }

PyObject* Compare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_LT:
      return Binary<functional::Lt>(a, b);
    case Py_LE:
      return Binary<functional::Le>(a, b);
    case Py_EQ:
      return Binary<functional::Eq>(a, b);
    case Py_NE:
      return Binary<functional::Ne>(a, b);
    case Py_GT:
      return Binary<functional::Gt>(a, b);
    default:
      return Binary<functional::Ge>(a, b);
  }
}

int Truth(PyObject* self) {
  return Protect([&] {
    PyRef item(Item(Unwrap(self), "bool"));
    return item ? PyObject_IsTrue(item.get()) : -1;
  });
}
PyObject* ToInt(PyObject* self) {
  return Protect([&]() -> PyObject* {
    PyRef item(Item(Unwrap(self), "int"));
    return item ? PyNumber_Long(item.get()) : nullptr;
  });
}
PyObject* ToFloat(PyObject* self) {
  return Protect([&]() -> PyObject* {
    PyRef item(Item(Unwrap(self), "float"));
    return item ? PyNumber_Float(item.get()) : nullptr;
  });
}
PyObject* ToIndex(PyObject* self) {
  return Protect([&]() -> PyObject* {
    const Tensor& t = Unwrap(self);
    if (!IsIntegral(t.dtype()) || t.numel() != 1) {
      PyErr_SetString(PyExc_TypeError,
                      "only a tensor with one element of an integer dtype can be an index");
      return nullptr;
    }
    return Item(t, "index");
  });
}

}  // namespace

PyType_Slot number_slots[] = {{Py_nb_add, Slot(&Binary<functional::Add>)},
                              {Py_nb_subtract, Slot(&Binary<functional::Sub>)},
                              {Py_nb_multiply, Slot(&Binary<functional::Mul>)},
                              {Py_nb_true_divide, Slot(&Binary<functional::Div>)},
                              {Py_nb_matrix_multiply, Slot(&Matmul)},
                              {Py_nb_inplace_add, Slot(&InPlace<functional::AddInto>)},
                              {Py_nb_inplace_subtract, Slot(&InPlace<functional::SubInto>)},
                              {Py_nb_inplace_multiply, Slot(&InPlace<functional::MulInto>)},
                              {Py_nb_inplace_true_divide, Slot(&InPlace<functional::DivInto>)},
                              {Py_nb_negative, Slot(&Negative)},
                              {Py_nb_positive, Slot(&Positive)},
                              {Py_nb_absolute, Slot(&Absolute)},
                              {Py_nb_power, Slot(&Power)},
                              {Py_nb_and, Slot(&Binary<functional::BitwiseAnd>)},
                              {Py_nb_or, Slot(&Binary<functional::BitwiseOr>)},
                              {Py_nb_xor, Slot(&Binary<functional::BitwiseXor>)},
                              {Py_nb_invert, Slot(&Invert)},
                              {Py_nb_bool, Slot(&Truth)},
                              {Py_nb_int, Slot(&ToInt)},
                              {Py_nb_float, Slot(&ToFloat)},
                              {Py_nb_index, Slot(&ToIndex)},
                              {Py_tp_richcompare, Slot(&Compare)},
                              {0, nullptr}};

}  // namespace oneflow_lite::python
