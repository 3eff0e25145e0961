// SPDX-License-Identifier: Apache-2.0
//
// Functions of the normal distribution, Bessel functions and derivatives of log gamma, and their
// slopes. Most are computed in double, for float rounded once.
#include "primitive/cuda/elementwise/find.cuh"
#include "primitive/cuda/functions/float_gamma_math.cuh"
#include "primitive/cuda/functions/float_normal_math.cuh"
#include "primitive/cuda/functions/float_special_math.cuh"
#include "primitive/cuda/functions/narrow_bessel_math.cuh"
#include "primitive/cuda/functions/narrow_gamma_math.cuh"
#include "primitive/cuda/functions/narrow_math.cuh"
#include "primitive/normal_math.h"
#include "primitive/zeta_math.h"

namespace oneflow_lite {
namespace cuda {
namespace {

// sqrt(2 pi x) exp(-x) times the Bessel function of that order, x large: Hankel's expansion
// (Abramowitz and Stegun, 9.7.1).
__device__ double BesselFar(double x, int order) {
  const double squares = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 12; ++k) {
    const double odd = 2 * k - 1;
    term *= (odd * odd - squares) / (8 * k * x);
    sum += term;
  }
  return sum;
}
__device__ double ScaledI0(double value) {
  const double x = fabs(value);
  if (x < 300) return exp(-x) * cyl_bessel_i0(x);
  return 0.39894228040143267794 / sqrt(x) * BesselFar(x, 0);
}
__device__ double ScaledI1(double value) {
  const double x = fabs(value);
  const double y =
      x < 300 ? exp(-x) * cyl_bessel_i1(x) : 0.39894228040143267794 / sqrt(x) * BesselFar(x, 1);
  return copysign(y, value);
}
__device__ double SlopeOfScaledI0(double x) {
  const double sign = (x > 0) - (x < 0);
  return ScaledI1(x) - sign * ScaledI0(x);
}
__device__ double SlopeOfScaledI1(double x) {
  if (fabs(x) < 1e-8) return 0.5;
  return ScaledI0(x) - ScaledI1(x) * (copysign(1.0, x) + 1 / x);
}
__device__ double SlopeOfI1(double x) {
  if (fabs(x) < 1e-8) return 0.5;
  const double i0 = cyl_bessel_i0(x);
  return isinf(i0) ? i0 : i0 - cyl_bessel_i1(x) / x;
}
__device__ double SlopeOfErfcx(double x) {
  return x >= 12 ? FarErfcxSlope(x) : 2 * (x * erfcx(x) - 0.56418958354775628695);
}
__device__ float EntrOfFloat(float x) {
  if (x > 0.0f) return -x * logf(x);
  return x == 0.0f ? 0.0f : x < 0.0f ? -INFINITY : x;
}
__device__ double MultiLogGamma(double x, int p) {
  double sum = 0.25 * p * (p - 1) * 1.14472988584940017414;
  for (int i = 0; i < p; ++i) sum += lgamma(x - 0.5 * i);
  return sum;
}

// One expression of x, in double, and one for its slope at s; p: the params.
#define OFL_IN_DOUBLE(Name, expression)                     \
  struct Name : Long {                                      \
    explicit Name(const UnaryParams& params) : p(params) {} \
    UnaryParams p;                                          \
    template <class C>                                      \
    __device__ C operator()(C given) const {                \
      const double x = static_cast<double>(given);          \
      return static_cast<C>(expression);                    \
    }                                                       \
  }
#define OFL_SLOPE_IN_DOUBLE(Name, expression)               \
  struct Name : Long {                                      \
    explicit Name(const UnaryParams& params) : p(params) {} \
    UnaryParams p;                                          \
    template <class C>                                      \
    __device__ C operator()(C g, C saved) const {           \
      const double s = static_cast<double>(saved);          \
      return g * static_cast<C>(expression);                \
    }                                                       \
  }
OFL_IN_DOUBLE(MvlgammaOf, MultiLogGamma(x, static_cast<int>(p.v[0])));
OFL_SLOPE_IN_DOUBLE(LogNdtrSlopeOf, LogNdtrSlope(s));
OFL_SLOPE_IN_DOUBLE(ErfcxSlope, SlopeOfErfcx(s));
OFL_SLOPE_IN_DOUBLE(MvlgammaSlope, MultiDigamma(s, static_cast<int>(p.v[0])));
// The derivative of that order of digamma; called, so that it is in a kernel once. Floats take
// n! zeta(n + 1, x) where the factorial is small.
__device__ __noinline__ double PolygammaAt(int n, double x) { return Polygamma(n, x); }
__device__ inline float PolygammaAt(int n, float x) {
  const float s = static_cast<float>(n) + 1.0f;
  if (n < 1 || n > 12 || !fast::IsUsualZeta(s, x)) {
    return static_cast<float>(PolygammaAt(n, static_cast<double>(x)));
  }
  float size = fast::ZetaOfPositive(s, x);
  for (int k = 2; k <= n; ++k) size *= static_cast<float>(k);
  return n % 2 == 0 ? -size : size;
}
struct PolygammaOf : Long {
  explicit PolygammaOf(const UnaryParams& p) : order(static_cast<int>(p.v[0])) {}
  int order;
  template <class C>
  __device__ C operator()(C x) const {
    return PolygammaAt(order, x);
  }
};
struct PolygammaSlope : Long {
  explicit PolygammaSlope(const UnaryParams& p) : order(static_cast<int>(p.v[0]) + 1) {}
  int order;
  template <class C>
  __device__ C operator()(C g, C s) const {
    return g * PolygammaAt(order, s);
  }
};
struct TrigammaSlope : Long {
  __device__ float operator()(float g, float s) const {
    return g * (s > 0.0f ? fast::TetragammaOfPositive(s) : PolygammaAt(2, s));
  }
  __device__ double operator()(double g, double s) const { return g * PolygammaAt(2, s); }
};
struct TrigammaOf : LongInDouble {
  __device__ float operator()(float x) const { return fast::Trigamma(x); }
  __device__ double operator()(double x) const { return Trigamma(x); }
  __device__ float Narrow(float x) const { return narrow::Trigamma(x); }
};
// Functions and slopes in double, with a form for results of 16 bits.
#define OFL_TWO_FORMS(Name, expression, Form)                          \
  struct Name : Long {                                                 \
    template <class C>                                                 \
    __device__ C operator()(C given) const {                           \
      const double x = static_cast<double>(given);                     \
      return static_cast<C>(expression);                               \
    }                                                                  \
    __device__ float Narrow(float x) const { return narrow::Form(x); } \
  }
#define OFL_TWO_SLOPES(Name, expression, Form)                                      \
  struct Name : Long {                                                              \
    template <class C>                                                              \
    __device__ C operator()(C g, C saved) const {                                   \
      const double s = static_cast<double>(saved);                                  \
      return g * static_cast<C>(expression);                                        \
    }                                                                               \
    __device__ float Narrow(float g, float s) const { return g * narrow::Form(s); } \
  }
OFL_TWO_FORMS(I1Of, cyl_bessel_i1(x), I1);
OFL_TWO_SLOPES(NdtrSlope, 0.39894228040143267794 * exp(-0.5 * s * s), NdtrSlope);
OFL_TWO_SLOPES(NdtriSlope, 2.50662827463100050242 * exp(0.5 * s * s), NdtriSlope);
OFL_TWO_SLOPES(EntrSlope, -log(s) - 1, EntrSlope);
OFL_TWO_SLOPES(I0eSlope, SlopeOfScaledI0(s), I0eSlope);
OFL_TWO_SLOPES(I1Slope, SlopeOfI1(s), I1Slope);
OFL_TWO_SLOPES(I1eSlope, SlopeOfScaledI1(s), I1eSlope);
#undef OFL_TWO_SLOPES
#undef OFL_TWO_FORMS
// A form for each compute type, and one for results of 16 bits.
#define OFL_THREE_FORMS(Name, wide, single, Form)                      \
  struct Name : LongInDouble {                                         \
    __device__ double operator()(double x) const { return wide; }      \
    __device__ float operator()(float x) const { return single; }      \
    __device__ float Narrow(float x) const { return narrow::Form(x); } \
  }
OFL_THREE_FORMS(I0eOf, ScaledI0(x), fast::I0e(x), I0e);
OFL_THREE_FORMS(I1eOf, ScaledI1(x), fast::I1e(x), I1e);
OFL_THREE_FORMS(NdtrOf, Ndtr(x), fast::Ndtr(x), Ndtr);
OFL_THREE_FORMS(EntrOf, Entr(x), EntrOfFloat(x), Entr);
#undef OFL_THREE_FORMS
struct NdtriOf : LongInDouble {
  __device__ float operator()(float x) const { return fast::Ndtri(x); }
  __device__ double operator()(double x) const { return Ndtri(x); }
};
struct LogNdtrOf : LongInDouble {
  __device__ float operator()(float x) const { return fast::LogNdtr(x); }
  __device__ double operator()(double x) const { return LogNdtr(x); }
};
struct ErfcxOf : LongInDouble {
  __device__ float operator()(float x) const { return erfcxf(x); }
  __device__ double operator()(double x) const { return erfcx(x); }
};
#undef OFL_SLOPE_IN_DOUBLE
#undef OFL_IN_DOUBLE

template <class Op>
UnaryLauncher Floats(DType common) {
  return FindFor<kFloats, 1, UnaryParams, Op>(common);
}
template <class Op>
UnaryBackwardLauncher Slopes(DType common) {
  return FindFor<kFloats, 2, UnaryParams, Op>(common);
}
// Of order 1 in a form of its own.
template <class C>
cudaError_t LaunchPolygamma(const Pass<1>& pass, const UnaryParams& p, cudaStream_t stream) {
  if (p.v[0] == 1) return LaunchOp<1, UnaryParams, C, TrigammaOf>(pass, p, stream);
  return LaunchOp<1, UnaryParams, C, PolygammaOf>(pass, p, stream);
}
template <class C>
cudaError_t LaunchPolygammaSlope(const Pass<2>& pass, const UnaryParams& p, cudaStream_t stream) {
  if (p.v[0] == 1) return LaunchOp<2, UnaryParams, C, TrigammaSlope>(pass, p, stream);
  return LaunchOp<2, UnaryParams, C, PolygammaSlope>(pass, p, stream);
}
UnaryBackwardLauncher FindPolygammaSlope(DType common) {
  return common == DType::kFloat64 ? &LaunchPolygammaSlope<double> : &LaunchPolygammaSlope<float>;
}
UnaryLauncher FindPolygamma(DType common) {
  return common == DType::kFloat64 ? &LaunchPolygamma<double> : &LaunchPolygamma<float>;
}

}  // namespace

UnaryLauncher FindSpecial(UnaryOp op, DType dtype) {
  switch (op) {
    // clang-format off
    case UnaryOp::kNdtr: return Floats<NdtrOf>(dtype);
    case UnaryOp::kLogNdtr: return Floats<LogNdtrOf>(dtype);
    case UnaryOp::kNdtri: return Floats<NdtriOf>(dtype);
    case UnaryOp::kEntr: return Floats<EntrOf>(dtype);
    case UnaryOp::kErfcx: return Floats<ErfcxOf>(dtype);
    case UnaryOp::kI0e: return Floats<I0eOf>(dtype);
    case UnaryOp::kI1: return Floats<I1Of>(dtype);
    case UnaryOp::kI1e: return Floats<I1eOf>(dtype);
    case UnaryOp::kPolygamma: return FindPolygamma(dtype);
    case UnaryOp::kMvlgamma: return Floats<MvlgammaOf>(dtype);
    // clang-format on
    default:
      return nullptr;
  }
}

UnaryBackwardLauncher FindSpecialSlope(UnaryOp op, DType dtype) {
  switch (op) {
    // clang-format off
    case UnaryOp::kNdtr: return Slopes<NdtrSlope>(dtype);
    case UnaryOp::kLogNdtr: return Slopes<LogNdtrSlopeOf>(dtype);
    case UnaryOp::kNdtri: return Slopes<NdtriSlope>(dtype);
    case UnaryOp::kEntr: return Slopes<EntrSlope>(dtype);
    case UnaryOp::kErfcx: return Slopes<ErfcxSlope>(dtype);
    case UnaryOp::kI0e: return Slopes<I0eSlope>(dtype);
    case UnaryOp::kI1: return Slopes<I1Slope>(dtype);
    case UnaryOp::kI1e: return Slopes<I1eSlope>(dtype);
    case UnaryOp::kPolygamma: return FindPolygammaSlope(dtype);
    case UnaryOp::kMvlgamma: return Slopes<MvlgammaSlope>(dtype);
    // clang-format on
    default:
      return nullptr;
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
