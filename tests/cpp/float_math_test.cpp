// SPDX-License-Identifier: Apache-2.0
//
// The functions of float that CUDA kernels use, on the host: against float64 over all sizes of
// numbers, where each of the hardware's approximations is rounded up or down at random. Needs no
// GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

// clang-format off: the order matters
#include "approximate.h"
#include "primitive/cuda/functions/float_gamma_math.cuh"
#include "primitive/cuda/functions/float_normal_math.cuh"
#include "primitive/cuda/functions/float_special_math.cuh"
#include "primitive/cuda/functions/gelu_tanh.cuh"
#include "primitive/gamma_math.h"
#include "primitive/normal_math.h"
#include "primitive/zeta_math.h"
// clang-format on

namespace oneflow_lite::cuda::fast {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Ulp(double x) {
  const double least = 0x1p-149;
  return std::max(least, std::ldexp(1.0, std::ilogb(std::max(std::abs(x), 1e-300)) - 23));
}
// Numbers of all exponents, and more of them where the functions bend; both signs and the ends.
std::vector<float> Numbers(int n) {
  std::mt19937 rng(3);
  std::uniform_real_distribution<double> exponent(-149, 128), narrow(-20, 7.5), near(0, 20);
  std::vector<float> x = {0.0f, 1.0f, 0.5f, 3.4e38f, 1e-45f, static_cast<float>(kInfinity)};
  for (int i = 0; i < n; ++i) {
    x.push_back(static_cast<float>(std::exp2(exponent(rng))));
    x.push_back(static_cast<float>(std::exp2(narrow(rng))));
    x.push_back(static_cast<float>(near(rng)));
    x.push_back(static_cast<float>(80 + 2 * near(rng)));
  }
  for (size_t i = 0, size = x.size(); i < size; ++i) x.push_back(-x[i]);
  x.push_back(std::nanf(""));
  return x;
}

// The largest error in ulp.
template <class F, class G>
double Worst(const std::vector<float>& numbers, F f, G reference) {
  double worst = 0;
  float at = 0;
  for (const float x : numbers) {
    const float y = f(x);
    double want = reference(static_cast<double>(x));
    if (std::abs(want) > std::numeric_limits<float>::max()) want = std::copysign(kInfinity, want);
    if (std::isnan(want) && std::isnan(y)) continue;
    if (std::isnan(want) || std::isnan(y) || std::isinf(want) || std::isinf(y)) {
      EXPECT_EQ(y, want) << x;
      continue;
    }
    const double error = std::abs(y - want) / Ulp(want);
    if (error > worst) worst = error, at = x;
  }
  if (getenv("VERBOSE")) printf("%.3f at %g\n", worst, at);
  return worst;
}
double LimitedExp(double x) { return x == -kInfinity ? 0 : std::exp(x); }

TEST(FloatMath, Activations) {
  const auto x = Numbers(20000);
  EXPECT_LE(Worst(x, Sigmoid, [](double v) { return 1 / (1 + LimitedExp(-v)); }), 4);
  EXPECT_LE(Worst(x, Silu, [](double v) { return v == -kInfinity ? 0 : v / (1 + LimitedExp(-v)); }),
            4);
  const auto mish = [](double v) {
    if (v < -700) return 0.0;
    const double e = std::exp(-std::abs(v));
    const double n = v < 0 ? e * (e + 2) : 1 + 2 * e;
    return v * (n / (n + (v < 0 ? 2 : 2 * e * e))) + (v != v ? v : 0);
  };
  EXPECT_LE(Worst(x, Mish, mish), 4);
  const auto tanhshrink = [](double v) {
    const double u = v * v;
    const double near = v * u * (1.0 / 3 - u * (2.0 / 15 - u * (17.0 / 315 - u * 62 / 2835)));
    return std::abs(v) < 0.01 ? near : v - std::tanh(v);
  };
  EXPECT_LE(Worst(x, Tanhshrink, tanhshrink), 4);
  EXPECT_LE(Worst(x, Expm1, [](double v) { return std::expm1(v); }), 3);
}

TEST(FloatMath, Gelu) {
  const auto x = Numbers(20000);
  const double root = std::sqrt(0.5);
  const auto gelu = [&](double v) { return v == -kInfinity ? 0 : 0.5 * v * std::erfc(-v * root); };
  EXPECT_LE(Worst(x, Gelu, gelu), 4);
  EXPECT_FALSE(std::signbit(Gelu(0.0f)));
  EXPECT_TRUE(std::signbit(Gelu(-0.0f)));
  for (const float v : x) {
    if (std::isnan(v)) continue;
    const double bell = std::isinf(v) ? 0 : v * std::exp(-0.5 * v * double{v}) * 0.3989422804014327;
    const double want = 0.5 * std::erfc(-v * root) + bell;
    ASSERT_NEAR(GeluSlope(v), want, 1e-6 * (0.5 * std::erfc(-v * root) + std::abs(bell)) + 2e-45)
        << v;
  }
}

// gelu by tanh and its slope.
long double TanhForm(long double x, bool slope) {
  const long double a = 2 * sqrtl(2 / 3.14159265358979323846264338327950288L);
  const long double b = 0.044715L * a, v = x * (a + b * x * x);
  const long double s = 1 / (1 + expl(-v)), rest = 1 / (1 + expl(v));
  if (!slope) return x == -INFINITY ? 0 : x * s;
  return fabsl(x) > 40 ? x > 0 : s + x * s * rest * (a + 3 * b * x * x);
}
TEST(FloatMath, GeluTanh) {
  const auto x = Numbers(100000);
  EXPECT_LE(Worst(x, GeluTanhOf<float>, [](double v) { return TanhForm(v, false); }), 4);
  std::mt19937 rng(5);
  std::uniform_real_distribution<double> far(-22.5, 9);
  for (int i = 0; i < 100000; ++i) {
    const double v = far(rng);
    const long double want = TanhForm(v, false), slope = TanhForm(v, true);
    const auto at = static_cast<double>(want);
    const double unit = std::nextafter(std::abs(at), kInfinity) - std::abs(at);
    ASSERT_LE(fabsl(GeluTanhOf(v) - want), 4 * unit) << v;
    // Around -0.75 the slope is the difference of two numbers near 0.3.
    const long double terms = fabsl(slope) + (v > -1.5 ? 1 : 0);
    ASSERT_NEAR(GeluTanhSlopeOf(v), slope, 1e-15 * terms + 2e-323) << v;
    const auto narrow = static_cast<float>(v);
    const long double want_slope = TanhForm(narrow, true);
    ASSERT_NEAR(GeluTanhSlopeOf(narrow), want_slope,
                1e-6 * (fabsl(want_slope) + (v > -1.5 ? 1 : 0)) + 3e-45)
        << v;
  }
  for (const double v : {40.0, 1e300, kInfinity}) {
    EXPECT_EQ(GeluTanhOf(v), v);
    EXPECT_EQ(GeluTanhOf(-v), 0);
    EXPECT_EQ(GeluTanhSlopeOf(v), 1);
    EXPECT_EQ(GeluTanhSlopeOf(-v), 0);
    EXPECT_EQ(GeluTanhSlopeOf(static_cast<float>(v)), 1);
    EXPECT_EQ(GeluTanhSlopeOf(static_cast<float>(-v)), 0);
  }
  EXPECT_TRUE(std::isnan(GeluTanhOf(std::nan(""))) && std::isnan(GeluTanhSlopeOf(std::nan(""))));
  EXPECT_TRUE(std::isnan(GeluTanhOf(NAN)) && std::isnan(GeluTanhSlopeOf(NAN)));
}

TEST(FloatMath, Logit) {
  std::mt19937 rng(5);
  std::uniform_real_distribution<float> unit(0, 1), exponent(-149, 0);
  std::vector<float> x = Numbers(1000);
  for (int i = 0; i < 60000; ++i) {
    x.push_back(unit(rng));
    x.push_back(1 - std::exp2(exponent(rng)));
    x.push_back(0.5f + (unit(rng) - 0.5f) * std::exp2(exponent(rng) / 6));
    x.push_back(std::exp2(exponent(rng)));
  }
  // On both sides of where the ends begin (LogitOfEnds).
  for (int k = 0; k <= 4; ++k) {
    x.push_back(1 - k * 0x1p-24f);
    x.push_back(0x1p-126f + static_cast<float>(k - 2) * 0x1p-149f);
  }
  const auto logit = [](double v) {
    const double centred = 2 * v - 1;
    return std::abs(centred) < 0.5 ? 2 * std::atanh(centred) : std::log(v) - std::log1p(-v);
  };
  EXPECT_LE(Worst(x, Logit, logit), 4);
}

TEST(FloatMath, LogarithmsOfSums) {
  const auto x = Numbers(40000);
  const auto log_sigmoid = [](double v) {
    return (v < 0 ? v : 0) - std::log1p(LimitedExp(-std::abs(v))) + (v != v ? v : 0);
  };
  EXPECT_LE(Worst(x, LogSigmoid, log_sigmoid), 4);
}

TEST(FloatMath, NormalDistribution) {
  const auto x = Numbers(100000);
  EXPECT_LE(Worst(x, Ndtr, [](double v) { return oneflow_lite::Ndtr(v); }), 4);
  EXPECT_LE(Worst(x, Erfc, [](double v) { return std::erfc(v); }), 4);
  EXPECT_LE(Worst(x, LogNdtr, [](double v) { return oneflow_lite::LogNdtr(v); }), 4);
}
TEST(FloatMath, NormalQuantiles) {
  std::mt19937 rng(5);
  std::uniform_real_distribution<float> unit(0, 1), exponent(-149, 0);
  std::vector<float> p = Numbers(1000);
  for (int i = 0; i < 100000; ++i) {
    p.push_back(unit(rng));
    p.push_back(1 - std::exp2(exponent(rng) / 6));
    p.push_back(0.5f + (unit(rng) - 0.5f) * std::exp2(exponent(rng) / 6));
    p.push_back(std::exp2(exponent(rng)));
  }
  EXPECT_LE(Worst(p, Ndtri, [](double v) { return oneflow_lite::Ndtri(v); }), 4);
}
// e^-|x| times the integral of cos(n t) e^(|x| cos t) over 0 .. pi, over pi, by the trapezoidal
// rule, whose error vanishes.
double ScaledBessel(double x, int order) {
  if (std::isinf(x)) return order == 0 ? 0.0 : std::copysign(0.0, x);
  const double a = std::abs(x), width = std::min(M_PI, 9 / std::sqrt(std::max(a, 1.0)));
  constexpr int kSteps = 40;
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double t = width * i / kSteps, half = std::sin(t / 2);
    const double part = std::exp(-2 * a * half * half) * (order == 0 ? 1 : std::cos(t));
    sum += i == 0 || i == kSteps ? part / 2 : part;
  }
  const double y = sum * width / kSteps / M_PI;
  if (order == 0) return y;
  return a < 1e-4 ? x / 2 * (1 - a + a * a * 0.625) : std::copysign(y, x);
}
TEST(FloatMath, Bessel) {
  const auto x = Numbers(30000);
  EXPECT_LE(Worst(x, I0e, [](double v) { return ScaledBessel(v, 0); }), 4);
  EXPECT_LE(Worst(x, I1e, [](double v) { return ScaledBessel(v, 1); }), 4);
}

