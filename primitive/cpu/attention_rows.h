// SPDX-License-Identifier: Apache-2.0
//
// What attention does with a row of scores, on SIMD vectors. C is float or double.
#pragma once

#include <cstdint>

namespace oneflow_lite {

template <class C>
struct AttentionRows {
  // e += added.
  void (*add)(int64_t n, const C* added, C* e);
  // e = minus infinity where keep is 0.
  void (*hide)(int64_t n, const uint8_t* keep, C* e);
  // x *= factor, one for all or one for each.
  void (*scale)(int64_t n, C factor, C* x);
  void (*multiply)(int64_t n, const C* factors, C* x);
  // The running maximum takes in e, and e = exp(e - max), where a maximum of minus infinity counts
  // as 0. Gives the sum of e; *factor is what sums of before must be multiplied by.
  double (*exponentiate)(int64_t n, C* e, C* max, C* factor);
  // e = exp(e - base - rest), dp = scale e (dp - delta).
  void (*differentiate)(int64_t n, C base, C rest, C delta, C scale, C* e, C* dp);
  double (*dot)(int64_t n, const C* a, const C* b);
};

// For the best instruction set that this processor has.
template <class C>
const AttentionRows<C>& GetAttentionRows();
template <>
const AttentionRows<float>& GetAttentionRows<float>();
template <>
const AttentionRows<double>& GetAttentionRows<double>();

}  // namespace oneflow_lite
