// SPDX-License-Identifier: Apache-2.0
//
// Comparisons. A number that the dtype does not hold is replaced by one that it holds and divides
// its elements the same way: of int8, x < 259 is x >= -128, and x < 2.5 is x <= 2.
#include <cmath>
#include <limits>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/device_traits.h"
#include "functional/host_value.h"
#include "functional/reduce.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/op_expr.h"

namespace oneflow_lite::functional {
namespace {

enum Comparison : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
constexpr const char* kNames[] = {"eq", "ne", "lt", "le", "gt", "ge"};

template <Comparison kOp>
const OpExpr& OpOf() {
  static const OpExpr& op = OpBuilder(kNames[kOp]).Input("a").Input("b").Output("out").Get();
  return op;
}
const OpExpr& OpOf(Comparison op) {
  switch (op) {
    case kEq:
      return OpOf<kEq>();
    case kNe:
      return OpOf<kNe>();
    case kLt:
      return OpOf<kLt>();
    case kLe:
      return OpOf<kLe>();
    case kGt:
      return OpOf<kGt>();
    default:
      return OpOf<kGe>();
  }
}

// The same with the operands in the other order.
constexpr Comparison kMirrored[] = {kEq, kNe, kGt, kGe, kLt, kLe};

// What an element is compared with.
struct Question {
  Comparison op;
  Scalar number;
};

// Whether elements below the number answer yes, or, for sign > 0, elements above it.
constexpr bool Holds(Comparison op, int sign) {
  return op == kNe || (sign < 0 ? op == kLt || op == kLe : op == kGt || op == kGe);
}

// Of integers in [least, most].
Question OfIntegers(Comparison op, const Scalar& number, int64_t least, int64_t most) {
  const auto all = [&](bool yes) { return Question{yes ? kGe : kLt, Scalar(least)}; };
  const double d = number.is_float() ? number.to<double>() : 0;
  if (std::isnan(d)) return all(op == kNe);
  if (number.kind() == Scalar::Kind::kLargeInt) return all(Holds(op, d > 0 ? -1 : 1));
  const double below = std::floor(d);
  if (number.is_float() && below < d) {
    if (op == kEq || op == kNe) return all(op == kNe);
    op = op == kLt || op == kLe ? kLe : kGt;
  }
  if (number.is_float() && !Scalar(below).fits<int64_t>()) return all(Holds(op, d > 0 ? -1 : 1));
  const int64_t n = number.is_float() ? static_cast<int64_t>(below) : number.to<int64_t>();
  if (n < least || n > most) return all(Holds(op, n > most ? -1 : 1));
  return {op, Scalar(n)};
}

// Of floats, among which a finite number may round to an infinity, and is nearer than that.
template <class T>
Question OfFloats(Comparison op, const Scalar& number) {
  const double d = number.to<double>();
  const bool finite = std::isfinite(d) || number.kind() == Scalar::Kind::kLargeInt;
  if (!finite || std::isfinite(static_cast<double>(static_cast<ComputeOf<T>>(number.to<T>())))) {
    return {op, number};
  }
  if (op == kEq || op == kNe) return {op, Scalar(std::numeric_limits<double>::quiet_NaN())};
  if (d > 0) op = op == kLt || op == kLe ? kLt : kGe;
  if (d < 0) op = op == kGt || op == kGe ? kGt : kLe;
  return {op, Scalar(std::copysign(std::numeric_limits<double>::infinity(), d))};
}

StatusOr<Tensor> CompareNumber(Comparison op, const Tensor& x, const Scalar& number) {
  // Neither is rounded to the other's dtype but a number to that of floats.
  const DType dtype = x.dtype();
  const Question asked = VisitAll(dtype, [&]<class T>(Tag<T>) -> Question {
    if constexpr (std::is_integral_v<T>)
      return OfIntegers(op, number, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    else
      return OfFloats<T>(op, number);
  });
  OFL_ASSIGN_OR_RETURN(Tensor bound, ToTensor(kNames[op], asked.number, dtype));
  return Call(OpOf(asked.op), {x, bound});
}

template <Comparison kOp>
StatusOr<Tensor> Compare(const Operand& a, const Operand& b) {
  const Tensor *x = std::get_if<Tensor>(&a), *y = std::get_if<Tensor>(&b);
  if (x && !y) return CompareNumber(kOp, *x, std::get<Scalar>(b));
  if (y && !x) return CompareNumber(kMirrored[kOp], *y, std::get<Scalar>(a));
  if (!x) {
    return Error(ErrorKind::kType, kNames[kOp], "(): one of the operands must be a tensor");
  }
  if (x->ndim() > 0 && y->ndim() > 0) return Call(OpOf<kOp>(), {*x, *y});  // which promotes
  const DType dtype = ResultDType(a, b);
  OFL_ASSIGN_OR_RETURN(Tensor left, ToTensor(kNames[kOp], a, dtype));
  OFL_ASSIGN_OR_RETURN(Tensor right, ToTensor(kNames[kOp], b, dtype));
  return Call(OpOf<kOp>(), {left, right});
}

}  // namespace

StatusOr<Tensor> Eq(const Operand& a, const Operand& b) { return Compare<kEq>(a, b); }
StatusOr<Tensor> Ne(const Operand& a, const Operand& b) { return Compare<kNe>(a, b); }
StatusOr<Tensor> Lt(const Operand& a, const Operand& b) { return Compare<kLt>(a, b); }
StatusOr<Tensor> Le(const Operand& a, const Operand& b) { return Compare<kLe>(a, b); }
StatusOr<Tensor> Gt(const Operand& a, const Operand& b) { return Compare<kGt>(a, b); }
StatusOr<Tensor> Ge(const Operand& a, const Operand& b) { return Compare<kGe>(a, b); }

namespace {

// t, or a copy where a row of it lies across memory: copies are turned tile by tile.
StatusOr<Tensor> LaidInRows(const Tensor& t) {
  constexpr int64_t kSome = 1024, kNear = 2;
  const int64_t step = t.ndim() > 0 ? t.strides().back() : 1;
  return step <= kNear || t.numel() < kSome ? StatusOr<Tensor>(t) : Contiguous(t.Detach());
}

}  // namespace

StatusOr<bool> Equal(const Tensor& x, const Tensor& other) {
  if (!x.defined()) return NotDefined("equal", "input");
  if (!other.defined()) return NotDefined("equal", "other");
  if (x.shape() != other.shape()) return false;
  static const OpExpr& op = OpBuilder("equal").Input("a").Input("b").Output("out").Get();
  static const KernelSet kernels("equal");
  if (x.dtype() == other.dtype() && kernels.Has(x) && kernels.Has(other)) {
    Tensor a = x, b = other;
    if (a.strides() != b.strides()) {
      OFL_ASSIGN_OR_RETURN(a, LaidInRows(a));
      OFL_ASSIGN_OR_RETURN(b, LaidInRows(b));
    }
    OFL_ASSIGN_OR_RETURN(const Tensor same, Call(op, {a, b}));
    return *same.data<bool>();
  }
  OFL_ASSIGN_OR_RETURN(Tensor same, Eq(x.Detach(), other.Detach()));
  OFL_ASSIGN_OR_RETURN(same, All(same));
  return ValueOf<bool>("equal", same);
}

OFL_REGISTER_FUNCTION("equal(Tensor input, Tensor other) -> bool", Equal, kMethod,
                      "Whether both have the same shape and the same elements; the answer waits "
                      "for the device.");
OFL_REGISTER_FUNCTION("eq(Operand input, Operand other) -> Tensor", Eq, kMethod, "input == other.");
OFL_REGISTER_FUNCTION("ne(Operand input, Operand other) -> Tensor", Ne, kMethod, "input != other.");
OFL_REGISTER_FUNCTION("lt(Operand input, Operand other) -> Tensor", Lt, kMethod, "input < other.");
OFL_REGISTER_FUNCTION("le(Operand input, Operand other) -> Tensor", Le, kMethod, "input <= other.");
OFL_REGISTER_FUNCTION("gt(Operand input, Operand other) -> Tensor", Gt, kMethod, "input > other.");
OFL_REGISTER_FUNCTION("ge(Operand input, Operand other) -> Tensor", Ge, kMethod, "input >= other.");

}  // namespace oneflow_lite::functional
