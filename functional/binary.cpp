// SPDX-License-Identifier: Apache-2.0
#include "functional/binary.h"

#include <optional>

#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/host_value.h"
#include "functional/operands.h"
#include "functional/reduce.h"
#include "functional/ternary.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

// A weaker operand changes the dtype only where its kind is higher.
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

DType ResultDType(const Operand& a, const Operand& b, const Operand& c) {
  const Typed given[] = {TypeOf(a), TypeOf(b), TypeOf(c)};
  std::optional<DType> dtype;
  for (int strength = 2; strength >= 0; --strength) {
    std::optional<DType> alike;
    for (const Typed& t : given) {
      if (t.strength == strength) alike = alike ? PromoteTypes(*alike, t.dtype) : t.dtype;
    }
    if (alike) dtype = dtype ? Combine(*dtype, *alike) : *alike;
  }
  return *dtype;
}

StatusOr<Tensor> ToTensor(absl::string_view op, const Operand& o, DType dtype) {
  if (const Tensor* t = std::get_if<Tensor>(&o)) return Cast(*t, dtype);
  const Scalar& number = std::get<Scalar>(o);
  OFL_ASSIGN_OR_RETURN(Tensor scalar, Tensor::Empty(Shape{}, dtype, Device{}));
  scalar.impl()->wrapped_number = true;
  const bool fits = VisitAll(dtype, [&]<class T>(Tag<T>) {
    if (!number.fits<T>()) return false;
    *scalar.data<T>() = number.to<T>();
    return true;
  });
  return fits ? StatusOr<Tensor>(std::move(scalar)) : NumberOutOfRange(op, number, dtype);
}

Status CheckOperands(const OpExpr& op, const Operand& a, const Operand& b) {
  const Tensor *x = std::get_if<Tensor>(&a), *y = std::get_if<Tensor>(&b);
  if (!x && !y) {
    return Error(ErrorKind::kType, op.def().name, "(): one of the operands must be a tensor");
  }
  return OkStatus();
}

StatusOr<Tensor> ToTerm(const OpExpr& op, const Operand& o, DType dtype) {
  const Tensor* t = std::get_if<Tensor>(&o);
  if (t && (t->dtype() == dtype || t->ndim() > 0 || !IsInHostMemory(*t))) {
    return Cast(*t, dtype);
  }
  return ToTensor(op.def().name, o, ComputeType(dtype));
}

namespace {

bool NeedsGradient(const Operand& o) {
  const Tensor* t = std::get_if<Tensor>(&o);
  return t && t->defined() && autograd::RequiresGrad(*t);
}
// Whether kernels convert the operands as they load them: the op promotes by dtypes and dims alone,
// so that two 0-dim tensors are brought to one dtype first.
bool LoadsMixed(const Operand& a, const Operand& b, Gradient gradient) {
  const auto has_dims = [](const Operand& o) {
    const Tensor* t = std::get_if<Tensor>(&o);
    return t && t->ndim() > 0;
  };
  if (!has_dims(a) && !has_dims(b)) return false;
  return gradient == Gradient::kTakesAnyDType || !GradEnabled() ||
         !(NeedsGradient(a) || NeedsGradient(b));
}
// ToTerm of an operand beside which another one may have another dtype.
StatusOr<Tensor> ToMixedTerm(const OpExpr& op, const Operand& o, DType dtype) {
  const Tensor* t = std::get_if<Tensor>(&o);
  return t && t->ndim() > 0 ? StatusOr<Tensor>(*t) : ToTerm(op, o, dtype);
}

}  // namespace

StatusOr<Tensor> CallWithDType(const OpExpr& op, const Operand& a, const Operand& b, DType dtype,
                               Gradient gradient) {
  const auto term = LoadsMixed(a, b, gradient) ? ToMixedTerm : ToTerm;
  OFL_ASSIGN_OR_RETURN(Tensor x, term(op, a, dtype));
  OFL_ASSIGN_OR_RETURN(Tensor y, term(op, b, dtype));
  return Call(op, {x, y});
}

StatusOr<Tensor> CallPromoted(const OpExpr& op, const Operand& a, const Operand& b,
                              Gradient gradient) {
  OFL_RETURN_IF_ERROR(CheckOperands(op, a, b));
  return CallWithDType(op, a, b, ResultDType(a, b), gradient);
}

