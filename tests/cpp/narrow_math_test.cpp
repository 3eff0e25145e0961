// SPDX-License-Identifier: Apache-2.0
//
// The functions whose results CUDA kernels store in 16 bits, on the host: at all numbers of both
// formats against float64, where each of the hardware's approximations is rounded up or down at
// random. Needs no GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

// clang-format off: the order matters
#include "approximate.h"
#include "primitive/cuda/functions/narrow_bessel_math.cuh"
#include "primitive/cuda/functions/narrow_gamma_math.cuh"
#include "primitive/gamma_math.h"
// clang-format on

namespace oneflow_lite::cuda::narrow {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Format {
  int fraction, lowest;  // bits; the exponent of the smallest normal number
  double most;

  double Ulp(double x) const {
    const int exponent = x == 0 ? lowest : std::max(lowest, std::ilogb(x));
    return std::ldexp(1.0, exponent - fraction);
  }
  double Rounded(double x) const {
    if (!std::isfinite(x)) return x;
    const double ulp = Ulp(x), y = std::copysign(std::rint(x / ulp) * ulp, x);
    return std::abs(y) > most ? std::copysign(kInfinity, y) : y;
  }
  float Number(uint16_t bits) const {
    const int field = (bits & 0x7fff) >> fraction, part = bits & ((1 << fraction) - 1);
    const double sign = bits >> 15 ? -1 : 1;
    const int top = 0x7fff >> fraction;
    if (field == top) return part ? NAN : static_cast<float>(sign * kInfinity);
    const int whole = field == 0 ? part : part + (1 << fraction);
    return static_cast<float>(sign * std::ldexp(whole, std::max(field, 1) - 1 + lowest - fraction));
  }
};
constexpr Format kHalf{10, -14, 65504}, kBFloat{7, -126, 0x1.fep127};

// The error in ulp of the format; infinite where an infinity, NaN or a zero's sign is wrong.
double Error(const Format& format, float y, double want) {
  const double got = format.Rounded(y), nearest = format.Rounded(want);
  if (std::isnan(nearest)) return std::isnan(got) ? 0 : kInfinity;
  if (std::isinf(nearest) || want == 0 || std::isinf(got)) {
    const bool same = got == nearest && std::signbit(got) == std::signbit(nearest);
    // Half an ulp beyond the largest number.
    const bool edge = std::abs(std::abs(want) / format.most - 1) < 0x1p-6;
    return same || edge ? 0 : kInfinity;
  }
  return std::isnan(got) ? kInfinity : std::abs(got - want) / format.Ulp(want);
}
template <class F, class G>
void ExpectClose(const char* name, F f, G reference, double limit = 0.7) {
  for (const Format& format : {kHalf, kBFloat}) {
    double worst = -1;
    float at = 0;
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const float x = format.Number(static_cast<uint16_t>(bits));
      const double error = Error(format, f(x), reference(static_cast<double>(x)));
      if (error > worst) worst = error, at = x;
    }
    if (getenv("VERBOSE")) printf("%-14s %.3f at %g\n", name, worst, at);
    EXPECT_LE(worst, limit) << name << " of " << at << ": " << f(at) << ", not "
                            << reference(static_cast<double>(at));
  }
}
// Of two operands; `near` is an error that results next to 0 may have.
template <class F, class G>
void ExpectClosePairs(const char* name, F f, G reference, double near = 0, double limit = 0.7) {
  for (const Format& format : {kHalf, kBFloat}) {
    double worst = -1;
    float at[2] = {};
    std::vector<float> numbers;
    for (uint32_t bits = 0; bits < 65536; bits += 53) {
      numbers.push_back(format.Number(static_cast<uint16_t>(bits)));
    }
    for (const float x : {0.0f, 1.0f, 0.5f, 3.0f, INFINITY}) {
      numbers.push_back(x);
      numbers.push_back(-x);
    }
    numbers.push_back(NAN);
    for (const float a : numbers) {
      for (const float b : numbers) {
        const float y = f(a, b);
        const double want = reference(double{a}, double{b});
        if (std::abs(y - want) <= near) continue;
        const double error = Error(format, y, want);
        if (error > worst) worst = error, at[0] = a, at[1] = b;
      }
    }
    if (getenv("VERBOSE")) printf("%-14s %.3f at %g %g\n", name, worst, at[0], at[1]);
    EXPECT_LE(worst, limit) << name << " of " << at[0] << ", " << at[1] << ": " << f(at[0], at[1])
                            << ", not " << reference(at[0], at[1]);
  }
}
double LogAddExpOf(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  return std::max(a, b) + (a == b ? std::log(2.0) : std::log1p(std::exp(-std::abs(a - b))));
}
double XLogYOf(double a, double log, double b) { return a == 0 && b == b ? 0 : a * log; }

