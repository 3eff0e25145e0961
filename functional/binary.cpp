// SPDX-License-Identifier: Apache-2.0
#include "functional/binary.h"

#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/reduce.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// bool < integers < floats: a weaker operand changes the dtype only where its kind is higher.
int KindOfDType(DType t) { return t == DType::kBool ? 0 : IsFloating(t) ? 2 : 1; }

DType Combine(DType strong, DType weak) {
  return KindOfDType(weak) > KindOfDType(strong) ? weak : strong;
}

struct Typed {
  DType dtype;
  int strength;  // 0 a number, 1 a 0-dim tensor, 2 a tensor with dims
};
Typed TypeOf(const Operand& o) {
  if (const Tensor* t = std::get_if<Tensor>(&o)) return {t->dtype(), t->ndim() == 0 ? 1 : 2};
  return {std::get<Scalar>(o).default_dtype(), 0};
}

}  // namespace

DType ResultDType(const Operand& a, const Operand& b) {
  const Typed x = TypeOf(a), y = TypeOf(b);
  if (x.strength == y.strength) return PromoteTypes(x.dtype, y.dtype);
  return x.strength > y.strength ? Combine(x.dtype, y.dtype) : Combine(y.dtype, x.dtype);
}

StatusOr<Tensor> ToTensor(const Operand& o, DType dtype) {
  if (const Tensor* t = std::get_if<Tensor>(&o)) return Cast(*t, dtype);
  OFL_ASSIGN_OR_RETURN(Tensor scalar, Tensor::Empty(Shape{}, dtype, Device{}));
  VisitAll(dtype, [&]<class T>(Tag<T>) { *scalar.data<T>() = std::get<Scalar>(o).to<T>(); });
  return scalar;
}

namespace {

Status CheckOperands(const OpExpr& op, const Operand& a, const Operand& b) {
  const Tensor *x = std::get_if<Tensor>(&a), *y = std::get_if<Tensor>(&b);
  if (!x && !y) {
    return Error(ErrorKind::kType, op.def().name, "(): one of the operands must be a tensor");
  }
  return OkStatus();
}

// An operand of arithmetic in `dtype`. A number and a 0-dim tensor on the CPU, which the kernel
// takes as a number, stay in the compute type: 16-bit floats are rounded once, after the operation.
StatusOr<Tensor> ToTerm(const Operand& o, DType dtype) {
  const Tensor* t = std::get_if<Tensor>(&o);
  if (t && (t->dtype() == dtype || t->ndim() > 0 || t->device().type != DeviceType::kCPU)) {
    return Cast(*t, dtype);
  }
  return ToTensor(o, ComputeType(dtype));
}

StatusOr<Tensor> CallWithDType(const OpExpr& op, const Operand& a, const Operand& b, DType dtype) {
  OFL_ASSIGN_OR_RETURN(Tensor x, ToTerm(a, dtype));
  OFL_ASSIGN_OR_RETURN(Tensor y, ToTerm(b, dtype));
  return Call(op, {x, y});
}

StatusOr<Tensor> CallPromoted(const OpExpr& op, const Operand& a, const Operand& b) {
  OFL_RETURN_IF_ERROR(CheckOperands(op, a, b));
  return CallWithDType(op, a, b, ResultDType(a, b));
}

// Of two elements: a number is rounded to the dtype that the tensor's elements have been rounded
// to, so that x == 0.1 holds where x was made of 0.1.
StatusOr<Tensor> CallCompared(const OpExpr& op, const Operand& a, const Operand& b) {
  OFL_RETURN_IF_ERROR(CheckOperands(op, a, b));
  const DType dtype = ResultDType(a, b);
  OFL_ASSIGN_OR_RETURN(Tensor x, ToTensor(a, dtype));
  OFL_ASSIGN_OR_RETURN(Tensor y, ToTensor(b, dtype));
  return Call(op, {x, y});
}

StatusOr<Tensor> CallInPlace(const OpExpr& op, const Tensor& self, const Operand& other,
                             bool floating = false) {
  DType result = ResultDType(self, other);
  if (floating && !IsFloating(result)) result = DType::kFloat32;
  if (KindOfDType(result) > KindOfDType(self.dtype())) {
    return Error(ErrorKind::kDType, op.def().name, "(): the result has dtype ", Name(result),
                 ", which cannot be stored in ", Describe(self));
  }
  OFL_ASSIGN_OR_RETURN(Tensor y, ToTerm(other, self.dtype()));
  return Call(op, {self, y});
}

const OpExpr& BinaryOpExpr(const char* name) {
  return OpBuilder(name).Input("a").Input("b").Output("out").Get();
}
const OpExpr& InPlaceOpExpr(const char* name) {
  return OpBuilder(name).Input("self").Input("other").Output("out").Get();
}

}  // namespace

