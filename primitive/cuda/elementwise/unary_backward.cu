// SPDX-License-Identifier: Apache-2.0
//
// dy times the slope of a function at what it saved: its output y or its input x. The formulas are
// those of primitive/cpu/unary_backward.cpp.
#include "primitive/cuda/elementwise/find.cuh"
#include "primitive/cuda/functions/narrow_bessel_math.cuh"
#include "primitive/cuda/functions/narrow_gamma_math.cuh"
#include "primitive/gamma_math.h"

namespace oneflow_lite {
namespace cuda {
namespace {

#define OFL_SLOPE(Name, saved, expression)        \
  struct Name : LongInDouble {                    \
    template <class C>                            \
    __device__ C operator()(C g, C saved) const { \
      return expression;                          \
    }                                             \
  }
OFL_SLOPE(AbsSlope, x, g*(x > C(0) ? C(1) : x < C(0) ? C(-1) : C(0)));
OFL_SLOPE(SqrtSlope, y, g / (y + y));
OFL_SLOPE(RsqrtSlope, y, C(-0.5) * g * (y * (y * y)));
OFL_SLOPE(TanhSlope, y, g*(C(1) - y * y));
OFL_SLOPE(SigmoidSlope, y, g*(y*(C(1) - y)));
OFL_SLOPE(SquareSlope, x, g*(x + x));
OFL_SLOPE(ReciprocalSlope, y, -(g*(y* y)));
OFL_SLOPE(NanToNumSlope, x, isfinite(x) ? g : C(0));
OFL_SLOPE(Exp2Slope, y, g*(y* C(0.69314718055994530942)));
OFL_SLOPE(Expm1Slope, y, g*(y + C(1)));
OFL_SLOPE(Log1pSlope, x, g / (C(1) + x));
OFL_SLOPE(Log2Slope, x, g / (x * C(0.69314718055994530942)));
OFL_SLOPE(Log10Slope, x, g / (x * C(2.30258509299404568402)));
OFL_SLOPE(SinSlope, x, g* cos(x));
OFL_SLOPE(CosSlope, x, -(g* sin(x)));
OFL_SLOPE(TanSlope, y, g*(C(1) + y * y));
OFL_SLOPE(SinhSlope, x, g* cosh(x));
OFL_SLOPE(CoshSlope, x, g* sinh(x));
OFL_SLOPE(AsinSlope, x, g / sqrt((C(1) - x) * (C(1) + x)));
OFL_SLOPE(AcosSlope, x, -(g / sqrt((C(1) - x) * (C(1) + x))));
OFL_SLOPE(AtanSlope, x, g / (C(1) + x * x));
OFL_SLOPE(AsinhSlope, x, g / (fabs(x) > C(1e9) ? fabs(x) : sqrt(x * x + C(1))));
OFL_SLOPE(AcoshSlope, x, g / (x > C(1e9) ? x : sqrt((x - C(1)) * (x + C(1)))));
OFL_SLOPE(AtanhSlope, x, g / ((C(1) - x) * (C(1) + x)));
OFL_SLOPE(ErfSlope, x, g*(C(1.12837916709551257390) * exp(-x * x)));
OFL_SLOPE(ErfcSlope, x, -(g*(C(1.12837916709551257390) * exp(-x * x))));
OFL_SLOPE(ErfinvSlope, y, g* C(0.88622692545275801365) * exp(y * y));
#undef OFL_SLOPE
struct LgammaSlope : Long {
  template <class C>
  __device__ C operator()(C g, C x) const {
    return g * Digamma(x);
  }
  __device__ float Narrow(float g, float x) const { return g * narrow::Digamma(x); }
};
struct DigammaSlope : LongInDouble {
  __device__ float operator()(float g, float x) const { return g * fast::Trigamma(x); }
  __device__ double operator()(double g, double x) const { return g * Trigamma(x); }
  __device__ float Narrow(float g, float x) const { return g * narrow::Trigamma(x); }
};

// p: eps, or negative. 1 / (x (1 - x)): NaN outside [0, 1]; with eps, 0 outside [eps, 1 - eps].
struct LogitSlope : LongInDouble {
  explicit LogitSlope(const UnaryParams& params) : p(params) {}
  UnaryParams p;
  template <class C>
  __device__ C operator()(C g, C x) const {
    const bool free = p.v[0] < 0;
    const C least = free ? C(0) : static_cast<C>(p.v[0]);
    if (x < least || x > C(1) - least) return g * (free ? C(NAN) : C(0));
    return g / (x * (C(1) - x));
  }
  __device__ float Narrow(float g, float x) const {
    const bool free = p.v[0] < 0;
    const float least = free ? 0.0f : static_cast<float>(p.v[0]);
    const float within = narrow::TimesLogitSlope(g, x), beyond = g * (free ? NAN : 0.0f);
    return x < least || x > 1.0f - least ? beyond : within;
  }
};
// (t cos t - sin t) / t^2 times pi, t = pi x; near 0 by its series.
struct SincSlope : LongInDouble {
  template <class C>
  __device__ C operator()(C g, C x) const {
    const C pi = C(3.14159265358979323846), t = pi * x, q = t * t;
    if (q >= C(1)) return g * (pi * ((t * cospi(x) - sinpi(x)) / q));
    C sum = C(1) - q / C(238);
    sum = C(1) - q / C(180) * sum;
    sum = C(1) - q / C(130) * sum;
    sum = C(1) - q / C(88) * sum;
    sum = C(1) - q / C(54) * sum;
    sum = C(1) - q / C(28) * sum;
    sum = C(1) - q / C(10) * sum;
    return g * (pi * (-t / C(3) * sum));
  }
};
struct I0Slope : Long {
  __device__ float operator()(float g, float x) const { return g * cyl_bessel_i1f(x); }
  __device__ double operator()(double g, double x) const { return g * cyl_bessel_i1(x); }
  __device__ float Narrow(float g, float x) const { return g * narrow::I1(x); }
};

template <class Op>
UnaryBackwardLauncher Slopes(DType common) {
  return FindFor<kFloats, 2, UnaryParams, Op>(common);
}

UnaryBackwardLauncher FindCurved(UnaryOp op, DType dtype) {
  switch (op) {
    case UnaryOp::kSin:
      return Slopes<SinSlope>(dtype);
    case UnaryOp::kCos:
      return Slopes<CosSlope>(dtype);
    case UnaryOp::kTan:
      return Slopes<TanSlope>(dtype);
    case UnaryOp::kSinh:
      return Slopes<SinhSlope>(dtype);
    case UnaryOp::kCosh:
      return Slopes<CoshSlope>(dtype);
    case UnaryOp::kAsin:
      return Slopes<AsinSlope>(dtype);
    case UnaryOp::kAcos:
      return Slopes<AcosSlope>(dtype);
    case UnaryOp::kAtan:
      return Slopes<AtanSlope>(dtype);
    case UnaryOp::kAsinh:
      return Slopes<AsinhSlope>(dtype);
    case UnaryOp::kAcosh:
      return Slopes<AcoshSlope>(dtype);
    case UnaryOp::kAtanh:
      return Slopes<AtanhSlope>(dtype);
    case UnaryOp::kErf:
      return Slopes<ErfSlope>(dtype);
    case UnaryOp::kErfc:
      return Slopes<ErfcSlope>(dtype);
    case UnaryOp::kErfinv:
      return Slopes<ErfinvSlope>(dtype);
    case UnaryOp::kLgamma:
      return Slopes<LgammaSlope>(dtype);
    case UnaryOp::kDigamma:
      return Slopes<DigammaSlope>(dtype);
    case UnaryOp::kLogit:
      return Slopes<LogitSlope>(dtype);
    case UnaryOp::kSinc:
      return Slopes<SincSlope>(dtype);
    case UnaryOp::kI0:
      return Slopes<I0Slope>(dtype);
    default:
      return FindSpecialSlope(op, dtype);
  }
}

}  // namespace

UnaryBackwardLauncher FindUnaryBackward(UnaryOp op, DType dtype) {
  switch (op) {
    case UnaryOp::kAbs:
      return Slopes<AbsSlope>(dtype);
    case UnaryOp::kSqrt:
      return Slopes<SqrtSlope>(dtype);
    case UnaryOp::kRsqrt:
      return Slopes<RsqrtSlope>(dtype);
    case UnaryOp::kTanh:
      return Slopes<TanhSlope>(dtype);
    case UnaryOp::kSigmoid:
      return Slopes<SigmoidSlope>(dtype);
    case UnaryOp::kSquare:
      return Slopes<SquareSlope>(dtype);
    case UnaryOp::kReciprocal:
      return Slopes<ReciprocalSlope>(dtype);
    case UnaryOp::kNanToNum:
      return Slopes<NanToNumSlope>(dtype);
    case UnaryOp::kExp2:
      return Slopes<Exp2Slope>(dtype);
    case UnaryOp::kExpm1:
      return Slopes<Expm1Slope>(dtype);
    case UnaryOp::kLog1p:
      return Slopes<Log1pSlope>(dtype);
    case UnaryOp::kLog2:
      return Slopes<Log2Slope>(dtype);
    case UnaryOp::kLog10:
      return Slopes<Log10Slope>(dtype);
    default:
      return FindCurved(op, dtype);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
