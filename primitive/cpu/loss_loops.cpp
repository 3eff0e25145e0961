// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/loss_loops.h"

#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/loss_loops.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// exp(-|x|), from which both functions of x and of -x are made.
template <class D>
struct Exponential {
  hn::Vec<D> x, e, bend;  // bend: log(1 + e)
  HWY_INLINE Exponential(D d, hn::Vec<D> v)
      : x(v), e(ExpBelow(d, hn::Neg(hn::Abs(v)))), bend(Log1POf(d, e)) {}
  HWY_INLINE hn::Vec<D> Softplus(D d) const {  // log(1 + e^x)
    return hn::Add(hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), x), bend);
  }
  HWY_INLINE hn::Vec<D> SoftplusOfMinus(D d) const {
    return hn::Sub(bend, hn::IfThenElseZero(hn::Lt(x, hn::Zero(d)), x));
  }
  HWY_INLINE hn::Vec<D> Sigmoid(D d) const {
    const auto one = Constant(d, 1);
    return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
  }
  HWY_INLINE hn::Vec<D> SigmoidOfMinus(D d) const {
    const auto one = Constant(d, 1);
    return hn::Div(hn::IfThenElse(hn::Gt(x, hn::Zero(d)), e, one), hn::Add(one, e));
  }
};

struct BceWithLogits {
  template <class D, class V>
  static HWY_INLINE V Value(D d, V x, V t, V p) {
    const Exponential<D> s(d, x);
    const auto rest = hn::Sub(Constant(d, 1), t);
    return hn::MulAdd(hn::Mul(p, t), s.SoftplusOfMinus(d), hn::Mul(rest, s.Softplus(d)));
  }
  template <class D, class V>
  static HWY_INLINE V Slope(D d, V x, V t, V p) {
    const Exponential<D> s(d, x);
    const auto rest = hn::Sub(Constant(d, 1), t);
    return hn::NegMulAdd(hn::Mul(p, t), s.SigmoidOfMinus(d), hn::Mul(rest, s.Sigmoid(d)));
  }
};
// log(1 - x), the rounding of 1 - x made good.
template <class D>
HWY_INLINE hn::Vec<D> LogOfRest(D d, hn::Vec<D> x) {
  const auto one = Constant(d, 1), rest = hn::Sub(one, x);
  const auto exact = hn::Mul(LogOf(d, rest), hn::Div(x, hn::Sub(one, rest)));
  return hn::IfThenElse(hn::Eq(rest, one), hn::Neg(x), exact);
}
struct Bce {
  template <class D, class V>
  static HWY_INLINE V Value(D d, V x, V t, V) {
    const auto least = Constant(d, -100);
    auto log_x = LogOf(d, x), log_rest = LogOfRest(d, x);
    log_x = hn::IfThenElse(hn::Lt(log_x, least), least, log_x);
    log_rest = hn::IfThenElse(hn::Lt(log_rest, least), least, log_rest);
    const auto rest = hn::Sub(Constant(d, 1), t);
    return hn::Neg(hn::MulAdd(t, log_x, hn::Mul(rest, log_rest)));
  }
};
struct SoftMargin {
  template <class D, class V>
  static HWY_INLINE V Value(D d, V x, V t, V) {
    return Exponential<D>(d, hn::Mul(t, x)).SoftplusOfMinus(d);
  }
  template <class D, class V>
  static HWY_INLINE V Slope(D d, V x, V t, V) {
    return hn::Neg(hn::Mul(t, Exponential<D>(d, hn::Mul(t, x)).SigmoidOfMinus(d)));
  }
};

struct PreluWeight {
  template <class D, class V>
  static HWY_INLINE V Value(D d, V x, V t, V) {
    return hn::IfThenZeroElse(hn::Gt(x, hn::Zero(d)), hn::Mul(t, x));
  }
  template <class D, class V>
  static HWY_INLINE V Slope(D d, V x, V t, V) {
    return hn::IfThenZeroElse(hn::Gt(x, hn::Zero(d)), t);
  }
};

template <class F, bool kSlope, class C>
void Loop(const LossChunk<C>& c, LossOrder, C* out) {
  const hn::ScalableTag<C> d;
  const auto one = Constant(d, 1);
  const auto same = hn::Set(d, c.p[0]);
  ForEachVector(d, static_cast<size_t>(c.n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto x = LoadUpTo(d, c.x + i, count, one), t = LoadUpTo(d, c.t + i, count, one);
    const auto p = c.p_step == 0 ? same : LoadUpTo(d, c.p + i, count, one);
    if constexpr (kSlope) {
      StoreUpTo(F::Slope(d, x, t, p), d, out + i, count);
    } else {
      StoreUpTo(F::Value(d, x, t, p), d, out + i, count);
    }
  });
}