StatusOr<Tensor> CallFloating(const OpExpr& op, const Operand& a, const Operand& b,
                              Gradient gradient) {
  OFL_RETURN_IF_ERROR(CheckOperands(op, a, b));
  const DType dtype = ResultDType(a, b);
  return CallWithDType(op, a, b, IsFloating(dtype) ? dtype : DType::kFloat32, gradient);
}

namespace {

// The larger or the smaller of two elements: a number is rounded to the dtype that the tensor's
// elements have been rounded to.
StatusOr<Tensor> CallExtremum(const OpExpr& op, const Operand& a, const Operand& b) {
  OFL_RETURN_IF_ERROR(CheckOperands(op, a, b));
  const DType dtype = ResultDType(a, b);
  const bool mixed = LoadsMixed(a, b, Gradient::kTakesOneDType);
  const auto term = [&](const Operand& o) -> StatusOr<Tensor> {
    const Tensor* t = std::get_if<Tensor>(&o);
    return mixed && t && t->ndim() > 0 ? StatusOr<Tensor>(*t) : ToTensor(op.def().name, o, dtype);
  };
  OFL_ASSIGN_OR_RETURN(Tensor x, term(a));
  OFL_ASSIGN_OR_RETURN(Tensor y, term(b));
  return Call(op, {x, y});
}

}  // namespace

Status CheckHolds(const OpExpr& op, const Tensor& self, DType result) {
  if (KindOfDType(result) <= KindOfDType(self.dtype())) return OkStatus();
  return Error(ErrorKind::kDType, op.def().name, "(): the result has dtype ", Name(result),
               ", which cannot be stored in ", Describe(self));
}

StatusOr<Tensor> Written(const OpExpr& op, const Tensor& self, StatusOr<Tensor> value) {
  if (value.ok()) value = CopyInto(self, *value);
  return value.ok() ? std::move(value) : StatusOr<Tensor>(Renamed(op.def().name, value.status()));
}

StatusOr<Tensor> CallInPlace(const OpExpr& op, const OpExpr& plain, const Tensor& self,
                             const Operand& other, bool floating) {
  DType result = ResultDType(self, other);
  if (floating && !IsFloating(result)) result = DType::kFloat32;
  OFL_RETURN_IF_ERROR(CheckHolds(op, self, result));
  if (PromoteTypes(self.dtype(), result) != self.dtype()) {
    return Written(op, self, CallWithDType(plain, self, other, result));
  }
  const auto term = LoadsMixed(self, other, Gradient::kTakesOneDType) ? ToMixedTerm : ToTerm;
  OFL_ASSIGN_OR_RETURN(Tensor y, term(op, other, self.dtype()));
  return Call(op, {self, y});
}

namespace {

const OpExpr& BinaryOpExpr(const char* name) {
  return OpBuilder(name).Input("a").Input("b").Output("out").Get();
}

}  // namespace

StatusOr<Tensor> Add(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("add");
  return CallPromoted(op, a, b, Gradient::kTakesAnyDType);
}
StatusOr<Tensor> Sub(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("sub");
  return CallPromoted(op, a, b, Gradient::kTakesAnyDType);
}
StatusOr<Tensor> Mul(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("mul");
  return CallPromoted(op, a, b, Gradient::kTakesAnyDType);
}
StatusOr<Tensor> Div(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("div");
  return CallFloating(op, a, b);
}

StatusOr<Tensor> Maximum(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("maximum");
  return CallExtremum(op, a, b);
}
StatusOr<Tensor> Minimum(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("minimum");
  return CallExtremum(op, a, b);
}