TEST(FloatMath, Trigamma) {
  std::vector<float> x = Numbers(100000);
  for (int i = 0; i < 100000; ++i) x.push_back(-1e-4f * static_cast<float>(i));
  EXPECT_LE(Worst(x, Trigamma, [](double v) { return oneflow_lite::Trigamma(v); }), 8);
}

// In ulp, but for errors below `near` next to zeros.
template <class F, class G>
void ExpectClose(const std::vector<float>& numbers, F f, G reference, double limit,
                 double near = 1e-6) {
  double worst = 0;
  float at = 0;
  for (const float x : numbers) {
    const float y = f(x);
    double want = reference(static_cast<double>(x));
    if (std::abs(want) > std::numeric_limits<float>::max()) want = std::copysign(kInfinity, want);
    if (std::isnan(want) && std::isnan(y)) continue;
    if (y == want || std::abs(y - want) < near) continue;
    const double error =
        std::isfinite(want) && std::isfinite(y) ? std::abs(y - want) / Ulp(want) : kInfinity;
    if (!(error <= worst)) worst = error, at = x;
  }
  if (getenv("VERBOSE")) printf("%.3f at %g\n", worst, at);
  EXPECT_LE(worst, limit) << at << ": " << f(at) << ", not " << reference(double{at});
}
std::vector<float> Sizes(const std::vector<float>& numbers) {
  std::vector<float> sizes;
  for (const float x : numbers) {
    if (x >= 0x1p-126f && x < kInfinity) sizes.push_back(x);
  }
  return sizes;
}
TEST(FloatMath, LogGammaAndItsDerivatives) {
  std::vector<float> x = Numbers(100000);
  for (int i = 0; i < 100000; ++i) {
    x.push_back(-1e-4f * static_cast<float>(i));
    x.push_back(3e-5f * static_cast<float>(i));
  }
  for (int n = 1; n < 16; ++n) {
    for (float r = 0x1p-20f; r < 0.5f; r *= 1.01f) {
      x.push_back(r - static_cast<float>(n));
      x.push_back(-r - static_cast<float>(n));
    }
  }
  const auto sizes = Sizes(x);
  ExpectClose(
      sizes, Lgamma, [](double v) { return std::lgamma(v); }, 8);
  ExpectClose(
      x, Lgamma, [](double v) { return std::lgamma(v); }, 8);
  ExpectClose(
      sizes, DigammaOfPositive, [](double v) { return oneflow_lite::Digamma(v); }, 8);
  EXPECT_EQ(DigammaOfPositive(0.0f), -INFINITY);
  const auto tetragamma = [](double v) { return oneflow_lite::Polygamma(2, v); };
  EXPECT_LE(Worst(sizes, TetragammaOfPositive, tetragamma), 8);
}
TEST(FloatMath, Zeta) {
  std::vector<float> q = Sizes(Numbers(1500)), s;
  for (int i = 0; i < 40; ++i) s.push_back(1 + std::exp2(static_cast<float>(i) / 4 - 6));
  for (int i = 2; i < 40; ++i) s.push_back(static_cast<float>(i));
  for (const float order : s) {
    std::vector<float> usual;
    for (const float v : q) {
      if (IsUsualZeta(order, v)) usual.push_back(v);
    }
    const auto f = [&](float v) { return ZetaOfPositive(order, v); };
    EXPECT_LE(Worst(usual, f, [&](double v) { return oneflow_lite::Zeta(order, v); }), 8) << order;
  }
  EXPECT_FALSE(IsUsualZeta(1, 1));
  EXPECT_FALSE(IsUsualZeta(2, 0));
  EXPECT_FALSE(IsUsualZeta(std::nanf(""), 1));
  EXPECT_FALSE(IsUsualZeta(2, std::nanf("")));
}
TEST(FloatMath, Powers) {
  std::mt19937 rng(11);
  std::uniform_real_distribution<float> exponent(-126, 127), near(-0.02f, 0.02f), unit(0, 2);
  std::vector<float> a = Numbers(400), b = {0.5f, 2.5f, 1, 2, 3, -1, 100, 1e6f, -7, 0.0f};
  for (int i = 0; i < 1000; ++i) {
    a.push_back(1 + near(rng));
    a.push_back(unit(rng));
    b.push_back(exponent(rng));
    b.push_back(8 * near(rng));
    b.push_back(std::exp2(exponent(rng) / 5));
    b.push_back(std::round(exponent(rng)));
  }
  for (const float v : b) {
    const auto f = [v](float x) { return Pow(x, v); };
    EXPECT_LE(Worst(a, f, [v](double x) { return std::pow(x, double{v}); }), 8) << v;
  }
}

