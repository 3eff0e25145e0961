// SPDX-License-Identifier: Apache-2.0
//
// Function objects applied to the elements of a unit. A function that takes more than some hundred
// instructions has the base Long or LongInDouble: it is called, and not repeated for each element.
#pragma once

#include <stdint.h>

#include <type_traits>
#include <utility>

#include "primitive/cuda/functions/tags.h"

namespace oneflow_lite {
namespace cuda {

template <class Op, class C>
inline constexpr bool kIsLong = std::is_base_of_v<Long, Op> ||
                                (std::is_base_of_v<LongInDouble, Op> && std::is_same_v<C, double>);

// bool of a function that gives bool, else the compute type; what a cast gives.
template <class Op, class C, class... Rest>
using GivenBy = decltype(std::declval<const Op&>()(std::declval<C>(), std::declval<Rest>()...));
template <class Op, class C, class Given>
using ResultOf = std::conditional_t<std::is_same_v<Given, bool> || kChangesType<Op>, Given, C>;

#pragma nv_exec_check_disable
template <class Op, class C, class... Rest>
OFL_CALLED ResultOf<Op, C, GivenBy<Op, C, Rest...>> CallLong(Op op, C x, Rest... rest) {
  return static_cast<ResultOf<Op, C, GivenBy<Op, C, Rest...>>>(op(x, rest...));
}
#pragma nv_exec_check_disable
template <class Op, class C, class... Rest>
OFL_HOST_DEVICE ResultOf<Op, C, GivenBy<Op, C, Rest...>> CallOp(const Op& op, C x, Rest... rest) {
  if constexpr (kIsLong<Op, C>) {
    return CallLong<Op, C, Rest...>(op, x, rest...);
  } else {
    return static_cast<ResultOf<Op, C, GivenBy<Op, C, Rest...>>>(op(x, rest...));
  }
}
// Whether a function of floats has a second form, Narrow(x, ...), of numbers of 16 bits that gives
// such: in fewer instructions, and exact enough for them.
template <class Op, class C, class = void>
inline constexpr bool kHasNarrow = false;
template <class Op>
inline constexpr bool kHasNarrow<Op, float, std::void_t<decltype(&Op::Narrow)>> = true;
// The same of a function of integers: Short(x, ...), of integers of 8 and 16 bits.
template <class Op>
inline constexpr bool kHasNarrow<Op, int32_t, std::void_t<decltype(&Op::Short)>> = true;
template <bool kNarrow, class Op, class C, class... Rest>
OFL_HOST_DEVICE auto CallForm(const Op& op, C x, Rest... rest) {
  if constexpr (kNarrow && std::is_integral_v<C>) {
    return op.Short(x, rest...);
  } else if constexpr (kNarrow) {
    return op.Narrow(x, rest...);
  } else {
    return CallOp(op, x, rest...);
  }
}
template <bool kNarrow, class Op, class C, int N>
OFL_HOST_DEVICE auto Compute(const Op& op, const C (&x)[N]) {
  if constexpr (N == 1) {
    return CallForm<kNarrow>(op, x[0]);
  } else if constexpr (N == 2) {
    return CallForm<kNarrow>(op, x[0], x[1]);
  } else {
    return CallForm<kNarrow>(op, x[0], x[1], x[2]);
  }
}
template <class Op, class C, int N>
using Computed =
    decltype(Compute<false>(std::declval<const Op&>(), std::declval<const C (&)[N]>()));

// y[e] of x[0][e], x[1][e], ...
template <bool kNarrow, class Op, class C, int N, int kPack>
OFL_HOST_DEVICE void ComputeForm(const Op& op, const C (&x)[N][kPack],
                                 Computed<Op, C, N> (&y)[kPack]) {
#pragma unroll
  for (int e = 0; e < kPack; ++e) {
    C of[N];
#pragma unroll
    for (int i = 0; i < N; ++i) of[i] = x[i][e];
    y[e] = Compute<kNarrow>(op, of);
  }
}
// `narrow`: Pass::narrow.
template <class Op, class C, int N, int kPack>
OFL_HOST_DEVICE void ComputeAll(const Op& op, bool narrow, const C (&x)[N][kPack],
                                Computed<Op, C, N> (&y)[kPack]) {
  if constexpr (kHasNarrow<Op, C>) {
    if (narrow) return ComputeForm<true>(op, x, y);
  }
  ComputeForm<false>(op, x, y);
}

}  // namespace cuda
}  // namespace oneflow_lite
