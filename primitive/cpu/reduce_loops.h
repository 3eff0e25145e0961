// SPDX-License-Identifier: Apache-2.0
//
// The vector loops of reductions over contiguous float, double or int64 elements.
#pragma once

#include <cstdint>
#include <type_traits>

namespace oneflow_lite {

// What sums of C are carried in between chunks.
template <class C>
using SumOf = std::conditional_t<std::is_floating_point_v<C>, double, int64_t>;

// A maximum with a NaN is NaN; sums of int64 wrap around.
template <class C>
struct ReduceLoops {
  // The sum of n elements, for n of a few hundred: floats are added in float32.
  SumOf<C> (*sum)(int64_t n, const C* x);
  C (*max)(int64_t n, const C* x);  // n > 0
  // sum[i] += x[i], max[i] = max(max[i], x[i])
  void (*add_to)(int64_t n, const C* x, C* sum);
  void (*max_to)(int64_t n, const C* x, C* max);
};

// For float, double and int64_t.
template <class C>
ReduceLoops<C> FindReduceLoops();

}  // namespace oneflow_lite
