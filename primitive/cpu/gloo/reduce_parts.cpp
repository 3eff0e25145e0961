// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/gloo/reduce_parts.h"

#include <algorithm>
#include <functional>
#include <type_traits>

#include "oneflow_lite/core/parallel.h"

namespace oneflow_lite {
namespace {

constexpr int64_t kBlock = 2048;   // elements: two blocks of float64 stay in the first-level cache
constexpr int64_t kGrain = 65536;  // elements a thread is worth waking for

// Signed integers wrap by way of their unsigned type, of which small ones compute in int.
template <class C>
C Add(C a, C b) {
  if constexpr (std::is_same_v<C, bool>) {
    return a | b;
  } else if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class C>
C Multiply(C a, C b) {
  if constexpr (std::is_same_v<C, bool>) {
    return a & b;
  } else if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}
// A NaN stays: no comparison with it is true.
template <class C>
C Larger(C a, C b) {
  return a > b || a != a ? a : b;
}
template <class C>
C Smaller(C a, C b) {
  return a < b || a != a ? a : b;
}

// out[i] = end_of(parts[0][i] f parts[1][i] f ...).
template <class T, class F, class E = std::identity>
void Fold(const std::vector<const void*>& parts, void* out, int64_t count, F f, E end_of = {}) {
  using C = ComputeOf<T>;
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    C sum[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t n = std::min(kBlock, end - i);
      const T* first = static_cast<const T*>(parts[0]) + i;
      for (int64_t j = 0; j < n; ++j) sum[j] = C(first[j]);
      for (size_t p = 1; p < parts.size(); ++p) {
        const T* x = static_cast<const T*>(parts[p]) + i;
        for (int64_t j = 0; j < n; ++j) sum[j] = f(sum[j], C(x[j]));
      }
      T* y = static_cast<T*>(out) + i;
      for (int64_t j = 0; j < n; ++j) y[j] = T(end_of(sum[j]));
    }
  });
}

}  // namespace

void ReduceParts(const std::vector<const void*>& parts, void* out, int64_t count, DType dtype,
                 CollectiveReduce reduce) {
  VisitAll(dtype, [&]<class T>(Tag<T>) {
    using C = ComputeOf<T>;
    switch (reduce) {
      case CollectiveReduce::kSum:
        return Fold<T>(parts, out, count, [](C a, C b) { return Add(a, b); });
      case CollectiveReduce::kProd:
        return Fold<T>(parts, out, count, [](C a, C b) { return Multiply(a, b); });
      case CollectiveReduce::kMax:
        return Fold<T>(parts, out, count, [](C a, C b) { return Larger(a, b); });
      case CollectiveReduce::kMin:
        return Fold<T>(parts, out, count, [](C a, C b) { return Smaller(a, b); });
      case CollectiveReduce::kMean:
        if constexpr (std::is_floating_point_v<C>) {
          Fold<T>(
              parts, out, count, [](C a, C b) { return a + b; },
              [n = static_cast<C>(parts.size())](C sum) { return sum / n; });
        }
        return;
    }
  });
}

}  // namespace oneflow_lite
