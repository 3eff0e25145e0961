// SPDX-License-Identifier: Apache-2.0
//
// Methods that overwrite their tensor with the result of the function of their name, "exp_" with
// that of "exp". They are methods of Tensor; in C++ a caller writes
//
//   OFL_RETURN_IF_ERROR(functional::CopyInto(x, *functional::Exp(x)).status());
#include "functional/copy.h"
#include "functional/operands.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {
namespace {

StatusOr<Tensor> Overwrite(const char* name, const FunctionSchema& function, const Tensor& self,
                           ValueList arguments) {
  if (!self.defined()) return NotDefined(name, "self");
  // Backward may need what is overwritten.
  const bool recorded = GradEnabled() && autograd::RequiresGrad(self);
  OFL_ASSIGN_OR_RETURN(const Tensor given, recorded ? Clone(self) : StatusOr<Tensor>(self));
  arguments[0] = given;
  Value result;
  const Status s = function(absl::MakeSpan(arguments), &result);
  if (!s.ok()) return Renamed(name, s);
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
StatusOr<Tensor> Into(const Tensor& self, More... more) {
  static const StatusOr<const FunctionSchema*> function = FindFunction(kName.text);
  static const std::string name = std::string(kName.text) + "_";
  OFL_RETURN_IF_ERROR(function.status());
  return Overwrite(name.c_str(), **function, self, {Value(), Boxed(more)...});
}

using Int = int64_t;
using MaybeFloat = std::optional<double>;
using MaybeDType = std::optional<DType>;

#define OFL_INTO(name)                                                                \
  OFL_REGISTER_FUNCTION(name "_(Tensor(a!) self) -> Tensor", Into<name>, kMethodOnly, \
                        "Overwrites the tensor with the result of " name ".")
#define OFL_INTO_WITH(name, arguments, ...)                                 \
  OFL_REGISTER_FUNCTION(name "_(Tensor(a!) self, " arguments ") -> Tensor", \
                        (&Into<name, __VA_ARGS__>), kMethodOnly,            \
                        "Overwrites the tensor with the result of " name ".")

OFL_INTO("abs");
OFL_INTO("absolute");
OFL_INTO("acos");
OFL_INTO("acosh");
OFL_INTO("arccos");
OFL_INTO("arccosh");
OFL_INTO("arcsin");
OFL_INTO("arcsinh");
OFL_INTO("arctan");
OFL_INTO("arctanh");
OFL_INTO("asin");
OFL_INTO("asinh");
OFL_INTO("atan");
OFL_INTO("atanh");
OFL_INTO("bitwise_not");
OFL_INTO("ceil");
OFL_INTO("cos");
OFL_INTO("cosh");
OFL_INTO("deg2rad");
OFL_INTO("digamma");
OFL_INTO("erf");
OFL_INTO("erfc");
OFL_INTO("erfinv");
OFL_INTO("exp");
OFL_INTO("exp2");
OFL_INTO("expm1");
OFL_INTO("floor");
OFL_INTO("frac");
OFL_INTO("i0");
OFL_INTO("lgamma");
OFL_INTO("log");
OFL_INTO("log10");
OFL_INTO("log1p");
OFL_INTO("log2");
OFL_INTO("logical_not");
OFL_INTO("neg");
OFL_INTO("negative");
OFL_INTO("rad2deg");
OFL_INTO("reciprocal");
OFL_INTO("rsqrt");
OFL_INTO("sgn");
OFL_INTO("sigmoid");
OFL_INTO("sign");
OFL_INTO("sin");
OFL_INTO("sinc");
OFL_INTO("sinh");
OFL_INTO("sqrt");
OFL_INTO("square");
OFL_INTO("tan");
OFL_INTO("tanh");
OFL_INTO("trunc");
OFL_INTO_WITH("round", "*, int decimals=0", Int);
OFL_INTO_WITH("logit", "float? eps=None", MaybeFloat);
OFL_INTO_WITH("nan_to_num", "float nan=0.0, float? posinf=None, float? neginf=None", double,
              MaybeFloat, MaybeFloat);
OFL_INTO_WITH("tril", "int diagonal=0", Int);
OFL_INTO_WITH("triu", "int diagonal=0", Int);
OFL_INTO_WITH("cumsum", "int dim, *, dtype? dtype=None", Int, MaybeDType);
OFL_INTO_WITH("cumprod", "int dim, *, dtype? dtype=None", Int, MaybeDType);
OFL_INTO_WITH("masked_scatter", "Tensor mask, Tensor source", Tensor, Tensor);
OFL_INTO_WITH("masked_fill", "Tensor mask, Operand value", Tensor, Operand);
OFL_INTO_WITH("addmm", "Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1", Tensor, Tensor,
              Scalar, Scalar);
OFL_INTO_WITH("baddbmm", "Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1", Tensor,
              Tensor, Scalar, Scalar);
OFL_INTO_WITH("addmv", "Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1", Tensor, Tensor,
              Scalar, Scalar);
OFL_INTO_WITH("addbmm", "Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1", Tensor,
              Tensor, Scalar, Scalar);
OFL_INTO_WITH("addr", "Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1", Tensor, Tensor,
              Scalar, Scalar);
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

#undef OFL_INTO
#undef OFL_INTO_WITH

}  // namespace
}  // namespace oneflow_lite::functional
