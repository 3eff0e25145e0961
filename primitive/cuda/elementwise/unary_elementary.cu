// SPDX-License-Identifier: Apache-2.0
//
// Exponentials, logarithms, trigonometric, hyperbolic and special functions: CUDA's, where it has
// them.
#include "primitive/cuda/elementwise/find.cuh"
#include "primitive/cuda/functions/float_gamma_math.cuh"
#include "primitive/cuda/functions/float_normal_math.cuh"
#include "primitive/cuda/functions/narrow_bessel_math.cuh"
#include "primitive/cuda/functions/narrow_gamma_math.cuh"
#include "primitive/gamma_math.h"

namespace oneflow_lite {
namespace cuda {
namespace {

// One expression for float and double, whose functions are overloads.
#define OFL_FUNCTION_OF(Name, Base, expression) \
  struct Name : Base {                          \
    template <class C>                          \
    __device__ C operator()(C x) const {        \
      return expression;                        \
    }                                           \
  }
// The same with a form for results of 16 bits.
#define OFL_TWO_FORMS(Name, Base, expression, Form)                    \
  struct Name : Base {                                                 \
    template <class C>                                                 \
    __device__ C operator()(C x) const {                               \
      return expression;                                               \
    }                                                                  \
    __device__ float Narrow(float x) const { return narrow::Form(x); } \
  }
#define OFL_FUNCTION(Name, expression) OFL_FUNCTION_OF(Name, LongInDouble, expression)
OFL_FUNCTION(Exp2, exp2(x));
OFL_TWO_FORMS(Expm1, LongInDouble, expm1(x), Expm1);
OFL_TWO_FORMS(Log1p, LongInDouble, log1p(x), Log1p);
OFL_TWO_FORMS(Log2, LongInDouble, log2(x), LogOf2);
OFL_TWO_FORMS(Log10, LongInDouble, log10(x), Log10);
OFL_TWO_FORMS(Sin, LongInDouble, sin(x), Sin);
OFL_TWO_FORMS(Cos, LongInDouble, cos(x), Cos);
OFL_TWO_FORMS(Tan, LongInDouble, tan(x), Tan);
OFL_TWO_FORMS(Asin, LongInDouble, asin(x), Asin);
OFL_TWO_FORMS(Acos, LongInDouble, acos(x), Acos);
OFL_TWO_FORMS(Atan, LongInDouble, atan(x), Atan);
OFL_TWO_FORMS(Sinh, LongInDouble, sinh(x), Sinh);
OFL_TWO_FORMS(Cosh, LongInDouble, cosh(x), Cosh);
OFL_TWO_FORMS(Tanh, LongInDouble, tanh(x), Tanh);
OFL_TWO_FORMS(Asinh, LongInDouble, asinh(x), Asinh);
OFL_TWO_FORMS(Acosh, LongInDouble, acosh(x), Acosh);
OFL_TWO_FORMS(Atanh, LongInDouble, atanh(x), Atanh);
OFL_TWO_FORMS(Erf, LongInDouble, erf(x), Erf);
OFL_TWO_FORMS(Erfinv, Long, erfinv(x), Erfinv);
#undef OFL_FUNCTION
#undef OFL_TWO_FORMS
#undef OFL_FUNCTION_OF

// A form for each compute type, and one for results of 16 bits.
#define OFL_THREE_FORMS(Name, wide, single, Form)                      \
  struct Name : LongInDouble {                                         \
    __device__ double operator()(double x) const { return wide; }      \
    __device__ float operator()(float x) const { return single; }      \
    __device__ float Narrow(float x) const { return narrow::Form(x); } \
  }
OFL_THREE_FORMS(Erfc, erfc(x), fast::Erfc(x), Erfc);
OFL_THREE_FORMS(Lgamma, lgamma(x), fast::Lgamma(x), Lgamma);
#undef OFL_THREE_FORMS
// Below 0 by reflection, in double.
struct DigammaOf : Long {
  __device__ float operator()(float x) const {
    return x < 0x1p-100f ? Digamma(x) : fast::DigammaOfPositive(x);
  }
  __device__ double operator()(double x) const { return Digamma(x); }
  __device__ float Narrow(float x) const { return narrow::Digamma(x); }
};

struct I0 : Long {
  __device__ float operator()(float x) const { return cyl_bessel_i0f(x); }
  __device__ double operator()(double x) const { return cyl_bessel_i0(x); }
  __device__ float Narrow(float x) const { return narrow::I0(x); }
};
// p: eps, or negative. log(x / (1 - x)); between 1/4 and 3/4, where that is near log(1),
// 2 atanh(2 x - 1), whose argument is exact.
struct Logit : LongInDouble {
  explicit Logit(const UnaryParams& params) : p(params) {}
  UnaryParams p;
  template <class C>
  __device__ C operator()(C x) const {
    const C least = static_cast<C>(p.v[0]), most = C(1) - least;
    if (least >= C(0)) x = x < least ? least : x > most ? most : x;
    if constexpr (sizeof(C) == 4) return fast::Logit(x);
    const C centred = (x + x) - C(1);
    if (fabs(centred) <= C(0.5)) return C(2) * atanh(centred);
    return log(x / (C(1) - x));
  }
  __device__ float Narrow(float x) const {
    const auto least = static_cast<float>(p.v[0]), most = 1.0f - least;
    if (least >= 0.0f) x = x < least ? least : x > most ? most : x;
    return narrow::Logit(x);
  }
};
struct Sinc : LongInDouble {
  template <class C>
  __device__ C operator()(C x) const {
    return x == C(0) ? C(1) : sinpi(x) / (C(3.14159265358979323846) * x);
  }
  __device__ float Narrow(float x) const { return narrow::Sinc(x); }
};

template <class Op>
UnaryLauncher Floats(DType common) {
  return FindFor<kFloats, 1, UnaryParams, Op>(common);
}

}  // namespace

UnaryLauncher FindElementary(UnaryOp op, DType dtype) {
  switch (op) {
    case UnaryOp::kExp2:
      return Floats<Exp2>(dtype);
    case UnaryOp::kExpm1:
      return Floats<Expm1>(dtype);
    case UnaryOp::kLog1p:
      return Floats<Log1p>(dtype);
    case UnaryOp::kLog2:
      return Floats<Log2>(dtype);
    case UnaryOp::kLog10:
      return Floats<Log10>(dtype);
    case UnaryOp::kLogit:
      return Floats<Logit>(dtype);
    case UnaryOp::kSin:
      return Floats<Sin>(dtype);
    case UnaryOp::kCos:
      return Floats<Cos>(dtype);
    case UnaryOp::kTan:
      return Floats<Tan>(dtype);
    case UnaryOp::kAsin:
      return Floats<Asin>(dtype);
    case UnaryOp::kAcos:
      return Floats<Acos>(dtype);
    case UnaryOp::kAtan:
      return Floats<Atan>(dtype);
    case UnaryOp::kSinh:
      return Floats<Sinh>(dtype);
    case UnaryOp::kCosh:
      return Floats<Cosh>(dtype);
    case UnaryOp::kTanh:
      return Floats<Tanh>(dtype);
    case UnaryOp::kAsinh:
      return Floats<Asinh>(dtype);
    case UnaryOp::kAcosh:
      return Floats<Acosh>(dtype);
    case UnaryOp::kAtanh:
      return Floats<Atanh>(dtype);
    case UnaryOp::kSinc:
      return Floats<Sinc>(dtype);
    case UnaryOp::kErf:
      return Floats<Erf>(dtype);
    case UnaryOp::kErfc:
      return Floats<Erfc>(dtype);
    case UnaryOp::kErfinv:
      return Floats<Erfinv>(dtype);
    case UnaryOp::kLgamma:
      return Floats<Lgamma>(dtype);
    case UnaryOp::kDigamma:
      return Floats<DigammaOf>(dtype);
    case UnaryOp::kI0:
      return Floats<I0>(dtype);
    default:
      return FindSpecial(op, dtype);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