StatusOr<Tensor> Pow(const Operand& a, const Operand& b) {
  static const OpExpr& op = BinaryOpExpr("pow");
  const Tensor* x = std::get_if<Tensor>(&a);
  const Scalar* exponent = std::get_if<Scalar>(&b);
  if (x && exponent) {
    const double e = exponent->to<double>();
    const bool whole = exponent->kind() != Scalar::Kind::kFloat;
    const bool counts = IsFloating(x->dtype()) || (whole && x->dtype() != DType::kBool);
    if (e == 2 && counts) return Mul(*x, *x);
    if (e == 3 && counts && !IsFloating(x->dtype())) {
      OFL_ASSIGN_OR_RETURN(Tensor square, Mul(*x, *x));
      return Mul(square, *x);
    }
    OFL_RETURN_IF_ERROR(CheckExponent("pow", *exponent, x->dtype()));
    // Of what is recorded pow saves x, so that the result may be changed; a reciprocal saves that.
    const bool recorded = GradEnabled() && autograd::RequiresGrad(*x);
    if (e == -1 && IsFloating(x->dtype()) && !recorded) return Reciprocal(*x);
    if (e == 0.5) return PowHalf(*x);
    if (e == -0.5) return PowMinusHalf(*x);
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

StatusOr<Tensor> AddInto(const Tensor& self, const Operand& other) {
  return CallInPlace(OpIntoFirst<"add_">(), OpOfTwo<"add">(), self, other);
}
StatusOr<Tensor> SubInto(const Tensor& self, const Operand& other) {
  return CallInPlace(OpIntoFirst<"sub_">(), OpOfTwo<"sub">(), self, other);
}
StatusOr<Tensor> MulInto(const Tensor& self, const Operand& other) {
  return CallInPlace(OpIntoFirst<"mul_">(), OpOfTwo<"mul">(), self, other);
}
StatusOr<Tensor> DivInto(const Tensor& self, const Operand& other) {
  return CallInPlace(OpIntoFirst<"div_">(), OpOfTwo<"div">(), self, other, /*floating=*/true);
}

StatusOr<Tensor> ReluBackward(const Tensor& dy, const Tensor& y) {
  static const OpExpr& op = BinaryOpExpr("relu_backward");
  return Call(op, {dy, y});
}

StatusOr<Tensor> GeluBackward(const Tensor& dy, const Tensor& x) {
  static const OpExpr& op = BinaryOpExpr("gelu_backward");
  return Call(op, {dy, x});
}
StatusOr<Tensor> GeluTanhBackward(const Tensor& dy, const Tensor& x) {
  static const OpExpr& op = BinaryOpExpr("gelu_tanh_backward");
  return Call(op, {dy, x});
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

// alpha b, of numbers.
Scalar Product(const Scalar& b, const Scalar& alpha) {
  if (b.kind() == Scalar::Kind::kBool && alpha.kind() == Scalar::Kind::kBool) {
    return Scalar(b.to<double>() != 0 && alpha.to<double>() != 0);
  }
  if (b.is_float() || alpha.is_float()) {
    const double product = b.to<double>() * alpha.to<double>();
    if (b.kind() == Scalar::Kind::kFloat || alpha.kind() == Scalar::Kind::kFloat) {
      return Scalar(product);
    }
    return product == 0 ? Scalar(int64_t{0}) : Scalar::LargeInt(product);
  }
  const __int128 exact = static_cast<__int128>(b.to<int64_t>()) * alpha.to<int64_t>();
  const auto narrow = static_cast<int64_t>(exact);
  return narrow == exact ? Scalar(narrow) : Scalar::LargeInt(static_cast<double>(exact));
}

// As in PyTorch: a fraction makes no floats of integers, and of bool alpha is a truth.
Status CheckAlpha(const char* name, DType result, const Scalar& alpha) {
  if (alpha.kind() != Scalar::Kind::kFloat || IsFloating(result)) return OkStatus();
  return Error(ErrorKind::kDType, name, "(): alpha is ", alpha.to<double>(), ", but the result is ",
               Name(result), ", which takes no fraction; convert an operand to a floating dtype");
}
bool IsOne(const Scalar& alpha) {
  return alpha.kind() != Scalar::Kind::kFloat && alpha.to<double>() == 1;
}
Scalar AsFactor(DType result, const Scalar& alpha) {
  return result == DType::kBool ? Scalar(alpha.to<double>() != 0) : alpha;
}

using OfTwo = StatusOr<Tensor> (*)(const Operand&, const Operand&);
using IntoFirst = StatusOr<Tensor> (*)(const Tensor&, const Operand&);

// F(a, alpha b), as PyTorch's add and sub take it: of tensors a + (kSign alpha) b in one op.
template <OfTwo kFunction, int kSign, OpName kName>
StatusOr<Tensor> Scaled(const Operand& a, const Operand& b, Scalar alpha) {
  if (IsOne(alpha)) return kFunction(a, b);
  const DType result = ResultDType(a, b);
  OFL_RETURN_IF_ERROR(CheckAlpha(kName.text, result, alpha));
  alpha = AsFactor(result, alpha);
  if (alpha.to<double>() == 1) return kFunction(a, b);
  if (const Scalar* number = std::get_if<Scalar>(&b)) return kFunction(a, Product(*number, alpha));
  if (ResultDType(b, alpha) == DType::kBool) {
    OFL_ASSIGN_OR_RETURN(Tensor product, Mul(b, alpha));
    return kFunction(a, product);
  }
  return AddTimes(kName.text, a, std::get<Tensor>(b), alpha, kSign);
}
template <IntoFirst kFunction, int kSign, OpName kName>
StatusOr<Tensor> ScaledInto(const Tensor& self, const Operand& b, Scalar alpha) {
  if (IsOne(alpha)) return kFunction(self, b);
  const DType result = ResultDType(self, b);
  OFL_RETURN_IF_ERROR(CheckAlpha(kName.text, result, alpha));
  alpha = AsFactor(result, alpha);
  if (alpha.to<double>() == 1) return kFunction(self, b);
  if (const Scalar* number = std::get_if<Scalar>(&b)) {
    return kFunction(self, Product(*number, alpha));
  }
  if (ResultDType(b, alpha) == DType::kBool) {
    OFL_ASSIGN_OR_RETURN(Tensor product, Mul(b, alpha));
    return kFunction(self, product);
  }
  return AddTimesInto(kName.text, self, std::get<Tensor>(b), alpha, kSign);
}

}  // namespace

StatusOr<Tensor> Add(const Operand& a, const Operand& b, Scalar alpha) {
  return Scaled<Add, 1, "add">(a, b, alpha);
}
StatusOr<Tensor> Sub(const Operand& a, const Operand& b, Scalar alpha) {
  return Scaled<Sub, -1, "sub">(a, b, alpha);
}
StatusOr<Tensor> AddInto(const Tensor& self, const Operand& other, Scalar alpha) {
  return ScaledInto<AddInto, 1, "add_">(self, other, alpha);
}
StatusOr<Tensor> SubInto(const Tensor& self, const Operand& other, Scalar alpha) {
  return ScaledInto<SubInto, -1, "sub_">(self, other, alpha);
}
StatusOr<Tensor> Rsub(const Tensor& x, const Operand& other, Scalar alpha) {
  StatusOr<Tensor> y = Sub(other, x, alpha);
  return y.ok() ? std::move(y) : StatusOr<Tensor>(Renamed("rsub", y.status()));
}

OFL_REGISTER_FUNCTION("add(Operand input, Operand other, *, Scalar alpha=1) -> Tensor",
                      (Overload<const Operand&, const Operand&, Scalar>(Add)), kMethod,
                      "input + alpha * other.");
OFL_REGISTER_FUNCTION("sub(Operand input, Operand other, *, Scalar alpha=1) -> Tensor",
                      (Overload<const Operand&, const Operand&, Scalar>(Sub)), kMethod,
                      "input - alpha * other.");
OFL_REGISTER_OLDER_ORDER("add", "input, alpha, other");
OFL_REGISTER_OLDER_ORDER("sub", "input, alpha, other");
OFL_REGISTER_FUNCTION("mul(Operand input, Operand other) -> Tensor", Mul, kMethod,
                      "input * other.");
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
OFL_REGISTER_FUNCTION("add_(Tensor(a!) self, Operand other, *, Scalar alpha=1) -> Tensor",
                      (Overload<const Tensor&, const Operand&, Scalar>(AddInto)), kMethodOnly,
                      "self += alpha * other, in place.");
OFL_REGISTER_FUNCTION("sub_(Tensor(a!) self, Operand other, *, Scalar alpha=1) -> Tensor",
                      (Overload<const Tensor&, const Operand&, Scalar>(SubInto)), kMethodOnly,
                      "self -= alpha * other, in place.");
OFL_REGISTER_OLDER_ORDER("add_", "self, alpha, other");
OFL_REGISTER_OLDER_ORDER("sub_", "self, alpha, other");
OFL_REGISTER_FUNCTION("mul_(Tensor(a!) self, Operand other) -> Tensor", MulInto, kMethodOnly,
                      "self *= other, in place.");
OFL_REGISTER_FUNCTION("rsub(Tensor input, Operand other, *, Scalar alpha=1) -> Tensor", Rsub,
                      kFunction, "other - alpha * input.");

}  // namespace oneflow_lite::functional