TEST(FloatMath, HypotAndAtan2) {
  const auto x = Numbers(150);
  for (const float a : x) {
    const auto with = [a](auto f) { return [a, f](auto b) { return f(a, b); }; };
    EXPECT_LE(Worst(x, with(Hypot), with([](double p, double q) { return std::hypot(p, q); })), 4);
    EXPECT_LE(Worst(x, with(Atan2), with([](double p, double q) { return std::atan2(p, q); })), 4);
    if (testing::Test::HasFailure()) return;
  }
  for (const float y : {0.0f, -0.0f}) {
    for (const float p : {0.0f, -0.0f, 1.0f, -1.0f}) {
      EXPECT_EQ(Atan2(y, p), std::atan2(y, p));
      EXPECT_EQ(std::signbit(Atan2(y, p)), std::signbit(y));
    }
  }
}

TEST(FloatMath, MantissasAndExponents) {
  for (const float x : Numbers(5000)) {
    int exponent = 0;
    const float mantissa = std::frexp(x, &exponent);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(MantissaOf(x)));
    } else {
      ASSERT_EQ(MantissaOf(x), mantissa) << x;
      EXPECT_EQ(std::signbit(MantissaOf(x)), std::signbit(x));
    }
    ASSERT_EQ(ExponentOf(x), std::isfinite(x) ? exponent : 0) << x;
  }
}

