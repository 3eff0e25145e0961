// SPDX-License-Identifier: Apache-2.0
#include "functional/special.h"

#include "functional/copy.h"
#include "functional/operands.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {
namespace {

template <OpName kName>
StatusOr<Tensor> OfOne(const Tensor& x) {
  static const OpExpr& op = OpBuilder(kName.text).Input("in").Output("out").Get();
  return Call(op, {x});
}

}  // namespace

StatusOr<Tensor> Ndtr(const Tensor& x) { return OfOne<"ndtr">(x); }
StatusOr<Tensor> LogNdtr(const Tensor& x) { return OfOne<"log_ndtr">(x); }
StatusOr<Tensor> Ndtri(const Tensor& x) { return OfOne<"ndtri">(x); }
StatusOr<Tensor> Entr(const Tensor& x) { return OfOne<"entr">(x); }
StatusOr<Tensor> Erfcx(const Tensor& x) { return OfOne<"erfcx">(x); }
StatusOr<Tensor> I0e(const Tensor& x) { return OfOne<"i0e">(x); }
StatusOr<Tensor> I1e(const Tensor& x) { return OfOne<"i1e">(x); }
StatusOr<Tensor> I1(const Tensor& x) { return OfOne<"i1">(x); }

StatusOr<Tensor> Polygamma(int64_t n, const Tensor& x) {
  static const OpExpr& op = OpBuilder("polygamma").Input("in").Output("out").Attr("n").Get();
  if (n < 0) return BadValue("polygamma", "n", absl::StrCat(n), "at least 0");
  return Call(op, {x}, {static_cast<double>(n)});
}
StatusOr<Tensor> Mvlgamma(const Tensor& x, int64_t p) {
  constexpr int64_t kMostDims = 1 << 16;  // each element is a sum of so many terms
  static const OpExpr& op = OpBuilder("mvlgamma").Input("in").Output("out").Attr("p").Get();
  if (p < 1 || p > kMostDims) {
    return BadValue("mvlgamma", "p", absl::StrCat(p), absl::StrCat("from 1 to ", kMostDims));
  }
  return Call(op, {x}, {static_cast<double>(p)});
}
StatusOr<Tensor> Zeta(const Operand& s, const Operand& q) {
  return CallFloating(OpOfTwo<"zeta">(), s, q);
}
StatusOr<TensorList> Frexp(const Tensor& x) {
  static const OpExpr& op =
      OpBuilder("frexp").Input("in").Output("mantissa").Output("exponent").Get();
  OFL_ASSIGN_OR_RETURN(const Tensor wide,
                       IsFloating(x.dtype()) ? StatusOr<Tensor>(x) : Cast(x, DType::kFloat32));
  const Tensor inputs[] = {wide};
  return CallAll(op, inputs);
}

OFL_REGISTER_FUNCTION("special_ndtr(Tensor input) -> Tensor", Ndtr, kFunction,
                      "P(N <= x) of each element, N standard normal.");
OFL_REGISTER_FUNCTION("special_log_ndtr(Tensor input) -> Tensor", LogNdtr, kFunction,
                      "log(ndtr(x)) of each element, where ndtr(x) vanishes too.");
OFL_REGISTER_FUNCTION("special_ndtri(Tensor input) -> Tensor", Ndtri, kFunction,
                      "Where ndtr has each element's value; infinite at 0 and 1, NaN beyond.");
OFL_REGISTER_FUNCTION("special_entr(Tensor input) -> Tensor", Entr, kFunction,
                      "-x log(x) of each element: 0 at 0, -inf below.");
OFL_REGISTER_FUNCTION("special_erfcx(Tensor input) -> Tensor", Erfcx, kFunction,
                      "exp(x^2) erfc(x) of each element, without overflow for x > 0.");
OFL_REGISTER_FUNCTION("special_i0e(Tensor input) -> Tensor", I0e, kFunction,
                      "exp(-|x|) i0(x) of each element.");
OFL_REGISTER_FUNCTION("special_i1(Tensor input) -> Tensor", I1, kFunction,
                      "The modified Bessel function of the first kind and order 1.");
OFL_REGISTER_FUNCTION("special_i1e(Tensor input) -> Tensor", I1e, kFunction,
                      "exp(-|x|) i1(x) of each element.");
OFL_REGISTER_FUNCTION(
    "special_zeta(Operand input, Operand other) -> Tensor", Zeta, kFunction,
    "Hurwitz's zeta function: the sum of (other + k)^-input over k >= 0; NaN where input < 1.\n"
    "It has a gradient by other alone.");
OFL_REGISTER_FUNCTION("polygamma(int n, Tensor input) -> Tensor", Polygamma, kFunction,
                      "The derivative of order n of digamma.");
OFL_REGISTER_FUNCTION("mvlgamma(Tensor input, int p) -> Tensor", Mvlgamma, kMethod,
                      "The logarithm of the gamma function of p dims; NaN or infinite where x is "
                      "at most (p - 1) / 2.");
OFL_REGISTER_FUNCTION("frexp(Tensor input) -> (Tensor mantissa, Tensor exponent)", Frexp, kMethod,
                      "mantissa from 1/2 up to 1, and int32 exponent: x = mantissa * 2^exponent.");

OFL_REGISTER_ALIAS("special_expit", "sigmoid");
OFL_REGISTER_ALIAS("special_gammaln", "lgamma");
OFL_REGISTER_ALIAS("special_multigammaln", "mvlgamma");
OFL_REGISTER_ALIAS("special_psi", "digamma");

}  // namespace oneflow_lite::functional