StatusOr<Tensor> Add(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("add");
  return CallPromoted(op, a, b);
}
StatusOr<Tensor> Sub(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("sub");
  return CallPromoted(op, a, b);
}
StatusOr<Tensor> Mul(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("mul");
  return CallPromoted(op, a, b);
}
StatusOr<Tensor> Div(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("div");
  OFL_RETURN_IF_ERROR(CheckOperands(op, a, b));
  const DType dtype = ResultDType(a, b);
  return CallWithDType(op, a, b, IsFloating(dtype) ? dtype : DType::kFloat32);
}
StatusOr<Tensor> Eq(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("eq");
  return CallCompared(op, a, b);
}
StatusOr<Tensor> Ne(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("ne");
  return CallCompared(op, a, b);
}
StatusOr<Tensor> Lt(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("lt");
  return CallCompared(op, a, b);
}
StatusOr<Tensor> Le(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("le");
  return CallCompared(op, a, b);
}
StatusOr<Tensor> Gt(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("gt");
  return CallCompared(op, a, b);
}
StatusOr<Tensor> Ge(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("ge");
  return CallCompared(op, a, b);
}

StatusOr<Tensor> Maximum(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("maximum");
  return CallCompared(op, a, b);
}
StatusOr<Tensor> Minimum(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("minimum");
  return CallCompared(op, a, b);
}

StatusOr<Tensor> Pow(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("pow");
  const Tensor* x = std::get_if<Tensor>(&a);
  const Scalar* exponent = std::get_if<Scalar>(&b);
  if (x && exponent) {
    const double e = exponent->to<double>();
    const bool counts =
        IsFloating(x->dtype()) || (!exponent->is_float() && x->dtype() != DType::kBool);
    if (e == 2 && counts) return Mul(*x, *x);
    if (e == 3 && counts) {
      OFL_ASSIGN_OR_RETURN(Tensor square, Mul(*x, *x));
      return Mul(square, *x);
    }
    const bool integers = !IsFloating(x->dtype()) && x->dtype() != DType::kBool;
    if (integers && !exponent->is_float() && e < 0) {
      return Error(ErrorKind::kValue, "pow(): exponent is ", e,
                   ", but integers have no negative powers; convert input to a floating dtype");
    }
    if (e == 0.5) return Sqrt(*x);
    if (e == -0.5) return Rsqrt(*x);
  }
  return CallPromoted(op, a, b);
}

StatusOr<Tensor> BitwiseAnd(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("bitwise_and");
  return CallPromoted(op, a, b);
}
StatusOr<Tensor> BitwiseOr(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("bitwise_or");
  return CallPromoted(op, a, b);
}
StatusOr<Tensor> BitwiseXor(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("bitwise_xor");
  return CallPromoted(op, a, b);
}
StatusOr<Tensor> BitwiseNot(const Tensor& x) {
  return x.dtype() == DType::kBool ? BitwiseXor(x, Scalar(true)) : BitwiseXor(x, Scalar(-1));
}

StatusOr<Tensor> AddInto(const Tensor& self, const Operand& other) {
  static const OpExpr& op = InPlaceOpExpr("add_");
  return CallInPlace(op, self, other);
}
StatusOr<Tensor> SubInto(const Tensor& self, const Operand& other) {
  static const OpExpr& op = InPlaceOpExpr("sub_");
  return CallInPlace(op, self, other);
}
StatusOr<Tensor> MulInto(const Tensor& self, const Operand& other) {
  static const OpExpr& op = InPlaceOpExpr("mul_");
  return CallInPlace(op, self, other);
}
StatusOr<Tensor> DivInto(const Tensor& self, const Operand& other) {
  static const OpExpr& op = InPlaceOpExpr("div_");
  return CallInPlace(op, self, other, /*floating=*/true);
}

StatusOr<Tensor> ReluBackward(const Tensor& dy, const Tensor& y) {
  static const OpExpr& op = BinaryOpExpr("relu_backward");
  return Call(op, {dy, y});
}

StatusOr<Tensor> SumToShape(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int extra = x.ndim() - shape.ndim();
  Dims dims;
  for (int d = 0; d < x.ndim(); ++d) {
    if (d < extra || (shape[d - extra] == 1 && x.shape()[d] != 1)) dims.push_back(d);
  }
  OFL_ASSIGN_OR_RETURN(Tensor sum, Sum(x, dims, /*keepdim=*/true));
  return Reshape(sum, shape);
}

