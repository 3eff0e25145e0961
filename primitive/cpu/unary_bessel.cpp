// SPDX-License-Identifier: Apache-2.0
//
// Modified Bessel functions of the first kind on vectors of double, for float rounded once.
#include "primitive/cpu/unary_bessel.h"

#include <algorithm>
#include <limits>

#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/special_math.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/unary_bessel.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

constexpr int kAtOnce = 4;  // vectors, as each step of a sum waits for the one before
using Tag64 = hn::ScalableTag<double>;
using Vec64 = hn::Vec<Tag64>;
struct Several {
  Vec64 of[kAtOnce];
};

// ChebyshevSum of vectors, its steps with one rounding instead of two.
template <size_t n>
HWY_INLINE Several SeriesOf(Tag64 d, const double (&coefficients)[n], const Several& t,
                            size_t skip) {
  Several b0, b1, twice;
  for (int v = 0; v < kAtOnce; ++v) {
    b0.of[v] = b1.of[v] = hn::Zero(d);
    twice.of[v] = hn::Add(t.of[v], t.of[v]);
  }
  for (size_t k = skip; k + 1 < n; ++k) {
    const auto c = hn::Set(d, coefficients[k]);
#pragma GCC unroll 4
    for (int v = 0; v < kAtOnce; ++v) {
      const auto b2 = b1.of[v];
      b1.of[v] = b0.of[v];
      b0.of[v] = hn::MulAdd(twice.of[v], b1.of[v], hn::Sub(c, b2));
    }
  }
  const auto last = hn::Set(d, coefficients[n - 1]);
  for (int v = 0; v < kAtOnce; ++v) {
    b0.of[v] = hn::MulAdd(t.of[v], b0.of[v], hn::Sub(last, b1.of[v]));
  }
  return b0;
}

// exp(-|x|) I_kOrder(|x|) by `near` for |x| <= 8 and by `far` beyond, each taken where a vector has
// such; C is what the result is rounded to.
template <int kOrder, class C>
HWY_INLINE Several ScaledOf(Tag64 d, const Several& size) {
  constexpr bool kShort = sizeof(C) == 4;
  const auto& near = []() -> const auto& {
    if constexpr (kOrder == 0) return kI0Near;
    if constexpr (kOrder == 1) return kI1Near;
  }
  ();
  const auto& far = []() -> const auto& {
    if constexpr (kOrder == 0) return kI0Far;
    if constexpr (kOrder == 1) return kI1Far;
  }
  ();
  const auto eight = hn::Set(d, 8.0), one = hn::Set(d, 1.0);
  Several t, u;
  auto most = hn::Zero(d);
  for (int v = 0; v < kAtOnce; ++v) {
    const auto x = hn::Min(size.of[v], eight);
    t.of[v] = hn::MulSub(x, hn::Set(d, 0.25), one);
    most = hn::IfThenElse(hn::Le(size.of[v], eight), most, size.of[v]);
  }
  Several y = SeriesOf(d, near, t, kShort * 11);
  if (kOrder == 1) {
    for (int v = 0; v < kAtOnce; ++v) y.of[v] = hn::Mul(y.of[v], size.of[v]);
  }
  if (hn::AllTrue(d, hn::Eq(most, hn::Zero(d)))) return y;
  for (int v = 0; v < kAtOnce; ++v) {
    const auto x = hn::Max(size.of[v], eight);
    u.of[v] = hn::Sub(hn::Div(hn::Set(d, 16.0), x), one);
  }
  u = SeriesOf(d, far, u, kShort * 17);
  for (int v = 0; v < kAtOnce; ++v) {
    const auto x = size.of[v];
    const auto beyond = hn::Div(u.of[v], hn::Sqrt(x));
    y.of[v] = hn::IfThenElse(hn::Le(x, eight), y.of[v], beyond);
    y.of[v] = hn::IfThenElse(hn::IsNaN(x), x, y.of[v]);
  }
  return y;
}

// y times exp(x) as TimesExp has it; at infinity y is 0 and the product infinite.
HWY_INLINE Vec64 Unscaled(Tag64 d, Vec64 y, Vec64 x) {
  const auto inf = hn::Set(d, std::numeric_limits<double>::infinity());
  const auto half = ExpOf(d, hn::Mul(x, hn::Set(d, 0.5)));
  return hn::IfThenElse(hn::Eq(x, inf), inf, hn::Mul(hn::Mul(y, half), half));
}

template <int kOrder, bool kScaled, class C>
HWY_INLINE void Block(const C* x, C* y) {
  const Tag64 d;
  const hn::Rebind<C, Tag64> narrow;
  const size_t lanes = hn::Lanes(d);
  Several given, size;
  for (int v = 0; v < kAtOnce; ++v) {
    const auto loaded = hn::LoadU(narrow, x + static_cast<size_t>(v) * lanes);
    if constexpr (sizeof(C) == 8) {
      given.of[v] = loaded;
    } else {
      given.of[v] = hn::PromoteTo(d, loaded);
    }
    size.of[v] = hn::Abs(given.of[v]);
  }
  const Several found = ScaledOf<kOrder, C>(d, size);
  for (int v = 0; v < kAtOnce; ++v) {
    auto r = found.of[v];
    if (!kScaled) r = Unscaled(d, r, size.of[v]);
    if (kOrder == 1) r = hn::CopySign(r, given.of[v]);
    C* to = y + static_cast<size_t>(v) * lanes;
    if constexpr (sizeof(C) == 8) {
      hn::StoreU(r, d, to);
    } else {
      hn::StoreU(hn::DemoteTo(narrow, r), narrow, to);
    }
  }
}

template <int kOrder, bool kScaled, class C>
void Loop(int64_t n, const void* x_data, void* y_data, const UnaryParams&) {
  constexpr int64_t kMost = kAtOnce * static_cast<int64_t>(hn::MaxLanes(Tag64()));
  const auto block = kAtOnce * static_cast<int64_t>(hn::Lanes(Tag64()));
  const C* x = static_cast<const C*>(x_data);
  C* y = static_cast<C*>(y_data);
  int64_t i = 0;
  for (; i + block <= n; i += block) Block<kOrder, kScaled>(x + i, y + i);
  if (i == n) return;
  C rest[kMost] = {}, results[kMost];
  std::copy_n(x + i, n - i, rest);
  Block<kOrder, kScaled>(rest, results);
  std::copy_n(results, n - i, y + i);
}

template <int kOrder, bool kScaled>
UnaryCode Code(DType dtype) {
  return WideCode(dtype, &Loop<kOrder, kScaled, float>, &Loop<kOrder, kScaled, double>);
}

}  // namespace

UnaryCode FindBesselHere(UnaryOp op, DType dtype) {
  switch (op) {
    case UnaryOp::kI0:
      return Code<0, false>(dtype);
    case UnaryOp::kI0e:
      return Code<0, true>(dtype);
    case UnaryOp::kI1:
      return Code<1, false>(dtype);
    case UnaryOp::kI1e:
      return Code<1, true>(dtype);
    default:
      return {};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(FindBesselHere);

UnaryCode FindBessel(UnaryOp op, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindBesselHere)(op, dtype);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
