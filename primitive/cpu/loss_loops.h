// SPDX-License-Identifier: Apache-2.0
//
// The losses made of exponentials, logarithms and choices as vector loops; loss.cpp has those that
// the compiler vectorises.
#pragma once

#include <cstdint>

#include "primitive/loss_math.h"

namespace oneflow_lite {

// Of n elements; p[i * p_step] goes with element i, p_step is 0 or 1.
template <class C>
struct LossChunk {
  int64_t n;
  const C *x, *t, *p;
  int64_t p_step;
  C a, b;
};
template <class C>
using LossLoop = void (*)(const LossChunk<C>&, LossOrder, C* out);

// bce_with_logits, soft_margin and poisson_nll, their values and slopes by x, and the values of
// bce, huber and smooth_l1; null for the rest. For float and double.
template <class C>
LossLoop<C> FindVectorLoss(LossKind kind, LossOrder order);

}  // namespace oneflow_lite
