// SPDX-License-Identifier: Apache-2.0
//
// One expression per function: dy times its slope at s, the function's output or input, on vectors
// of float or double. 16-bit floats are converted block by block.
#include "primitive/unary_backward.h"

#include "primitive/cpu/chunked_pass.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/special_math.h"
#include "primitive/gamma_math.h"
#include "primitive/normal_math.h"
#include "primitive/zeta_math.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/unary_backward.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/vector_math-inl.h"

#ifndef OFL_PRIMITIVE_CPU_UNARY_BACKWARD_ONCE_
#define OFL_PRIMITIVE_CPU_UNARY_BACKWARD_ONCE_
namespace oneflow_lite {
// dx = dy * slope(s), elements of the compute type; dx may be dy.
using UnaryBackwardLoop = void (*)(int64_t n, const void* dy, const void* s, void* dx,
                                   const UnaryParams& params);
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class C, class F>
void Loop(int64_t n, const void* dy_data, const void* s_data, void* dx_data,
          const UnaryParams& params) {
  const hn::ScalableTag<C> d;
  const C *dy = static_cast<const C*>(dy_data), *s = static_cast<const C*>(s_data);
  C* dx = static_cast<C*>(dx_data);
  const auto zero = hn::Zero(d);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto g = LoadUpTo(d, dy + i, count, zero), v = LoadUpTo(d, s + i, count, zero);
    StoreUpTo(F()(d, g, v, params), d, dx + i, count);
  });
}
template <class F>
UnaryBackwardLoop Wide(DType dtype, F) {
  if (!IsFloating(dtype)) return nullptr;
  return dtype == DType::kFloat64 ? &Loop<double, F> : &Loop<float, F>;
}

template <class D>
HWY_INLINE hn::Vec<D> Number(D d, double v) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(v));
}
template <class D>
HWY_INLINE hn::Vec<D> OneLess(D d, hn::Vec<D> x) {  // 1 - x
  return hn::Sub(Number(d, 1), x);
}
template <class D>
HWY_INLINE hn::Vec<D> OneMore(D d, hn::Vec<D> x) {
  return hn::Add(Number(d, 1), x);
}
// sqrt(x^2 + one), of a large x its size: the square would overflow.
template <class D>
HWY_INLINE hn::Vec<D> RootOfSquare(D d, hn::Vec<D> x, double one) {
  const auto size = hn::Abs(x);
  const auto root = one > 0 ? hn::Sqrt(hn::MulAdd(x, x, Number(d, one)))
                            : hn::Sqrt(hn::Mul(hn::Sub(x, Number(d, 1)), OneMore(d, x)));
  return hn::IfThenElse(hn::Gt(size, Number(d, 1e9)), size, root);
}
template <class D>
HWY_INLINE hn::Vec<D> SignOf(D d, hn::Vec<D> x) {  // 0 of 0 and of NaN
  const auto zero = hn::Zero(d), one = Number(d, 1);
  const auto above = hn::IfThenElseZero(hn::Gt(x, zero), one);
  return hn::IfThenElse(hn::Lt(x, zero), hn::Neg(one), above);
}
// 2 / sqrt(pi) exp(-x^2)
template <class D>
HWY_INLINE hn::Vec<D> ErfSlope(D d, hn::Vec<D> x) {
  return hn::Mul(Number(d, 1.12837916709551257390), ExpOf(d, hn::Neg(hn::Mul(x, x))));
}

// The slope of sin(t) / t times pi, t = pi x: (t cos t - sin t) / t^2, near 0 by its series.
template <class C>
C SincSlope(C x) {
  const double t = 3.14159265358979323846 * x, q = t * t;
  double slope = 0;
  if (q < 1) {
    slope =
        -t / 3 *
        (1 -
         q / 10 *
             (1 - q / 28 *
                      (1 - q / 54 * (1 - q / 88 * (1 - q / 130 * (1 - q / 180 * (1 - q / 238)))))));
  } else {
    const double half = x / 2.0, n = std::rint(half);
    const double turn = 6.28318530717958647692 * (half - n);  // t less whole turns
    slope = (t * std::cos(turn) - std::sin(turn)) / q;
  }
  return static_cast<C>(3.14159265358979323846 * slope);
}

// 1 / (x (1 - x)): NaN outside [0, 1]; with eps, 0 outside [eps, 1 - eps].
template <class D>
HWY_INLINE hn::Vec<D> LogitSlope(D d, hn::Vec<D> x, const UnaryParams& params) {
  using C = hn::TFromD<D>;
  const bool free = params.v[0] < 0;
  const C least = free ? C(0) : static_cast<C>(params.v[0]);
  const auto low = hn::Set(d, least), high = hn::Set(d, C(1) - least);
  const auto slope = hn::Div(Number(d, 1), hn::Mul(x, OneLess(d, x)));
  const auto beyond = hn::Set(d, free ? std::numeric_limits<C>::quiet_NaN() : C(0));
  return hn::IfThenElse(hn::Or(hn::Lt(x, low), hn::Gt(x, high)), beyond, slope);
}