// Both sides of beta and the choice, for which the compiler keeps to narrow vectors.
template <bool kScaled, bool kSlope, class C>
void HuberLoop(const LossChunk<C>& c, LossOrder, C* out) {
  const hn::ScalableTag<C> d;
  const auto zero = hn::Zero(d), one = Constant(d, 1);
  const auto beta = hn::Set(d, c.a);
  const auto bend = hn::Set(d, C(0.5) / c.a), lead = hn::Set(d, C(0.5) * c.a);
  ForEachVector(d, static_cast<size_t>(c.n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto x = LoadUpTo(d, c.x + i, count, zero), t = LoadUpTo(d, c.t + i, count, zero);
    const auto gap = hn::Sub(x, t), size = hn::Abs(gap), near = hn::Lt(size, beta);
    hn::Vec<decltype(d)> y;
    if constexpr (kSlope) {  // beyond, the sign; 0 and NaN stay
      const auto sign = hn::IfThenElse(hn::Gt(size, zero), hn::CopySign(one, gap), gap);
      y = hn::IfThenElse(near, hn::Div(gap, beta), sign);
    } else {
      y = hn::IfThenElse(near, hn::Mul(hn::Mul(gap, gap), bend), hn::Sub(size, lead));
    }
    StoreUpTo(kScaled ? hn::Mul(beta, y) : y, d, out + i, count);
  });
}

// Of the rate x + a, or e^x if kLog; with b the value has Stirling's log t! besides.
template <bool kLog, bool kSlope, class C>
void PoissonLoop(const LossChunk<C>& c, LossOrder order, C* out) {
  const hn::ScalableTag<C> d;
  const auto one = Constant(d, 1), a = hn::Set(d, c.a);
  ForEachVector(d, static_cast<size_t>(c.n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto x = LoadUpTo(d, c.x + i, count, one), t = LoadUpTo(d, c.t + i, count, one);
    if constexpr (kLog) {
      const auto rate = ExpOf(d, x);
      StoreUpTo(hn::Sub(rate, kSlope ? t : hn::Mul(t, x)), d, out + i, count);
    } else if constexpr (kSlope) {
      StoreUpTo(hn::Sub(one, hn::Div(t, hn::Add(x, a))), d, out + i, count);
    } else {
      StoreUpTo(hn::NegMulAdd(t, LogOf(d, hn::Add(x, a)), x), d, out + i, count);
    }
  });
  if (kSlope || c.b == 0) return;
  for (int64_t i = 0; i < c.n; ++i) out[i] += loss::Stirling(order, c.t[i]);
}

template <class C>
LossLoop<C> Find(LossKind kind, LossOrder order) {
  const bool slope = order == LossOrder::kX;
  if (!slope && order != LossOrder::kValue) return nullptr;
  if (kind == LossKind::kBceWithLogits) {
    return slope ? &Loop<BceWithLogits, true, C> : &Loop<BceWithLogits, false, C>;
  }
  if (kind == LossKind::kSmoothL1) {
    return slope ? &HuberLoop<false, true, C> : &HuberLoop<false, false, C>;
  }
  if (kind == LossKind::kHuber) {
    return slope ? &HuberLoop<true, true, C> : &HuberLoop<true, false, C>;
  }
  if (kind == LossKind::kBce) return slope ? nullptr : &Loop<Bce, false, C>;
  if (kind == LossKind::kPoissonNll) {
    return slope ? &PoissonLoop<false, true, C> : &PoissonLoop<false, false, C>;
  }
  if (kind == LossKind::kPoissonNllLog) {
    return slope ? &PoissonLoop<true, true, C> : &PoissonLoop<true, false, C>;
  }
  if (kind == LossKind::kSoftMargin) {
    return slope ? &Loop<SoftMargin, true, C> : &Loop<SoftMargin, false, C>;
  }
  if (kind == LossKind::kPreluWeight) {
    return slope ? &Loop<PreluWeight, true, C> : &Loop<PreluWeight, false, C>;
  }
  return nullptr;
}

}  // namespace

LossLoop<float> FloatLoss(LossKind kind, LossOrder order) { return Find<float>(kind, order); }
LossLoop<double> DoubleLoss(LossKind kind, LossOrder order) { return Find<double>(kind, order); }

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FloatLoss);
HWY_EXPORT(DoubleLoss);

}  // namespace

template <>
LossLoop<float> FindVectorLoss<float>(LossKind kind, LossOrder order) {
  return HWY_DYNAMIC_DISPATCH(FloatLoss)(kind, order);
}
template <>
LossLoop<double> FindVectorLoss<double>(LossKind kind, LossOrder order) {
  return HWY_DYNAMIC_DISPATCH(DoubleLoss)(kind, order);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
