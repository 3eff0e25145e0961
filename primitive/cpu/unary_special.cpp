// SPDX-License-Identifier: Apache-2.0
//
// Special functions, element by element.
#include "primitive/cpu/special_math.h"
#include "primitive/cpu/unary.h"
#include "primitive/gamma_math.h"

namespace oneflow_lite {
namespace {

template <class C, class F>
void Loop(int64_t n, const void* x_data, void* y_data, const UnaryParams&) {
  const C* x = static_cast<const C*>(x_data);
  C* y = static_cast<C*>(y_data);
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i]);
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

}  // namespace

UnaryCode FindSpecial(UnaryOp op, DType dtype) {
  switch (op) {
    case UnaryOp::kErfinv:
      return Wide(dtype, [](auto x) { return Erfinv(x); });
    case UnaryOp::kLgamma:
      return Wide(dtype, [](auto x) { return LogGamma(x); });
    case UnaryOp::kDigamma:
      return Wide(dtype, [](auto x) { return decltype(x)(Digamma(static_cast<double>(x))); });
    case UnaryOp::kI0:
      return Wide(dtype, [](auto x) { return BesselI0(x); });
    default:
      return {};
  }
}

}  // namespace oneflow_lite
