// SPDX-License-Identifier: Apache-2.0
//
// Which losses of one element there are, by which operands they are derived, and what their
// formulas (primitive/loss_math.h) have in common. For the host and for kernels (C++17).
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define OFL_LOSS_FUNCTION __host__ __device__ inline
#else
#define OFL_LOSS_FUNCTION inline
#endif

namespace oneflow_lite {

enum class LossKind : uint8_t {
  kMse,             // (x - t)^2
  kL1,              // |x - t|
  kSmoothL1,        // (x - t)^2 / 2 a below a, |x - t| - a / 2 above
  kHuber,           // a times that
  kKlDiv,           // t (log t - x), 0 where t is 0
  kKlDivLog,        // e^t (t - x)
  kBceWithLogits,   // p t softplus(-x) + (1 - t) softplus(x)
  kBce,             // -t log x - (1 - t) log(1 - x), logarithms from -100 on
  kPoissonNll,      // x - t log(x + a), and with b Stirling's log t!
  kPoissonNllLog,   // e^x - t x, the same
  kGaussianNll,     // (log v + (x - t)^2 / v) / 2 + b with v = max(p, a)
  kSoftMargin,      // log(1 + e^(-t x))
  kHingeEmbedding,  // x where t is 1, max(0, a - x) where it is -1, their sum elsewhere
  kMarginRanking,   // max(0, a - p (x - t))
  kPreluWeight,     // t x where x is not positive: the slope of prelu by its weight, times t
};
inline constexpr int kLossKinds = 15;

// The loss, or its derivative by these operands.
enum class LossOrder : uint8_t { kValue, kX, kT, kP, kXX, kXT, kTT, kXP, kTP, kPP };

template <class C>
struct LossOperands {
  C x, t, p, a, b;
};

namespace loss {

template <class C>
OFL_LOSS_FUNCTION C Softplus(C x) {
  return (x > 0 ? x : x == x ? C(0) : x) + std::log1p(std::exp(-std::fabs(x)));
}
template <class C>
OFL_LOSS_FUNCTION C Sigmoid(C x) {
  const C e = std::exp(-std::fabs(x));
  return (x >= 0 ? C(1) : e) / (1 + e);
}
template <class C>
OFL_LOSS_FUNCTION C Sign(C x) {
  return x > 0 ? C(1) : x < 0 ? C(-1) : x;  // NaN stays
}
template <class C>
OFL_LOSS_FUNCTION C AtLeast(C x, C least) {
  return x < least ? least : x;
}

// The loss of a difference d = x - t by its value, slope and curvature.
template <class C>
OFL_LOSS_FUNCTION C OfDifference(LossOrder order, C value, C slope, C curvature) {
  switch (order) {
    case LossOrder::kValue:
      return value;
    case LossOrder::kX:
      return slope;
    case LossOrder::kT:
      return -slope;
    case LossOrder::kXX:
    case LossOrder::kTT:
      return curvature;
    case LossOrder::kXT:
      return -curvature;
    default:
      return 0;
  }
}

}  // namespace loss
}  // namespace oneflow_lite
