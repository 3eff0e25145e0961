// SPDX-License-Identifier: Apache-2.0
//
// From function objects to launchers, one per compute type of the dtypes that a function is for:
//
//   struct Sin { template <class C> __device__ C operator()(C x) const { return sin(x); } };
//   return FindFor<kFloats, 1, UnaryParams, Sin>(dtype);
//
// An object that takes numbers is constructed from them, on the host; one that has to know the
// dtype of the result, from that.
#pragma once

#include <string.h>

#include <type_traits>

#include "primitive/cuda/elementwise/launchers.h"
#include "primitive/cuda/elementwise/pass.cuh"

namespace oneflow_lite {
namespace cuda {

// Sets of dtypes. Integers compute as int32_t or int64_t, bool too; with kWrapping unsigned, where
// overflow wraps around.
inline constexpr unsigned kFloats = 1, kIntegers = 2, kBools = 4, kWrapping = 8;
inline constexpr unsigned kNumbers = kFloats | kIntegers, kAll = kNumbers | kBools;

template <class Op, class Numbers>
Op MakeOp(const Numbers& numbers, DType out) {
  if constexpr (std::is_constructible_v<Op, const Numbers&>) {
    return Op(numbers);
  } else if constexpr (std::is_constructible_v<Op, DType>) {
    return Op(out);
  } else {
    return Op{};
  }
}

template <int N, class Numbers, class C, class Op>
cudaError_t LaunchOp(const Pass<N>& pass, const Numbers& numbers, cudaStream_t stream) {
  return LaunchPass<N, C>(MakeOp<Op>(numbers, pass.dtype[N]), pass, stream);
}

// OpOf<C>::type is the function's object for the compute type C.
template <unsigned kSet, int N, class Numbers, template <class> class OpOf>
PassLauncher<N, Numbers> FindByType(DType common) {
  if constexpr ((kSet & kFloats) != 0) {
    if (common == DType::kFloat64)
      return &LaunchOp<N, Numbers, double, typename OpOf<double>::type>;
    if (common >= DType::kFloat16) return &LaunchOp<N, Numbers, float, typename OpOf<float>::type>;
  }
  if (common >= DType::kFloat16) return nullptr;
  if (common == DType::kBool && (kSet & kBools) == 0) return nullptr;
  if constexpr ((kSet & (kIntegers | kBools)) != 0) {
    using Wide = std::conditional_t<(kSet & kWrapping) != 0, uint64_t, int64_t>;
    using Narrow = std::conditional_t<(kSet & kWrapping) != 0, uint32_t, int32_t>;
    if (common == DType::kInt64) return &LaunchOp<N, Numbers, Wide, typename OpOf<Wide>::type>;
    return &LaunchOp<N, Numbers, Narrow, typename OpOf<Narrow>::type>;
  }
  return nullptr;
}

namespace internal {
template <class Op>
struct Same {
  template <class C>
  struct Of {
    using type = Op;
  };
};
template <template <class> class Op>
struct Each {
  template <class C>
  struct Of {
    using type = Op<C>;
  };
};
}  // namespace internal

template <unsigned kSet, int N, class Numbers, class Op>
PassLauncher<N, Numbers> FindFor(DType common) {
  return FindByType<kSet, N, Numbers, internal::Same<Op>::template Of>(common);
}
template <unsigned kSet, int N, class Numbers, template <class> class Op>
PassLauncher<N, Numbers> FindForEach(DType common) {
  return FindByType<kSet, N, Numbers, internal::Each<Op>::template Of>(common);
}

}  // namespace cuda
}  // namespace oneflow_lite
