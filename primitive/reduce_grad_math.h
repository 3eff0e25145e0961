// SPDX-License-Identifier: Apache-2.0
//
// The gradients of reductions at one element, for both devices.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "primitive/reduce_kinds.h"

#ifdef __CUDACC__
#define OFL_BOTH_DEVICES __host__ __device__
#else
#define OFL_BOTH_DEVICES
#endif

namespace oneflow_lite {

template <ReduceGradKind kOp>
using ReduceGradTag = std::integral_constant<ReduceGradKind, kOp>;

// The derivative of the p-norm: sign(x) (|x| / y)^(p - 1), shared among the extremes' ties by
// whoever knows them.
template <class C>
OFL_BOTH_DEVICES inline C NormSlope(C x, C y, C p) {
  if (x != x) return x;
  if (x == 0 || y == 0) return 0;
  const C sign = x > 0 ? C(1) : C(-1);
  if (p == 1) return sign;
  if (p == 2) return x / y;
  return sign * std::pow((x > 0 ? x : -x) / y, p - 1);
}

// extra and zeros: see ReduceGradKind.
template <ReduceGradKind kOp, class C>
OFL_BOTH_DEVICES inline C ReduceGradOf(C dy, C x, C y, C extra, int64_t zeros, C p) {
  if constexpr (kOp == ReduceGradKind::kVar) {
    return dy * p * (x - extra);
  } else if constexpr (kOp == ReduceGradKind::kStd) {
    return y == 0 ? C(0) : dy * p * ((x - extra) / y);
  } else if constexpr (kOp == ReduceGradKind::kNorm) {
    return dy * NormSlope(x, y, p);
  } else if constexpr (kOp == ReduceGradKind::kLogSumExp) {
    return dy * std::exp(x - extra);
  } else {
    if (zeros == 0) return dy * (extra / x);
    return zeros == 1 && x == 0 ? dy * extra : C(0);
  }
}

template <class F>
auto VisitReduceGrad(ReduceGradKind op, F f) {
  switch (op) {
    case ReduceGradKind::kVar:
      return f(ReduceGradTag<ReduceGradKind::kVar>());
    case ReduceGradKind::kStd:
      return f(ReduceGradTag<ReduceGradKind::kStd>());
    case ReduceGradKind::kNorm:
      return f(ReduceGradTag<ReduceGradKind::kNorm>());
    case ReduceGradKind::kLogSumExp:
      return f(ReduceGradTag<ReduceGradKind::kLogSumExp>());
    case ReduceGradKind::kProd:
      break;
  }
  return f(ReduceGradTag<ReduceGradKind::kProd>());
}

}  // namespace oneflow_lite
