// SPDX-License-Identifier: Apache-2.0
//
// What the kernels that are generated for flow.fuse.elements are made of: function objects of one
// and two operands, and the geometry of strided operands. The formulas are those of unary.cu.
#pragma once

#include "primitive/cuda/chip/pack.cuh"
#include "primitive/cuda/functions/binary.cuh"
#include "primitive/cuda/functions/division.cuh"
#include "primitive/cuda/functions/math.cuh"

namespace oneflow_lite {
namespace cuda {

// Integers compute unsigned, where overflow wraps around.
template <class T, bool kInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>>
struct ArithmeticOf {
  using type = ComputeType<T>;
};
template <class T>
struct ArithmeticOf<T, true> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};

// Arithmetic in which integers wrap around; narrow ones are computed in wider ones.
template <class Op>
struct Wrapped {
  template <class C>
  __device__ C operator()(C a, C b) const {
    using A = typename ArithmeticOf<C>::type;
    return static_cast<C>(Op{}(static_cast<A>(a), static_cast<A>(b)));
  }
};

struct FusedNeg {
  template <class C>
  __device__ C operator()(C x) const {
    if constexpr (std::is_floating_point_v<C>) {
      return -x;
    } else {
      return Wrapped<Sub>{}(C(0), x);
    }
  }
};
struct FusedAbs {
  template <class C>
  __device__ C operator()(C x) const {
    if constexpr (std::is_floating_point_v<C>) {
      return fabs(x);
    } else {
      return x < C(0) ? FusedNeg{}(x) : x;
    }
  }
};
struct FusedRelu {
  template <class C>
  __device__ C operator()(C x) const {
    return x > C(0) || x != x ? x : C(0);  // NaN stays
  }
};
struct FusedSign {  // 0 of NaN
  template <class C>
  __device__ C operator()(C x) const {
    const C above = x > C(0) ? C(1) : C(0);
    if constexpr (std::is_unsigned_v<C>) {
      return above;
    } else {
      return x < C(0) ? C(-1) : above;
    }
  }
};
struct FusedSquare {
  template <class C>
  __device__ C operator()(C x) const {
    return Wrapped<Mul>{}(x, x);
  }
};
struct FusedBitwiseNot {
  template <class C>
  __device__ C operator()(C x) const {
    if constexpr (std::is_same_v<C, bool>) {
      return !x;
    } else {
      return static_cast<C>(~x);
    }
  }
};
struct FusedIsInf {
  template <class C>
  __device__ bool operator()(C x) const {
    if constexpr (std::is_floating_point_v<C>) {
      return isinf(x);
    } else {
      return false;
    }
  }
};
struct FusedIsFinite {
  template <class C>
  __device__ bool operator()(C x) const {
    return x == x && !FusedIsInf{}(x);
  }
};
struct FusedIsSigned {
  template <class C>
  __device__ bool operator()(C x) const {
    if constexpr (std::is_floating_point_v<C>) {
      return signbit(x);
    } else if constexpr (std::is_unsigned_v<C>) {
      return false;
    } else {
      return x < C(0);
    }
  }
};
struct FusedSigmoid {  // from the exp that is at most 1
  template <class C>
  __device__ C operator()(C x) const {
    const C e = ExpOf(-fabs(x));
    return (x < C(0) ? e : C(1)) / (C(1) + e);
  }
};
struct FusedGeluTanh {
  template <class C>
  __device__ C operator()(C x) const {
    return GeluTanhOf(x);
  }
};
// x P(N <= x) of a standard normal N.
struct FusedGelu {
  template <class C>
  __device__ C operator()(C x) const {
    return x < C(-40) ? C(0) : C(0.5) * x * erfc(x * C(-0.70710678118654752440));
  }
};

// i / d for i below 2^31: `divisor` has a multiplier, and a shift in its upper half (Strided,
// strided/strided.h). With 64 bits it is d.
__device__ __forceinline__ uint32_t Quotient(uint32_t i, uint64_t divisor) {
  return (__umulhi(i, static_cast<uint32_t>(divisor)) + i) >> static_cast<uint32_t>(divisor >> 32);
}
__device__ __forceinline__ int64_t Quotient(int64_t i, uint64_t divisor) {
  return i / static_cast<int64_t>(divisor);
}

// N elements that all have the value at p.
template <int N, class T>
__device__ __forceinline__ Pack<T, N> LoadRepeated(const T* p) {
  Pack<T, N> pack;
  const T value = *p;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.v[i] = value;
  return pack;
}

inline constexpr int kFusedThreads = 256;

// The loop of all kernels: each thread has kUnroll packs of kPack elements in flight. Elements has
// Load<N>(i), Store<N>(i, inputs), numel, Index, the type that counts elements, and kWhole: whether
// they are whole packs.
template <int kPack, int kUnroll, class Elements>
__global__ void __launch_bounds__(kFusedThreads)
    FusedElementsKernel(const __grid_constant__ Elements e) {
  using Index = typename Elements::Index;
  constexpr Index kStride = kFusedThreads * kPack;
  const Index n = static_cast<Index>(e.numel);
  const Index step = static_cast<Index>(gridDim.x) * (kStride * kUnroll);
  Index base = static_cast<Index>(blockIdx.x) * (kStride * kUnroll) +
               static_cast<Index>(threadIdx.x) * kPack;
  for (; base < n; base += step) {
    typename Elements::template Inputs<kPack> inputs[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const Index i = base + u * kStride;
      if (i + kPack <= n) inputs[u] = e.template Load<kPack>(i);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const Index i = base + u * kStride;
      if (i + kPack <= n) {
        e.template Store<kPack>(i, inputs[u]);
      } else if constexpr (!Elements::kWhole) {
        for (Index j = i; j < n; ++j) e.template Store<1>(j, e.template Load<1>(j));
      }
    }
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