TEST(NarrowMath, Logarithms) {
  ExpectClose("log", Log, [](double x) { return std::log(x); });
  ExpectClose("log2", LogOf2, [](double x) { return std::log2(x); });
  ExpectClose("log10", Log10, [](double x) { return std::log10(x); });
  ExpectClose("log1p", Log1p, [](double x) { return std::log1p(x); });
  ExpectClose(
      "logit", Logit,
      [](double x) {
        return std::abs(x - 0.5) < 0.25 ? 2 * std::atanh(2 * x - 1) : std::log(x) - std::log1p(-x);
      },
      0.9);
  ExpectClose("entr", Entr, [](double x) {
    return x > 0 ? -x * std::log(x) : x == 0 ? 0 : x < 0 ? -kInfinity : x;
  });
  ExpectClose("logsigmoid", LogSigmoid,
              [](double x) { return (x < 0 ? x : 0) - std::log1p(std::exp(-std::abs(x))); });
}
TEST(NarrowMath, LogarithmsOfPairs) {
  ExpectClosePairs("logaddexp", LogAddExp, LogAddExpOf, 3e-7);
  ExpectClosePairs(
      "logaddexp2", LogAddExp2,
      [](double a, double b) {
        return LogAddExpOf(a * std::log(2.0), b * std::log(2.0)) / std::log(2.0);
      },
      5e-7);
  ExpectClosePairs("xlogy", XLogY, [](double a, double b) { return XLogYOf(a, std::log(b), b); });
  ExpectClosePairs("xlog1py", XLog1pY,
                   [](double a, double b) { return XLogYOf(a, std::log1p(b), b); });
}