template <class D>
HWY_INLINE hn::Vec<D> IfFinite(D d, hn::Vec<D> x, hn::Vec<D> g) {
  return hn::IfThenElseZero(hn::IsFinite(x), g);
}

}  // namespace

// g is dy; y is the output where ops/unary.cpp saves that, x the
// input.
#define OFL_OF(s, expression) \
  [](auto d, auto g, auto s, const UnaryParams& params) OFL_SIMD_LAMBDA { return expression; }
#define OFL_EACH(s, expression)                                                    \
  [](auto d, auto g, auto s, const UnaryParams&) OFL_SIMD_LAMBDA {                 \
    return hn::Mul(g, Each(d, s, [](auto s) { return decltype(s)(expression); })); \
  }
#define OFL_GIVEN(s, expression)                                         \
  [](auto d, auto g, auto saved, const UnaryParams& p) OFL_SIMD_LAMBDA { \
    const auto slope = Each(d, saved, [&p](auto lane) {                  \
      [[maybe_unused]] const UnaryParams& params = p;                    \
      const double s = static_cast<double>(lane);                        \
      return static_cast<decltype(lane)>(expression);                    \
    });                                                                  \
    return hn::Mul(g, slope);                                            \
  }
// Of the functions of normal_math.h, zeta_math.h and special_math.h.
UnaryBackwardLoop FindRarer(UnaryOp op, DType dtype) {
  switch (op) {
    case UnaryOp::kNdtr:
      return Wide(dtype, OFL_GIVEN(x, 0.39894228040143267794 * std::exp(-0.5 * x * x)));
    case UnaryOp::kLogNdtr:
      return Wide(dtype, OFL_GIVEN(x, LogNdtrSlope(x)));
    case UnaryOp::kNdtri:
      return Wide(dtype, OFL_GIVEN(y, 2.50662827463100050242 * std::exp(0.5 * y * y)));
    case UnaryOp::kEntr:
      return Wide(dtype, OFL_GIVEN(x, -std::log(x) - 1));
    case UnaryOp::kErfcx:
      return Wide(dtype, OFL_GIVEN(x, x >= 12 ? FarErfcxSlope(x)
                                              : 2 * (x * Erfcx(x) - 0.56418958354775628695)));
    case UnaryOp::kI0e:
      return Wide(dtype, OFL_GIVEN(x, SlopeOfScaledI0(x)));
    case UnaryOp::kI1:
      return Wide(dtype, OFL_GIVEN(x, SlopeOfI1(x)));
    case UnaryOp::kI1e:
      return Wide(dtype, OFL_GIVEN(x, SlopeOfScaledI1(x)));
    case UnaryOp::kPolygamma:
      return Wide(dtype, OFL_GIVEN(x, Polygamma(static_cast<int>(params.v[0]) + 1, x)));
    case UnaryOp::kMvlgamma:
      return Wide(dtype, OFL_GIVEN(x, MultiDigamma(x, static_cast<int>(params.v[0]))));
    default:
      return nullptr;
  }
}
UnaryBackwardLoop FindCurved(UnaryOp op, DType dtype) {
  switch (op) {
    case UnaryOp::kSin:
      return Wide(dtype, OFL_OF(x, hn::Mul(g, VectorCos(d, x))));
    case UnaryOp::kCos:
      return Wide(dtype, OFL_OF(x, hn::Neg(hn::Mul(g, VectorSin(d, x)))));
    case UnaryOp::kTan:
      return Wide(dtype, OFL_OF(y, hn::Mul(g, OneMore(d, hn::Mul(y, y)))));
    case UnaryOp::kSinh:
      return Wide(dtype, OFL_OF(x, hn::Mul(g, VectorCosh(d, x))));
    case UnaryOp::kCosh:
      return Wide(dtype, OFL_OF(x, hn::Mul(g, VectorSinh(d, x))));
    case UnaryOp::kAsin:
      return Wide(dtype, OFL_OF(x, hn::Div(g, hn::Sqrt(hn::Mul(OneLess(d, x), OneMore(d, x))))));
    case UnaryOp::kAcos:
      return Wide(dtype,
                  OFL_OF(x, hn::Neg(hn::Div(g, hn::Sqrt(hn::Mul(OneLess(d, x), OneMore(d, x)))))));
    case UnaryOp::kAtan:
      return Wide(dtype, OFL_OF(x, hn::Div(g, OneMore(d, hn::Mul(x, x)))));
    case UnaryOp::kAsinh:
      return Wide(dtype, OFL_OF(x, hn::Div(g, RootOfSquare(d, x, 1))));
    case UnaryOp::kAcosh:
      return Wide(dtype, OFL_OF(x, hn::Div(g, RootOfSquare(d, x, -1))));
    case UnaryOp::kAtanh:
      return Wide(dtype, OFL_OF(x, hn::Div(g, hn::Mul(OneLess(d, x), OneMore(d, x)))));
    case UnaryOp::kErf:
      return Wide(dtype, OFL_OF(x, hn::Mul(g, ErfSlope(d, x))));
    case UnaryOp::kErfc:
      return Wide(dtype, OFL_OF(x, hn::Neg(hn::Mul(g, ErfSlope(d, x)))));
    case UnaryOp::kErfinv:
      return Wide(dtype, OFL_OF(y, hn::Mul(hn::Mul(g, Number(d, 0.88622692545275801365)),
                                           ExpOf(d, hn::Mul(y, y)))));
    case UnaryOp::kSinc:
      return Wide(dtype, OFL_EACH(x, SincSlope(x)));
    case UnaryOp::kLgamma:
      return Wide(dtype, OFL_EACH(x, Digamma(static_cast<double>(x))));
    case UnaryOp::kDigamma:
      return Wide(dtype, OFL_EACH(x, Trigamma(static_cast<double>(x))));
    case UnaryOp::kI0:
      return Wide(dtype, OFL_EACH(x, BesselI1(x)));
    default:
      return FindRarer(op, dtype);
  }
}

