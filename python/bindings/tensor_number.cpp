// SPDX-License-Identifier: Apache-2.0
//
// Operators and conversions of Tensor.
#include <cstring>

#include "functional/binary.h"
#include "functional/binary_math.h"
#include "functional/copy.h"
#include "functional/matmul.h"
#include "functional/unary.h"
#include "oneflow_lite/core/error.h"
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

// A function's name as an argument of a template: errors speak of the operator's function.
template <size_t N>
struct Named {
  constexpr Named(const char (&text)[N]) {  // NOLINT: implicit, to be written as a literal
    for (size_t i = 0; i < N; ++i) name[i] = text[i];
  }
  char name[N];
};

// An operand is read as by tensor(), which the user did not call.
PyObject* BadOperand(const char* name) {
  RenameRaised("tensor", name);
  RenameRaised("operator", name);
  return nullptr;
}

template <StatusOr<Tensor> (*F)(const Operand&, const Operand&), Named kName>
PyObject* Binary(PyObject* a, PyObject* b) {
  return Protect([&]() -> PyObject* {
    Operand x, y;
    const Match mx = AsOperand(a, b, &x), my = AsOperand(b, a, &y);
    if (mx == Match::kError || my == Match::kError) return BadOperand(kName.name);
    if (mx == Match::kNo) return NotOperand(a);
    if (my == Match::kNo) return NotOperand(b);
    StatusOr<Tensor> result = Tensor();
    {
      GilRelease unlocked(IsLarge(x) || IsLarge(y));
      result = F(x, y);
    }
    if (!result.ok()) return Raise(Renamed(kName.name, result.status()));
    return Wrap(*std::move(result));
  });
}

template <StatusOr<Tensor> (*F)(const Tensor&, const Operand&), Named kName>
PyObject* InPlace(PyObject* self, PyObject* b) {
  return Protect([&]() -> PyObject* {
    Operand y;
    const Match m = AsOperand(b, self, &y);
    if (m == Match::kError) return BadOperand(kName.name);
    if (m == Match::kNo) return NotOperand(b);
    Status s;
    if (Unwrap(self).numel() < kLargeWork) {
      s = F(Unwrap(self), y).status();
    } else {
      const Tensor x = Unwrap(self);
      GilRelease unlocked;
      s = F(x, y).status();
    }
    return s.ok() ? PyRef::Borrow(self).Give() : Raise(Renamed(kName.name, s));
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
    if (mx == Match::kError || my == Match::kError) return BadOperand("matmul");
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
    if (!result.ok()) return Raise(Renamed("matmul", result.status()));
    return Wrap(*std::move(result));
  });
}

PyObject* Power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) return NotOperand(modulus);
  return Binary<functional::Pow, "pow">(a, b);
}
PyObject* InPlacePower(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) return NotOperand(modulus);
  return InPlace<functional::PowInto, "pow_">(a, b);
}
template <StatusOr<Tensor> (*F)(const Tensor&), Named kName>
PyObject* Unary(PyObject* self) {
  return Protect([&]() -> PyObject* {
    const Tensor x = Unwrap(self);
    StatusOr<Tensor> result = Tensor();
    {
      GilRelease unlocked(x.numel() >= kLargeWork);
      result = F(x);
    }
    if (!result.ok()) return Raise(Renamed(kName.name, result.status()));
    return Wrap(*std::move(result));
  });
}
PyObject* Positive(PyObject* self) { return PyRef::Borrow(self).Give(); }

PyObject* Compare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_LT:
      return Binary<functional::Lt, "lt">(a, b);
    case Py_LE:
      return Binary<functional::Le, "le">(a, b);
    case Py_EQ:
      return Binary<functional::Eq, "eq">(a, b);
    case Py_NE:
      return Binary<functional::Ne, "ne">(a, b);
    case Py_GT:
      return Binary<functional::Gt, "gt">(a, b);
    default:
      return Binary<functional::Ge, "ge">(a, b);
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

PyType_Slot number_slots[] = {
    {Py_nb_add, Slot(&Binary<functional::Add, "add">)},
    {Py_nb_subtract, Slot(&Binary<functional::Sub, "sub">)},
    {Py_nb_multiply, Slot(&Binary<functional::Mul, "mul">)},
    {Py_nb_true_divide, Slot(&Binary<functional::Div, "div">)},
    {Py_nb_matrix_multiply, Slot(&Matmul)},
    {Py_nb_inplace_add, Slot(&InPlace<functional::AddInto, "add_">)},
    {Py_nb_inplace_subtract, Slot(&InPlace<functional::SubInto, "sub_">)},
    {Py_nb_inplace_multiply, Slot(&InPlace<functional::MulInto, "mul_">)},
    {Py_nb_inplace_true_divide, Slot(&InPlace<functional::DivInto, "div_">)},
    {Py_nb_floor_divide, Slot(&Binary<functional::FloorDivide, "floor_divide">)},
    {Py_nb_remainder, Slot(&Binary<functional::Remainder, "remainder">)},
    {Py_nb_lshift, Slot(&Binary<functional::BitwiseLeftShift, "bitwise_left_shift">)},
    {Py_nb_rshift, Slot(&Binary<functional::BitwiseRightShift, "bitwise_right_shift">)},
    {Py_nb_inplace_power, Slot(&InPlacePower)},
    {Py_nb_inplace_floor_divide, Slot(&InPlace<functional::FloorDivideInto, "floor_divide_">)},
    {Py_nb_inplace_remainder, Slot(&InPlace<functional::RemainderInto, "remainder_">)},
    {Py_nb_inplace_and, Slot(&InPlace<functional::BitwiseAndInto, "bitwise_and_">)},
    {Py_nb_inplace_or, Slot(&InPlace<functional::BitwiseOrInto, "bitwise_or_">)},
    {Py_nb_inplace_xor, Slot(&InPlace<functional::BitwiseXorInto, "bitwise_xor_">)},
    {Py_nb_inplace_lshift, Slot(&InPlace<functional::BitwiseLeftShiftInto, "bitwise_left_shift_">)},
    {Py_nb_inplace_rshift,
     Slot(&InPlace<functional::BitwiseRightShiftInto, "bitwise_right_shift_">)},
    {Py_nb_negative, Slot(&Unary<functional::Neg, "neg">)},
    {Py_nb_positive, Slot(&Positive)},
    {Py_nb_absolute, Slot(&Unary<functional::Abs, "abs">)},
    {Py_nb_power, Slot(&Power)},
    {Py_nb_and, Slot(&Binary<functional::BitwiseAnd, "bitwise_and">)},
    {Py_nb_or, Slot(&Binary<functional::BitwiseOr, "bitwise_or">)},
    {Py_nb_xor, Slot(&Binary<functional::BitwiseXor, "bitwise_xor">)},
    {Py_nb_invert, Slot(&Unary<functional::BitwiseNot, "bitwise_not">)},
    {Py_nb_bool, Slot(&Truth)},
    {Py_nb_int, Slot(&ToInt)},
    {Py_nb_float, Slot(&ToFloat)},
    {Py_nb_index, Slot(&ToIndex)},
    {Py_tp_richcompare, Slot(&Compare)},
    {0, nullptr}};

}  // namespace oneflow_lite::python