namespace {

// The product of integers, which wraps around as that of tensors does.
int64_t Wrapped(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
StatusOr<Operand> Times(const Operand& b, Scalar alpha) {
  if (alpha.to<double>() == 1) return b;
  if (const Scalar* s = std::get_if<Scalar>(&b)) {
    const bool integers = !s->is_float() && !alpha.is_float();
    return Operand(integers ? Scalar(Wrapped(s->to<int64_t>(), alpha.to<int64_t>()))
                            : Scalar(s->to<double>() * alpha.to<double>()));
  }
  OFL_ASSIGN_OR_RETURN(Tensor t, Mul(std::get<Tensor>(b), alpha));
  return Operand(std::move(t));
}
// F(a, alpha b): what PyTorch's add and sub take.
template <StatusOr<Tensor> (*F)(const Operand&, const Operand&)>
StatusOr<Tensor> Scaled(const Operand& a, const Operand& b, Scalar alpha) {
  OFL_ASSIGN_OR_RETURN(const Operand other, Times(b, alpha));
  return F(a, other);
}
template <StatusOr<Tensor> (*F)(const Tensor&, const Operand&)>
StatusOr<Tensor> ScaledInto(const Tensor& self, const Operand& b, Scalar alpha) {
  OFL_ASSIGN_OR_RETURN(const Operand other, Times(b, alpha));
  return F(self, other);
}

}  // namespace

OFL_REGISTER_FUNCTION("add(Operand input, Operand other, *, Scalar alpha=1) -> Tensor", Scaled<Add>,
                      kMethod, "input + alpha * other.");
OFL_REGISTER_FUNCTION("sub(Operand input, Operand other, *, Scalar alpha=1) -> Tensor", Scaled<Sub>,
                      kMethod, "input - alpha * other.");
OFL_REGISTER_OLDER_ORDER("add", "input, alpha, other");
OFL_REGISTER_OLDER_ORDER("sub", "input, alpha, other");
OFL_REGISTER_FUNCTION("mul(Operand input, Operand other) -> Tensor", Mul, kMethod,
                      "input * other.");
OFL_REGISTER_FUNCTION("div(Operand input, Operand other) -> Tensor", Div, kMethod,
                      "input / other; integers give float32.");
OFL_REGISTER_FUNCTION("maximum(Operand input, Operand other) -> Tensor", Maximum, kMethod,
                      "The larger of input and other; NaN where one of them is.");
OFL_REGISTER_FUNCTION("minimum(Operand input, Operand other) -> Tensor", Minimum, kMethod,
                      "The smaller of input and other; NaN where one of them is.");
OFL_REGISTER_FUNCTION(
    "pow(Operand input, Operand exponent) -> Tensor", Pow, kMethod,
    "input to the power of exponent; of integers no number below 0, and tensors that\n"
    "are below 0 give the reciprocal rounded towards 0.");
OFL_REGISTER_FUNCTION("bitwise_and(Operand input, Operand other) -> Tensor", BitwiseAnd, kMethod,
                      "The bits that both have; of bool, whether both hold.");
OFL_REGISTER_FUNCTION("bitwise_or(Operand input, Operand other) -> Tensor", BitwiseOr, kMethod,
                      "The bits that one of both has; of bool, whether one holds.");
OFL_REGISTER_FUNCTION("bitwise_xor(Operand input, Operand other) -> Tensor", BitwiseXor, kMethod,
                      "The bits that differ; of bool, whether exactly one holds.");
OFL_REGISTER_FUNCTION("bitwise_not(Tensor input) -> Tensor", BitwiseNot, kMethod,
                      "The bits that it has not; of bool, whether it does not hold.");
OFL_REGISTER_FUNCTION("eq(Operand input, Operand other) -> Tensor", Eq, kMethod, "input == other.");
OFL_REGISTER_FUNCTION("ne(Operand input, Operand other) -> Tensor", Ne, kMethod, "input != other.");
OFL_REGISTER_FUNCTION("lt(Operand input, Operand other) -> Tensor", Lt, kMethod, "input < other.");
OFL_REGISTER_FUNCTION("le(Operand input, Operand other) -> Tensor", Le, kMethod, "input <= other.");
OFL_REGISTER_FUNCTION("gt(Operand input, Operand other) -> Tensor", Gt, kMethod, "input > other.");
OFL_REGISTER_FUNCTION("ge(Operand input, Operand other) -> Tensor", Ge, kMethod, "input >= other.");
OFL_REGISTER_FUNCTION("add_(Tensor(a!) self, Operand other, *, Scalar alpha=1) -> Tensor",
                      ScaledInto<AddInto>, kMethodOnly, "self += alpha * other, in place.");
OFL_REGISTER_FUNCTION("sub_(Tensor(a!) self, Operand other, *, Scalar alpha=1) -> Tensor",
                      ScaledInto<SubInto>, kMethodOnly, "self -= alpha * other, in place.");
OFL_REGISTER_OLDER_ORDER("add_", "self, alpha, other");
OFL_REGISTER_OLDER_ORDER("sub_", "self, alpha, other");
OFL_REGISTER_FUNCTION("mul_(Tensor(a!) self, Operand other) -> Tensor", MulInto, kMethodOnly,
                      "self *= other, in place.");
OFL_REGISTER_FUNCTION("div_(Tensor(a!) self, Operand other) -> Tensor", DivInto, kMethodOnly,
                      "self /= other, in place.");

}  // namespace oneflow_lite::functional