double LimitedExp(double x) { return x == -kInfinity ? 0 : std::exp(x); }
double NormalBelow(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

TEST(NarrowMath, Powers) {
  ExpectClose("sqrt", RootDown, [](double x) { return std::sqrt(x); });
  ExpectClose("reciprocal", ReciprocalDown, [](double x) { return 1 / x; });
}
TEST(NarrowMath, Exponentials) {
  ExpectClose("sigmoid", Sigmoid, [](double x) { return 1 / (1 + LimitedExp(-x)); });
  ExpectClose("silu", Silu,
              [](double x) { return x == -kInfinity ? -0.0 : x / (1 + LimitedExp(-x)); });
  ExpectClose("gelu tanh", GeluTanh, [](double x) {
    const double v = x * (1.5957691216057308 + 0.07135481627260025 * x * x);
    return x < -40 ? -0.0 : x / (1 + LimitedExp(-v));
  });
  ExpectClose("mish", Mish, [](double x) {
    if (x < -700) return -0.0;
    const double e = std::exp(-std::abs(x)), n = x < 0 ? e * (e + 2) : 1 + 2 * e;
    return x * (n / (n + (x < 0 ? 2 : 2 * e * e)));
  });
  ExpectClosePairs("pow", Pow, [](double a, double b) { return std::pow(a, b); });
  ExpectClose("expm1", Expm1, [](double x) { return std::expm1(x); });
  ExpectClose("sinh", Sinh, [](double x) { return std::sinh(x); });
  ExpectClose("cosh", Cosh, [](double x) { return std::cosh(x); });
  ExpectClose("tanh", Tanh, [](double x) { return std::tanh(x); });
}
TEST(NarrowMath, Slopes) {
  const auto sigmoid = [](double x) { return 1 / (1 + LimitedExp(-x)); };
  ExpectClose("silu slope", SiluSlope, [&](double x) {
    const double near = std::max(-1000.0, std::min(x, 1000.0)), s = sigmoid(near);
    return std::isnan(x) ? x : s == 0 ? -0.0 : s * (1 + near * sigmoid(-near));
  });
  ExpectClose("gelu tanh slope", GeluTanhSlope, [&](double given) {
    const double x = std::max(-50.0, std::min(given, 50.0));
    const double s = sigmoid(x * (1.5957691216057308 + 0.07135481627260025 * x * x));
    const double bend = x * (1.5957691216057308 + 3 * 0.07135481627260025 * x * x);
    return std::isnan(given) ? given : s == 0 ? -0.0 : s * (1 + bend * (1 - s));
  });
  ExpectClosePairs(
      "logit slope",
      [](float g, float x) {
        const double inside = double{x} * (1 - double{x});
        return x >= 0 && x <= 1 ? TimesLogitSlope(g, x) : static_cast<float>(g / inside);
      },
      [](double g, double x) { return g / (x * (1 - x)); });
}
TEST(NarrowMath, Normal) {
  ExpectClose("gelu", Gelu, [](double x) { return x == -kInfinity ? -0.0 : x * NormalBelow(x); });
  ExpectClose("gelu slope", GeluSlope, [](double x) {
    if (x < -38) return -0.0;
    const double bell = std::isinf(x) ? 0 : x * std::exp(-0.5 * x * x) * 0.3989422804014327;
    return NormalBelow(x) + bell;
  });
  ExpectClose("ndtr", Ndtr, NormalBelow);
  ExpectClose("ndtr slope", NdtrSlope,
              [](double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI); });
  ExpectClose("ndtri slope", NdtriSlope,
              [](double y) { return std::exp(0.5 * y * y) * std::sqrt(2 * M_PI); });
  ExpectClose("erf", Erf, [](double x) { return std::erf(x); });
  ExpectClose("erfc", Erfc, [](double x) { return std::erfc(x); });
}
TEST(NarrowMath, Angles) {
  ExpectClose("sin", Sin, [](double x) { return std::sin(x); });
  ExpectClose("cos", Cos, [](double x) { return std::cos(x); });
  ExpectClose("tan", Tan, [](double x) { return std::tan(x); });
  ExpectClose("sinc", Sinc, [](double x) {
    const double r = x - 2 * std::rint(x / 2);  // exact
    if (std::isnan(r)) return r;
    return x == 0 ? 1 : r == std::rint(r) ? 0 : std::sin(M_PI * r) / (M_PI * x);
  });
  ExpectClose("asin", Asin, [](double x) { return std::asin(x); });
  ExpectClose("acos", Acos, [](double x) { return std::acos(x); });
  ExpectClose("atan", Atan, [](double x) { return std::atan(x); });
  ExpectClosePairs("hypot", Hypot, [](double a, double b) { return std::hypot(a, b); });
  ExpectClosePairs("atan2", Atan2, [](double y, double x) { return std::atan2(y, x); });
}
TEST(NarrowMath, Areas) {
  ExpectClose("asinh", Asinh, [](double x) { return std::asinh(x); });
  ExpectClose("acosh", Acosh, [](double x) { return std::acosh(x); });
  ExpectClose("atanh", Atanh, [](double x) { return std::atanh(x); });
}
double ErfinvOf(double y) {
  if (!(std::abs(y) < 1)) return std::abs(y) == 1 ? y * kInfinity : NAN;
  double x = 0.8862269 * y;
  for (int i = 0; i < 60; ++i) {
    const double off = (std::erf(x) - y) / (1.1283791670955126 * std::exp(-x * x));
    x -= off / (1 + x * off);
  }
  return y == 0 ? y : x;
}
// e^-|x| times the integral of weight(t) e^(|x| cos t) over 0 .. pi, over pi, by the trapezoidal
// rule: a Bessel function of order n where the weight is cos(n t).
template <class F>
double ScaledBessel(double x, F weight) {
  const double a = std::abs(x);
  const double width = std::min(M_PI, 9 / std::sqrt(std::max(a, 1.0)));
  constexpr int kSteps = 40;
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double t = width * i / kSteps, half = std::sin(t / 2);
    const double part = std::exp(-2 * a * half * half) * weight(t);
    sum += i == 0 || i == kSteps ? part / 2 : part;
  }
  return sum * width / kSteps / M_PI;
}
double OneLessCos(double t) { return 2 * std::sin(t / 2) * std::sin(t / 2); }
double ScaledI(double x, int order) {
  if (std::isinf(x)) return order == 0 ? 0.0 : std::copysign(0.0, x);
  if (order == 1 && std::abs(x) < 1e-6) return x / 2;
  const double y = ScaledBessel(x, [=](double t) { return order == 0 ? 1 : std::cos(t); });
  return order == 0 ? y : std::copysign(y, x);
}
// y e^|x|, as far as float64 goes.
double TimesExpOf(double y, double x) {
  const double far = std::abs(x) > 700 ? kInfinity : std::exp(std::abs(x));
  return y == 0 && std::isinf(far) ? std::copysign(far, y) : y * far;
}
TEST(NarrowMath, Bessel) {
  ExpectClose("i0e", I0e, [](double x) { return ScaledI(x, 0); });
  ExpectClose("i1e", I1e, [](double x) { return ScaledI(x, 1); });
  ExpectClose("i0", I0, [](double x) { return TimesExpOf(ScaledI(x, 0), x); });
  ExpectClose("i1", I1, [](double x) { return TimesExpOf(ScaledI(x, 1), x); });
}
TEST(NarrowMath, BesselSlopes) {
  ExpectClose("i0e slope", I0eSlope, [](double x) {
    if (x == 0) return 0.0;
    if (std::isinf(x)) return std::copysign(0.0, -x);
    return std::copysign(ScaledBessel(x, OneLessCos), -x);
  });
  const auto i1e = [](double x) {
    if (std::isinf(x)) return -0.0;
    return ScaledBessel(x, [](double t) { return -std::cos(t) * OneLessCos(t); });
  };
  ExpectClose("i1e slope", I1eSlope, i1e);
  ExpectClose("i1 slope", I1Slope, [](double x) {
    if (std::isinf(x)) return kInfinity;
    return TimesExpOf(ScaledBessel(x, [](double t) { return std::cos(t) * std::cos(t); }), x);
  });
}
// The reference where the terms cancel, and f is within 2^-20 of them.
template <class F, class G>
auto BesideTerms(F f, G reference) {
  return [=](float x) {
    const double want = reference(double{x}), terms = 1 + std::abs(reference(std::abs(double{x})));
    const float y = f(x);
    return std::abs(y - want) <= 0x1p-20 * terms ? static_cast<float>(want) : y;
  };
}
TEST(NarrowMath, Gamma) {
  const auto lgamma = [](double x) { return std::lgamma(x); };
  ExpectClose("lgamma", BesideTerms(Lgamma, lgamma), lgamma);
  const auto digamma = [](double x) { return oneflow_lite::Digamma(x); };
  ExpectClose("digamma", BesideTerms(Digamma, digamma), digamma);
  ExpectClose("trigamma", Trigamma, [](double x) { return oneflow_lite::Trigamma(x); });
}
TEST(NarrowMath, EntrSlope) {
  const auto slope = [](double x) { return -1 - std::log(x); };
  const auto beside = [=](float x) {  // the reference where the terms cancel and y is within 2^-20
    const double want = slope(x), y = EntrSlope(x);
    return std::abs(y - want) <= 0x1p-20 ? static_cast<float>(want) : y;
  };
  ExpectClose("entr slope", beside, slope);
}
TEST(NarrowMath, Erfinv) { ExpectClose("erfinv", Erfinv, ErfinvOf); }

}  // namespace
}  // namespace oneflow_lite::cuda::narrow
