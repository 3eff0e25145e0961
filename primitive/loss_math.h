// SPDX-License-Identifier: Apache-2.0
//
// Losses of one element, l(x, t, p), with their slopes: one function per loss, for the host and for
// kernels (C++17). x is the input, t the target, p a third operand that some have; a and b are
// numbers. C is float or double.
//
//   float dx = LossTerm<LossKind::kMse, LossOrder::kX>(x, t, 0.f, 0.f, 0.f);   // 2 (x - t)
#pragma once

#include "primitive/loss_kinds.h"

namespace oneflow_lite {
namespace loss {

template <class C>
OFL_LOSS_FUNCTION C Huber(LossOrder order, C d, C beta, C factor) {
  const C size = std::fabs(d);
  const bool near = size < beta;
  return OfDifference(order, factor * (near ? d * d * (C(0.5) / beta) : size - C(0.5) * beta),
                      factor * (near ? d / beta : Sign(d)), near ? factor / beta : C(0));
}

template <class C>
OFL_LOSS_FUNCTION C KlDiv(LossOrder order, const LossOperands<C>& o) {
  if (o.t == 0) return order == LossOrder::kX ? -o.t : C(0);
  switch (order) {
    case LossOrder::kValue:
      return o.t * (std::log(o.t) - o.x);
    case LossOrder::kX:
      return -o.t;
    case LossOrder::kT:
      return std::log(o.t) - o.x + 1;
    case LossOrder::kXT:
      return -1;
    case LossOrder::kTT:
      return 1 / o.t;
    default:
      return 0;
  }
}

template <class C>
OFL_LOSS_FUNCTION C KlDivLog(LossOrder order, const LossOperands<C>& o) {
  const C e = std::exp(o.t), gap = o.t - o.x;
  switch (order) {
    case LossOrder::kValue:
      return e * gap;
    case LossOrder::kX:
    case LossOrder::kXT:
      return -e;
    case LossOrder::kT:
      return e * (gap + 1);
    case LossOrder::kTT:
      return e * (gap + 2);
    default:
      return 0;
  }
}

template <class C>
OFL_LOSS_FUNCTION C BceWithLogits(LossOrder order, const LossOperands<C>& o) {
  const C x = o.x, t = o.t, p = o.p;
  switch (order) {
    case LossOrder::kValue:
      return p * t * Softplus(-x) + (1 - t) * Softplus(x);
    case LossOrder::kX:
      return (1 - t) * Sigmoid(x) - p * t * Sigmoid(-x);
    case LossOrder::kT:
      return p * Softplus(-x) - Softplus(x);
    case LossOrder::kP:
      return t * Softplus(-x);
    case LossOrder::kXX:
      return (p * t + (1 - t)) * Sigmoid(x) * Sigmoid(-x);
    case LossOrder::kXT:
      return -p * Sigmoid(-x) - Sigmoid(x);
    case LossOrder::kXP:
      return -t * Sigmoid(-x);
    case LossOrder::kTP:
      return Softplus(-x);
    default:
      return 0;
  }
}

// The slope of a logarithm is 1e12 at most.
template <class C>
OFL_LOSS_FUNCTION C Bce(LossOrder order, const LossOperands<C>& o) {
  const C x = o.x, t = o.t, rest = 1 - x;
  const C log_x = AtLeast(std::log(x), C(-100)), log_rest = AtLeast(std::log1p(-x), C(-100));
  const C slope_x = 1 / AtLeast(x, C(1e-12)), slope_rest = 1 / AtLeast(rest, C(1e-12));
  switch (order) {
    case LossOrder::kValue:
      return -t * log_x - (1 - t) * log_rest;
    case LossOrder::kX:
      return (1 - t) * slope_rest - t * slope_x;
    case LossOrder::kT:
      return log_rest - log_x;
    case LossOrder::kXX:
      return (x < C(1e-12) ? C(0) : t * slope_x * slope_x) +
             (rest < C(1e-12) ? C(0) : (1 - t) * slope_rest * slope_rest);
    case LossOrder::kXT:
      return -slope_rest - slope_x;
    default:
      return 0;
  }
}

// What Stirling's formula adds for log t! where t is above 1, and its slopes.
template <class C>
OFL_LOSS_FUNCTION C Stirling(LossOrder order, C t) {
  if (!(t > 1)) return 0;
  switch (order) {
    case LossOrder::kValue:
      return t * std::log(t) - t + C(0.5) * std::log(C(6.283185307179586) * t);
    case LossOrder::kT:
      return std::log(t) + C(0.5) / t;
    case LossOrder::kTT:
      return 1 / t - C(0.5) / (t * t);
    default:
      return 0;
  }
}

template <class C>
OFL_LOSS_FUNCTION C PoissonNll(LossOrder order, const LossOperands<C>& o) {
  const C rate = o.x + o.a, full = o.b != 0 ? Stirling(order, o.t) : C(0);
  switch (order) {
    case LossOrder::kValue:
      return o.x - o.t * std::log(rate) + full;
    case LossOrder::kX:
      return 1 - o.t / rate;
    case LossOrder::kT:
      return full - std::log(rate);
    case LossOrder::kXX:
      return o.t / (rate * rate);
    case LossOrder::kXT:
      return -1 / rate;
    default:
      return full;
  }
}

template <class C>
OFL_LOSS_FUNCTION C PoissonNllLog(LossOrder order, const LossOperands<C>& o) {
  const C full = o.b != 0 ? Stirling(order, o.t) : C(0);
  switch (order) {
    case LossOrder::kValue:
      return std::exp(o.x) - o.t * o.x + full;
    case LossOrder::kX:
      return std::exp(o.x) - o.t;
    case LossOrder::kT:
      return full - o.x;
    case LossOrder::kXX:
      return std::exp(o.x);
    case LossOrder::kXT:
      return -1;
    default:
      return full;
  }
}

// The gradient passes the lower bound of the variance, as in PyTorch.
template <class C>
OFL_LOSS_FUNCTION C GaussianNll(LossOrder order, const LossOperands<C>& o) {
  const C r = 1 / AtLeast(o.p, o.a), d = o.x - o.t;
  switch (order) {
    case LossOrder::kValue:
      return C(0.5) * (d * d * r - std::log(r)) + o.b;
    case LossOrder::kP:
      return C(0.5) * r * (1 - d * d * r);
    case LossOrder::kXP:
      return -d * r * r;
    case LossOrder::kTP:
      return d * r * r;
    case LossOrder::kPP:
      return r * r * (d * d * r - C(0.5));
    default:
      return OfDifference(order, C(0), d * r, r);
  }
}

template <class C>
OFL_LOSS_FUNCTION C SoftMargin(LossOrder order, const LossOperands<C>& o) {
  const C z = o.t * o.x, s = Sigmoid(-z), curvature = s * Sigmoid(z);
  switch (order) {
    case LossOrder::kValue:
      return Softplus(-z);
    case LossOrder::kX:
      return -o.t * s;
    case LossOrder::kT:
      return -o.x * s;
    case LossOrder::kXX:
      return o.t * o.t * curvature;
    case LossOrder::kTT:
      return o.x * o.x * curvature;
    case LossOrder::kXT:
      return z * curvature - s;
    default:
      return 0;
  }
}

template <class C>
OFL_LOSS_FUNCTION C HingeEmbedding(LossOrder order, const LossOperands<C>& o) {
  const bool near = o.t != -1, far = o.t != 1;
  const C gap = o.a - o.x;
  switch (order) {
    case LossOrder::kValue:
      return (near ? o.x : C(0)) + (far ? AtLeast(gap, C(0)) : C(0));
    case LossOrder::kX:
      return (near ? C(1) : C(0)) - (far && gap >= 0 ? C(1) : C(0));
    default:
      return 0;
  }
}

template <class C>
OFL_LOSS_FUNCTION C MarginRanking(LossOrder order, const LossOperands<C>& o) {
  const C d = o.x - o.t, gap = o.a - o.p * d;
  if (order == LossOrder::kValue) return AtLeast(gap, C(0));
  if (!(gap >= 0)) return 0;
  switch (order) {
    case LossOrder::kX:
      return -o.p;
    case LossOrder::kT:
      return o.p;
    case LossOrder::kP:
      return -d;
    case LossOrder::kXP:
      return -1;
    case LossOrder::kTP:
      return 1;
    default:
      return 0;
  }
}

template <class C>
OFL_LOSS_FUNCTION C PreluWeight(LossOrder order, const LossOperands<C>& o) {
  if (o.x > 0) return 0;
  switch (order) {
    case LossOrder::kValue:
      return o.t * o.x;
    case LossOrder::kX:
      return o.t;
    case LossOrder::kT:
      return o.x;
    case LossOrder::kXT:
      return 1;
    default:
      return 0;
  }
}

}  // namespace loss

template <LossKind kKind, class C>
OFL_LOSS_FUNCTION C LossTerm(LossOrder order, const LossOperands<C>& o) {
  if constexpr (kKind == LossKind::kMse) {
    const C d = o.x - o.t;
    return loss::OfDifference(order, d * d, 2 * d, C(2));
  } else if constexpr (kKind == LossKind::kL1) {
    const C d = o.x - o.t;
    return loss::OfDifference(order, C(std::fabs(d)), loss::Sign(d), C(0));
  } else if constexpr (kKind == LossKind::kSmoothL1) {
    return loss::Huber(order, o.x - o.t, o.a, C(1));
  } else if constexpr (kKind == LossKind::kHuber) {
    return loss::Huber(order, o.x - o.t, o.a, o.a);
  } else if constexpr (kKind == LossKind::kKlDiv) {
    return loss::KlDiv(order, o);
  } else if constexpr (kKind == LossKind::kKlDivLog) {
    return loss::KlDivLog(order, o);
  } else if constexpr (kKind == LossKind::kBceWithLogits) {
    return loss::BceWithLogits(order, o);
  } else if constexpr (kKind == LossKind::kBce) {
    return loss::Bce(order, o);
  } else if constexpr (kKind == LossKind::kPoissonNll) {
    return loss::PoissonNll(order, o);
  } else if constexpr (kKind == LossKind::kPoissonNllLog) {
    return loss::PoissonNllLog(order, o);
  } else if constexpr (kKind == LossKind::kGaussianNll) {
    return loss::GaussianNll(order, o);
  } else if constexpr (kKind == LossKind::kSoftMargin) {
    return loss::SoftMargin(order, o);
  } else if constexpr (kKind == LossKind::kHingeEmbedding) {
    return loss::HingeEmbedding(order, o);
  } else if constexpr (kKind == LossKind::kMarginRanking) {
    return loss::MarginRanking(order, o);
  } else {
    static_assert(kKind == LossKind::kPreluWeight, "a loss without a formula");
    return loss::PreluWeight(order, o);
  }
}

}  // namespace oneflow_lite