// Null where there is no code.
UnaryBackwardLoop FindUnaryBackward(UnaryOp op, DType dtype) {
  switch (op) {
    case UnaryOp::kAbs:
      return Wide(dtype, OFL_OF(x, hn::Mul(g, SignOf(d, x))));
    case UnaryOp::kSqrt:
      return Wide(dtype, OFL_OF(y, hn::Div(g, hn::Add(y, y))));
    case UnaryOp::kRsqrt:
      return Wide(dtype,
                  OFL_OF(y, hn::Mul(hn::Mul(g, Number(d, -0.5)), hn::Mul(y, hn::Mul(y, y)))));
    case UnaryOp::kTanh:
      return Wide(dtype, OFL_OF(y, hn::Mul(g, OneLess(d, hn::Mul(y, y)))));
    case UnaryOp::kSigmoid:
      return Wide(dtype, OFL_OF(y, hn::Mul(g, hn::Mul(y, OneLess(d, y)))));
    case UnaryOp::kSquare:
      return Wide(dtype, OFL_OF(x, hn::Mul(g, hn::Add(x, x))));
    case UnaryOp::kReciprocal:
      return Wide(dtype, OFL_OF(y, hn::Neg(hn::Mul(g, hn::Mul(y, y)))));
    case UnaryOp::kNanToNum:
      return Wide(dtype, OFL_OF(x, IfFinite(d, x, g)));
    case UnaryOp::kExp2:
      return Wide(dtype, OFL_OF(y, hn::Mul(g, hn::Mul(y, Number(d, 0.69314718055994530942)))));
    case UnaryOp::kExpm1:
      return Wide(dtype, OFL_OF(y, hn::Mul(g, OneMore(d, y))));
    case UnaryOp::kLog1p:
      return Wide(dtype, OFL_OF(x, hn::Div(g, OneMore(d, x))));
    case UnaryOp::kLog2:
      return Wide(dtype, OFL_OF(x, hn::Div(g, hn::Mul(x, Number(d, 0.69314718055994530942)))));
    case UnaryOp::kLog10:
      return Wide(dtype, OFL_OF(x, hn::Div(g, hn::Mul(x, Number(d, 2.30258509299404568402)))));
    case UnaryOp::kLogit:
      return Wide(dtype, OFL_OF(x, hn::Mul(g, LogitSlope(d, x, params))));
    default:
      return FindCurved(op, dtype);
  }
}

#undef OFL_OF
#undef OFL_EACH
#undef OFL_GIVEN

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindUnaryBackward);

class CpuUnaryBackward final : public UnaryBackward {
 public:
  CpuUnaryBackward(UnaryBackwardLoop loop, DType dtype)
      : loop_(loop),
        pass_({.in = {dtype, dtype},
               .common = dtype,
               .loop = ComputeType(dtype),
               .result = ComputeType(dtype),
               .out = dtype}) {}

  Status Launch(Stream&, const Elementwise<3>& g, const void* dy, const void* s, void* dx,
                const UnaryParams& params) const override {
    pass_.Run(g, {{{dy}, {s}}}, dx,
              [&](int64_t n, const auto& in, void* out) { loop_(n, in[0], in[1], out, params); });
    return OkStatus();
  }

 private:
  UnaryBackwardLoop loop_;
  ChunkedPass<2> pass_;
};

StatusOr<std::unique_ptr<UnaryBackward>> NewUnaryBackward(const UnaryBackward::Spec& spec) {
  const auto loop = HWY_DYNAMIC_DISPATCH(FindUnaryBackward)(spec.op, spec.dtype);
  if (!loop) return NoPrimitiveFor(UnaryBackward::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuUnaryBackward>(loop, spec.dtype);
}

const bool registered = RegisterPrimitive<UnaryBackward>(DeviceType::kCPU, &NewUnaryBackward);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
