// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic, comparisons, bits and gradients as function objects of two operands.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#include <type_traits>

#include "primitive/cuda/functions/float_normal_math.cuh"
#include "primitive/cuda/functions/gelu_tanh.cuh"
#include "primitive/cuda/functions/narrow_math.cuh"
#include "primitive/cuda/functions/tags.h"

namespace oneflow_lite {
namespace cuda {

__device__ inline float ExpOf(float x) { return expf(x); }
__device__ inline double ExpOf(double x) { return exp(x); }
// 1 / x of numbers far from the ends.
__device__ inline float OverOf(float x) { return fast::Reciprocal(x); }
__device__ inline double OverOf(double x) { return 1 / x; }

struct Add {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a + b;
  }
};
struct Sub {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a - b;
  }
};
struct Mul {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a * b;
  }
};
struct Div : Spacious {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a / b;
  }
};
struct ReluBackward {
  template <class C>
  __device__ C operator()(C dy, C y) const {
    return y <= C(0) ? C(0) : dy;
  }
};
// dy times the slope of gelu at x, and of its approximation by tanh.
struct GeluBackward : LongInDouble {
  __device__ float operator()(float dy, float x) const { return dy * fast::GeluSlope(x); }
  __device__ double operator()(double dy, double x) const {
    if (x > 40 || x < -40) return dy * (x > 0 ? 1 : 0);
    const double below = 0.5 * erfc(x * -0.70710678118654752440);
    return dy * (below + x * 0.39894228040143267794 * exp(x * x * -0.5));
  }
  __device__ float Narrow(float dy, float x) const { return dy * narrow::GeluSlope(x); }
};
struct GeluTanhBackward : LongInDouble {
  template <class C>
  __device__ C operator()(C dy, C x) const {
    return dy * GeluTanhSlopeOf(x);
  }
  __device__ float Narrow(float dy, float x) const { return dy * narrow::GeluTanhSlope(x); }
};
struct Eq {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return a == b;
  }
};
struct Ne {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return a != b;
  }
};
struct Lt {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return a < b;
  }
};
struct Le {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return a <= b;
  }
};
struct Maximum {
  template <class C>
  __device__ C operator()(C a, C b) const {
    if constexpr (std::is_same_v<C, float>) return fast::Larger(a, b);
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <class C>
  __device__ C operator()(C a, C b) const {
    if constexpr (std::is_same_v<C, float>) return fast::Smaller(a, b);
    return a < b || a != a ? a : b;
  }
};
struct Pow : LongInDouble {
  __device__ float operator()(float a, float b) const {
    return b == 3.0f ? a * a * a : b == 4.0f ? (a * a) * (a * a) : fast::Pow(a, b);
  }
  __device__ double operator()(double a, double b) const {
    return b == 3.0 ? a * a * a : b == 4.0 ? (a * a) * (a * a) : pow(a, b);
  }
  __device__ float Narrow(float a, float b) const {
    return b == 3.0f ? a * a * a : b == 4.0f ? (a * a) * (a * a) : narrow::Pow(a, b);
  }
  // Of integers by squaring, wrapping around.
  template <class C>
  __device__ C operator()(C a, C b) const {
    if constexpr (std::is_signed_v<C>) {
      if (b < 0) return a == 1 || (a == -1 && b % 2 == 0) ? C(1) : a == -1 ? a : C(0);
    }
    using Wrapping = std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>;
    Wrapping result = 1, square = a;
    for (; b > 0; b >>= 1) {
      if (b & 1) result *= square;
      square *= square;
    }
    return static_cast<C>(result);
  }
};
struct Prelu {
  template <class C>
  __device__ C operator()(C x, C weight) const {
    return x > C(0) ? x : x * weight;
  }
};
struct And {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a & b;
  }
};
struct Or {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a | b;
  }
};
struct Xor {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return a ^ b;
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
