// SPDX-License-Identifier: Apache-2.0
//
// Special functions, element by element. Those of float are computed in double and rounded once.
#include <type_traits>

#include "primitive/cpu/special_math.h"
#include "primitive/cpu/unary_bessel.h"
#include "primitive/gamma_math.h"
#include "primitive/normal_math.h"
#include "primitive/zeta_math.h"

namespace oneflow_lite {
namespace {

template <class C, class F>
void Loop(int64_t n, const void* x_data, void* y_data, const UnaryParams& params) {
  const C* x = static_cast<const C*>(x_data);
  C* y = static_cast<C*>(y_data);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_invocable_v<F, C, const UnaryParams&>) {
      y[i] = F()(x[i], params);
    } else {
      y[i] = F()(x[i]);
    }
  }
}
template <class F>
UnaryCode Wide(DType dtype, F) {
  return WideCode(dtype, &Loop<float, F>, &Loop<double, F>);
}

// std::lgamma writes the sign of gamma to a global.
float LogGamma(float x) {
  int sign;
  return lgammaf_r(x, &sign);
}
double LogGamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

// log of the gamma function of p dims: the sum of log gamma at x, x - 1/2 ..., and a constant.
double MultiLogGamma(double x, int p) {
  double sum = 0.25 * p * (p - 1) * 1.14472988584940017414;
  for (int i = 0; i < p; ++i) sum += LogGamma(x - 0.5 * i);
  return sum;
}

UnaryCode FindRarer(UnaryOp op, DType dtype) {
#define OFL_IN_DOUBLE(expression)                    \
  [](auto given, const UnaryParams& params) {        \
    [[maybe_unused]] const UnaryParams& p = params;  \
    const double x = static_cast<double>(given);     \
    return static_cast<decltype(given)>(expression); \
  }
  switch (op) {
    case UnaryOp::kNdtr:
      return Wide(dtype, OFL_IN_DOUBLE(Ndtr(x)));
    case UnaryOp::kLogNdtr:
      return Wide(dtype, OFL_IN_DOUBLE(LogNdtr(x)));
    case UnaryOp::kNdtri:
      return Wide(dtype, OFL_IN_DOUBLE(Ndtri(x)));
    case UnaryOp::kEntr:
      return Wide(dtype, OFL_IN_DOUBLE(Entr(x)));
    case UnaryOp::kErfcx:
      return Wide(dtype, OFL_IN_DOUBLE(Erfcx(x)));
    case UnaryOp::kPolygamma:
      return Wide(dtype, OFL_IN_DOUBLE(Polygamma(static_cast<int>(p.v[0]), x)));
    case UnaryOp::kMvlgamma:
      return Wide(dtype, OFL_IN_DOUBLE(MultiLogGamma(x, static_cast<int>(p.v[0]))));
    default:
      return FindBessel(op, dtype);
  }
#undef OFL_IN_DOUBLE
}

}  // namespace

UnaryCode FindSpecial(UnaryOp op, DType dtype) {
  switch (op) {
    case UnaryOp::kErfinv:
      return Wide(dtype, [](auto x) { return Erfinv(x); });
    case UnaryOp::kLgamma:
      return Wide(dtype, [](auto x) { return LogGamma(x); });
    case UnaryOp::kDigamma:
      return Wide(dtype, [](auto x) { return decltype(x)(Digamma(static_cast<double>(x))); });
    default:
      return FindRarer(op, dtype);
  }
}

}  // namespace oneflow_lite
