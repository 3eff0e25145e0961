// SPDX-License-Identifier: Apache-2.0
#include "functional/in_place.h"

#include "functional/argument_names.h"
#include "functional/copy.h"
#include "functional/operands.h"
#include "functional/select.h"
#include "functional/unary_table.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/destination.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/function.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/op_registry.h"
#include "oneflow_lite/framework/output_layout.h"

namespace oneflow_lite::functional {
namespace {

// What a function without further arguments comes to: the op of its name alone, of floats and of
// the dtypes that the op's row takes as they are.
struct OnlyOp {
  const OpExpr* op = nullptr;
  UnaryRow::Rule rule = UnaryRow::kFloat;

  bool Takes(DType dtype) const {
    if (!op) return false;
    const bool any = rule == UnaryRow::kTruth || rule == UnaryRow::kBits;
    return any || IsFloating(dtype) || (rule == UnaryRow::kNumber && dtype != DType::kBool);
  }
};
OnlyOp FindOnlyOp(const std::string& name) {
  if (!internal::KeepsLayout(name)) return {};
  const StatusOr<const OpExpr*> op = FindOp(name);
  if (!op.ok() || (*op)->def().inputs.size() != 1 || !(*op)->def().attrs.empty()) return {};
  const size_t row = UnaryRowOf(name);
  return {*op, row < kNumUnaryRows ? kUnaryRows[row].rule : UnaryRow::kFloat};
}

StatusOr<Tensor> Overwrite(const char* name, const FunctionSchema& function, const OnlyOp& only,
                           const Tensor& self, ValueList arguments) {
  if (!self.defined()) return NotDefined(name, "self");
  // Backward may need what is overwritten.
  const bool recorded = GradEnabled() && autograd::RequiresGrad(self);
  if (!recorded && !GlobalOf(self) && only.Takes(self.dtype())) {
    StatusOr<Tensor> y = CallOver(*only.op, self);
    if (!y.ok()) return WithArgument(Renamed(name, y.status()), "input", "self");
    return y->IsSame(self) ? self : CopyInto(self, *y);
  }
  OFL_ASSIGN_OR_RETURN(const Tensor given, recorded ? Clone(self) : StatusOr<Tensor>(self));
  arguments[0] = given;
  Value result;
  const Status s = function(absl::MakeSpan(arguments), &result);
  if (!s.ok()) return WithArgument(Renamed(name, s), "input", "self");
  const Tensor& y = std::get<Tensor>(result);
  if (KindOfDType(y.dtype()) > KindOfDType(self.dtype())) {
    return Error(ErrorKind::kDType, name, "(): the result has dtype ", Name(y.dtype()),
                 ", which cannot be stored in ", Describe(self));
  }
  return CopyInto(self, y);
}

Value Boxed(const Tensor& t) { return t; }
Value Boxed(const Operand& o) {
  if (const Tensor* t = std::get_if<Tensor>(&o)) return *t;
  return std::get<Scalar>(o);
}
template <class T>
Value Boxed(const std::optional<T>& v) {
  return v ? Value(*v) : Value();
}
template <class T>
Value Boxed(const T& v) {
  return v;
}

// "exp_" of "exp": the method's name is the function's and an underscore.
template <OpName kName, class... More>
StatusOr<Tensor> IntoBy(const OnlyOp& only, const Tensor& self, const More&... more) {
  static const StatusOr<const FunctionSchema*> function = FindFunction(kName.text);
  static const std::string name = std::string(kName.text) + "_";
  OFL_RETURN_IF_ERROR(function.status());
  return Overwrite(name.c_str(), **function, only, self, {Value(), Boxed(more)...});
}
template <OpName kName, class... More>
StatusOr<Tensor> Into(const Tensor& self, const More&... more) {
  return IntoBy<kName>(OnlyOp(), self, more...);
}
template <OpName kName, class... More>
StatusOr<Tensor> IntoByOp(const Tensor& self, const More&... more) {
  static const OnlyOp only = FindOnlyOp(kName.text);
  return IntoBy<kName>(only, self, more...);
}

}  // namespace

// ExpInto(self), and its method "exp_"; with more arguments, the text of them, their types and
// names in the order of the call.
#define OFL_INTO(Function, name)                                                    \
  StatusOr<Tensor> Function(const Tensor& self) { return IntoByOp<name>(self); }    \
  OFL_REGISTER_FUNCTION(name "_(Tensor(a!) self) -> Tensor", Function, kMethodOnly, \
                        "Overwrites the tensor with the result of " name ".")

OFL_INTO(AbsInto, "abs");
OFL_INTO(AcosInto, "acos");
OFL_INTO(AcoshInto, "acosh");
OFL_INTO(AsinInto, "asin");
OFL_INTO(AsinhInto, "asinh");
OFL_INTO(AtanInto, "atan");
OFL_INTO(AtanhInto, "atanh");
OFL_INTO(BitwiseNotInto, "bitwise_not");
OFL_INTO(CeilInto, "ceil");
OFL_INTO(CosInto, "cos");
OFL_INTO(CoshInto, "cosh");
OFL_INTO(Deg2radInto, "deg2rad");
OFL_INTO(DigammaInto, "digamma");
OFL_INTO(ErfInto, "erf");
OFL_INTO(ErfcInto, "erfc");
OFL_INTO(ErfinvInto, "erfinv");
OFL_INTO(ExpInto, "exp");
OFL_INTO(Exp2Into, "exp2");
OFL_INTO(Expm1Into, "expm1");
OFL_INTO(FloorInto, "floor");
OFL_INTO(FracInto, "frac");
OFL_INTO(I0Into, "i0");
OFL_INTO(LgammaInto, "lgamma");
OFL_INTO(LogInto, "log");
OFL_INTO(Log10Into, "log10");
OFL_INTO(Log1pInto, "log1p");
OFL_INTO(Log2Into, "log2");
OFL_INTO(LogicalNotInto, "logical_not");
OFL_INTO(NegInto, "neg");
OFL_INTO(Rad2degInto, "rad2deg");
OFL_INTO(ReciprocalInto, "reciprocal");
OFL_INTO(RsqrtInto, "rsqrt");
OFL_INTO(SigmoidInto, "sigmoid");
OFL_INTO(SignInto, "sign");
OFL_INTO(SinInto, "sin");
OFL_INTO(SincInto, "sinc");
OFL_INTO(SinhInto, "sinh");
OFL_INTO(SqrtInto, "sqrt");
OFL_INTO(SquareInto, "square");
OFL_INTO(TanInto, "tan");
OFL_INTO(TanhInto, "tanh");
OFL_INTO(TruncInto, "trunc");
#undef OFL_INTO

StatusOr<Tensor> RoundInto(const Tensor& self, int64_t decimals) {
  return decimals == 0 ? IntoByOp<"round">(self, decimals) : Into<"round">(self, decimals);
}
StatusOr<Tensor> LogitInto(const Tensor& self, std::optional<double> eps) {
  return Into<"logit">(self, eps);
}
StatusOr<Tensor> NanToNumInto(const Tensor& self, double nan, std::optional<double> posinf,
                              std::optional<double> neginf) {
  return Into<"nan_to_num">(self, nan, posinf, neginf);
}
StatusOr<Tensor> CumSumInto(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return Into<"cumsum">(self, dim, dtype);
}
StatusOr<Tensor> CumProdInto(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return Into<"cumprod">(self, dim, dtype);
}
StatusOr<Tensor> MaskedScatterInto(const Tensor& self, const Tensor& mask, const Tensor& source) {
  return Into<"masked_scatter">(self, mask, source);
}
// The op reads each element of self before it writes it, and its gradient needs none of them: the
// result may take self's memory, where nothing else that is read lies in that.
StatusOr<Tensor> MaskedFillInto(const Tensor& self, const Tensor& mask, const Operand& value) {
  constexpr char kName[] = "masked_fill_";
  if (!self.defined()) return NotDefined(kName, "self");
  const auto apart = [&](const Tensor& t) {
    return t.defined() && !GlobalOf(t) && !t.storage()->Overlaps(*self.storage());
  };
  const Tensor* const number = std::get_if<Tensor>(&value);
  const bool over = !(GradEnabled() && autograd::RequiresGrad(self)) && !GlobalOf(self) &&
                    self.ndim() > 0 && self.is_contiguous() && apart(mask) &&
                    (!number || (apart(*number) && !autograd::RequiresGrad(*number)));
  std::optional<internal::Destination> there;
  if (over) there.emplace(self);
  const StatusOr<Tensor> y = MaskedFill(self, mask, value);
  there.reset();
  if (!y.ok()) return WithArgument(Renamed(kName, y.status()), "input", "self");
  return y->IsSame(self) ? self : CopyInto(self, *y);
}
StatusOr<Tensor> AddmmInto(const Tensor& self, const Tensor& a, const Tensor& b, Scalar beta,
                           Scalar alpha) {
  return Into<"addmm">(self, a, b, beta, alpha);
}
StatusOr<Tensor> BaddbmmInto(const Tensor& self, const Tensor& a, const Tensor& b, Scalar beta,
                             Scalar alpha) {
  return Into<"baddbmm">(self, a, b, beta, alpha);
}
StatusOr<Tensor> AddmvInto(const Tensor& self, const Tensor& a, const Tensor& v, Scalar beta,
                           Scalar alpha) {
  return Into<"addmv">(self, a, v, beta, alpha);
}
StatusOr<Tensor> AddbmmInto(const Tensor& self, const Tensor& a, const Tensor& b, Scalar beta,
                            Scalar alpha) {
  return Into<"addbmm">(self, a, b, beta, alpha);
}
StatusOr<Tensor> AddrInto(const Tensor& self, const Tensor& u, const Tensor& v, Scalar beta,
                          Scalar alpha) {
  return Into<"addr">(self, u, v, beta, alpha);
}

#define OFL_METHOD_INTO(Function, name, arguments)                                                 \
  OFL_REGISTER_FUNCTION(name "_(Tensor(a!) self, " arguments ") -> Tensor", Function, kMethodOnly, \
                        "Overwrites the tensor with the result of " name ".")
OFL_METHOD_INTO(RoundInto, "round", "*, int decimals=0");
OFL_METHOD_INTO(LogitInto, "logit", "float? eps=None");
OFL_METHOD_INTO(NanToNumInto, "nan_to_num",
                "float nan=0.0, float? posinf=None, float? neginf=None");
OFL_METHOD_INTO(CumSumInto, "cumsum", "int dim, *, dtype? dtype=None");
OFL_METHOD_INTO(CumProdInto, "cumprod", "int dim, *, dtype? dtype=None");
OFL_METHOD_INTO(MaskedScatterInto, "masked_scatter", "Tensor mask, Tensor source");
OFL_METHOD_INTO(MaskedFillInto, "masked_fill", "Tensor mask, Operand value");
OFL_METHOD_INTO(AddmmInto, "addmm", "Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1");
OFL_METHOD_INTO(BaddbmmInto, "baddbmm",
                "Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1");
OFL_METHOD_INTO(AddmvInto, "addmv", "Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1");
OFL_METHOD_INTO(AddbmmInto, "addbmm",
                "Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1");
OFL_METHOD_INTO(AddrInto, "addr", "Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1");
#undef OFL_METHOD_INTO

OFL_REGISTER_ALIAS("absolute_", "abs_");
OFL_REGISTER_ALIAS("arccos_", "acos_");
OFL_REGISTER_ALIAS("arccosh_", "acosh_");
OFL_REGISTER_ALIAS("arcsin_", "asin_");
OFL_REGISTER_ALIAS("arcsinh_", "asinh_");
OFL_REGISTER_ALIAS("arctan_", "atan_");
OFL_REGISTER_ALIAS("arctanh_", "atanh_");
OFL_REGISTER_ALIAS("negative_", "neg_");
OFL_REGISTER_ALIAS("sgn_", "sign_");
OFL_REGISTER_OLDER_ORDER("addmm_", "beta, self, alpha, mat1, mat2");
OFL_REGISTER_OLDER_ORDER("addmm_", "beta, self, mat1, mat2");
OFL_REGISTER_OLDER_ORDER("addmm_", "self, beta, alpha, mat1, mat2");
OFL_REGISTER_OLDER_ORDER("addmm_", "self, beta, mat1, mat2");
OFL_REGISTER_OLDER_ORDER("baddbmm_", "beta, self, alpha, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("baddbmm_", "beta, self, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("baddbmm_", "self, beta, alpha, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("baddbmm_", "self, beta, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("addmv_", "beta, self, alpha, mat, vec");
OFL_REGISTER_OLDER_ORDER("addmv_", "beta, self, mat, vec");
OFL_REGISTER_OLDER_ORDER("addmv_", "self, beta, alpha, mat, vec");
OFL_REGISTER_OLDER_ORDER("addmv_", "self, beta, mat, vec");
OFL_REGISTER_OLDER_ORDER("addbmm_", "beta, self, alpha, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("addbmm_", "beta, self, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("addbmm_", "self, beta, alpha, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("addbmm_", "self, beta, batch1, batch2");
OFL_REGISTER_OLDER_ORDER("addr_", "beta, self, alpha, vec1, vec2");
OFL_REGISTER_OLDER_ORDER("addr_", "beta, self, vec1, vec2");
OFL_REGISTER_OLDER_ORDER("addr_", "self, beta, alpha, vec1, vec2");
OFL_REGISTER_OLDER_ORDER("addr_", "self, beta, vec1, vec2");

}  // namespace oneflow_lite::functional