template <class C>
C RoundedTo(C x, C scale, bool before) {
  const C scaled = before ? x / scale : x * scale, whole = std::rint(scaled);
  if (!std::isfinite(scaled)) return x;
  if (whole == C(0)) return std::copysign(C(0), x);
  return before ? whole * scale : whole / scale;
}
// Bit for bit: next to ties, at all sizes, and at the ends.
template <class C>
void ExpectRoundedDecimals() {
  constexpr C kMost = std::numeric_limits<C>::max(), kLeast = std::numeric_limits<C>::denorm_min();
  std::mt19937 rng(5);
  std::uniform_real_distribution<C> mantissa(1, 2), size(-40, 40), ends(-1, 1);
  std::vector<C> numbers = {C(0), kLeast, kMost, C(INFINITY), C(NAN)};
  for (int i = 0; i < 1000; ++i)
    numbers.push_back(kMost * (1 - std::exp2(-10 - 20 * mantissa(rng))));
  for (int i = 0; i < 40000; ++i) {
    const C x = mantissa(rng) * std::exp2(size(rng));
    numbers.push_back(x);
    numbers.push_back(std::rint(x) + C(0.5));
    numbers.push_back(mantissa(rng) * std::exp2(ends(rng) * std::numeric_limits<C>::max_exponent));
  }
  for (int power = 0; power < 30; ++power) {
    const auto scale = static_cast<C>(std::pow(10.0, power));
    for (const bool before : {false, true}) {
      const DecimalRounding<C> rounded(scale, before);
      for (const C number : numbers) {
        for (const C x : {number, -number, number * scale, number / scale}) {
          const C want = RoundedTo(x, scale, before), got = rounded(x);
          const bool same = std::isnan(want) ? std::isnan(got)
                                             : got == want && std::signbit(got) == std::signbit(x);
          ASSERT_TRUE(same) << x << " to " << power << before << ": " << got << ", not " << want;
        }
      }
    }
  }
}
TEST(FloatMath, DecimalsAreRoundedAsByDivision) {
  ExpectRoundedDecimals<float>();
  ExpectRoundedDecimals<double>();
}

TEST(FloatMath, RestsAreExact) {
  std::mt19937 rng(9);
  std::uniform_real_distribution<float> exponent(-20, 20), mantissa(1, 2);
  for (int i = 0; i < 300000; ++i) {
    const float y = mantissa(rng) * std::exp2(exponent(rng));
    float x = mantissa(rng) * std::exp2(exponent(rng));
    if (i % 4 == 0) x = y * std::round(x);  // next to multiples
    if (i % 8 == 0) x = std::nextafter(x, 0.0f);
    if (!DividesShortly(x, y)) continue;
    ASSERT_EQ(RestOf(x, y), std::fmod(x, y)) << x << " " << y;
  }
  EXPECT_FALSE(DividesShortly(1, 0));
  EXPECT_FALSE(DividesShortly(static_cast<float>(kInfinity), 1));
  EXPECT_FALSE(DividesShortly(std::nanf(""), 1));
  EXPECT_FALSE(DividesShortly(1, std::nanf("")));
}

}  // namespace
}  // namespace oneflow_lite::cuda::fast
