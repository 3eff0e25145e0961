// SPDX-License-Identifier: Apache-2.0
//
// Function objects: divisions with a rounded quotient and their rests, functions of integers, and
// logical ones. Narrow integers may come in a wider type: what they are rounded to in the end drops
// the bits that they do not have.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

#include <type_traits>

#include "primitive/cuda/functions/float_math.cuh"
#include "primitive/cuda/functions/tags.h"

namespace oneflow_lite {
namespace cuda {

// Unsigned, where arithmetic wraps around.
template <class C>
using WrappingOf = std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>;

// What is left for large quotients, infinities and NaN; called, so that it is in a kernel once.
inline __device__ __noinline__ float LongFmod(float a, float b) { return fmodf(a, b); }
__device__ inline float FmodOf(float a, float b) {
  const float x = fabsf(a), y = fabsf(b);
  return fast::DividesShortly(x, y) ? copysignf(fast::RestOf(x, y), a) : LongFmod(a, b);
}
__device__ inline double FmodOf(double a, double b) { return fmod(a, b); }
__device__ inline float FloorOf(float x) { return floorf(x); }
__device__ inline double FloorOf(double x) { return floor(x); }
__device__ inline float TruncOf(float x) { return truncf(x); }
__device__ inline double TruncOf(double x) { return trunc(x); }
__device__ inline float SignedAs(float x, float sign) { return copysignf(x, sign); }
__device__ inline double SignedAs(double x, double sign) { return copysign(x, sign); }

// Of integers, rounded towards 0; 0 over 0. The least integer over -1 wraps around.
template <class C>
__device__ C TruncQuotient(C a, C b) {
  if (b == 0) return C(0);
  if constexpr (std::is_signed_v<C>) {
    if (b == C(-1)) return static_cast<C>(WrappingOf<C>(0) - static_cast<WrappingOf<C>>(a));
  }
  return a / b;
}
// a - q b; a over 0.
template <class C>
__device__ C IntegerRest(C a, C b) {
  using U = WrappingOf<C>;
  const C q = TruncQuotient(a, b);
  return static_cast<C>(static_cast<U>(a) - static_cast<U>(q) * static_cast<U>(b));
}
// Whether the rest of a division rounded towards 0 says that rounded down it is one less.
template <class C>
__device__ bool RoundsDown(C rest, C b) {
  if constexpr (std::is_unsigned_v<C>)
    return false;
  else
    return b != 0 && rest != 0 && (rest < 0) != (b < 0);
}

// a / b rounded down, of whole numbers below 2^17 in magnitude; 0 over 0. With 0.5 more the
// quotient is at least 0.5 / |b| from every whole number, and it errs by less than 2^-21 of itself.
__device__ inline float ShortFloor(float a, float b) {
  constexpr float kToWhole = 12582912.0f;  // 1.5 * 2^23, where floats are whole numbers
  const float over = b * fast::Reciprocal(fmaxf(b * b, 1.0f));
  return __fadd_rd(__fmul_rn(a + copysignf(0.5f, b), over), kToWhole) - kToWhole;
}

struct Fmod : LongInDouble {
  template <class C>
  __device__ C operator()(C a, C b) const {
    if constexpr (std::is_integral_v<C>)
      return IntegerRest(a, b);
    else
      return FmodOf(a, b);
  }
  __device__ int32_t Short(int32_t a, int32_t b) const {
    const float x = fabsf(static_cast<float>(a)), y = fabsf(static_cast<float>(b));
    const auto rest = static_cast<int32_t>(x - ShortFloor(x, y) * y);
    return a < 0 ? -rest : rest;
  }
};
struct Remainder : LongInDouble {
  template <class C>
  __device__ C operator()(C a, C b) const {
    if constexpr (std::is_integral_v<C>) {
      using U = WrappingOf<C>;
      const C rest = IntegerRest(a, b);
      return RoundsDown(rest, b) ? static_cast<C>(static_cast<U>(rest) + static_cast<U>(b)) : rest;
    } else {
      const C rest = FmodOf(a, b);
      if (rest == C(0)) return SignedAs(C(0), b);
      return (rest < C(0)) != (b < C(0)) ? rest + b : rest;
    }
  }
  __device__ int32_t Short(int32_t a, int32_t b) const {
    const auto x = static_cast<float>(a), y = static_cast<float>(b);
    return static_cast<int32_t>(x - ShortFloor(x, y) * y);
  }
};
// As NumPy divides floats: what remains of a is a multiple of b, up to a rounding.
struct FloorDivide : LongInDouble {
  template <class C>
  __device__ C operator()(C a, C b) const {
    if constexpr (std::is_integral_v<C>) {
      using U = WrappingOf<C>;
      const U q = static_cast<U>(TruncQuotient(a, b));
      const auto rest = static_cast<C>(static_cast<U>(a) - q * static_cast<U>(b));
      return static_cast<C>(q - (RoundsDown(rest, b) ? 1 : 0));
    } else {
      if (b == C(0)) return a / b;
      const C rest = FmodOf(a, b);
      C quotient = (a - rest) / b;
      if (rest != C(0) && (rest < C(0)) != (b < C(0))) quotient -= C(1);
      if (quotient == C(0)) return SignedAs(C(0), a / b);
      const C whole = FloorOf(quotient);
      return quotient - whole > C(0.5) ? whole + C(1) : whole;
    }
  }
  __device__ int32_t Short(int32_t a, int32_t b) const {
    return static_cast<int32_t>(ShortFloor(static_cast<float>(a), static_cast<float>(b)));
  }
};
struct TruncDivide {
  template <class C>
  __device__ C operator()(C a, C b) const {
    if constexpr (std::is_integral_v<C>)
      return TruncQuotient(a, b);
    else
      return TruncOf(a / b);
  }
  __device__ int32_t Short(int32_t a, int32_t b) const {
    const float q = ShortFloor(fabsf(static_cast<float>(a)), fabsf(static_cast<float>(b)));
    return static_cast<int32_t>((a < 0) != (b < 0) ? -q : q);
  }
};

template <class C>
__device__ WrappingOf<C> Magnitude(C v) {
  using U = WrappingOf<C>;
  if constexpr (std::is_unsigned_v<C>)
    return v;
  else
    return v < 0 ? U(0) - static_cast<U>(v) : static_cast<U>(v);
}
// Euclid's algorithm.
template <class C>
__device__ WrappingOf<C> GreatestDivisor(C a, C b) {
  WrappingOf<C> x = Magnitude(a), y = Magnitude(b);
  while (y != 0) {
    const WrappingOf<C> rest = x % y;
    x = y;
    y = rest;
  }
  return x;
}
struct Gcd : Long {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return static_cast<C>(GreatestDivisor(a, b));
  }
};

template <class C>
__device__ bool IsBeyond(C places) {
  constexpr C kBits = 8 * sizeof(C);
  if constexpr (std::is_unsigned_v<C>)
    return places >= kBits;
  else
    return places < 0 || places >= kBits;
}
struct ShiftLeft {
  template <class C>
  __device__ C operator()(C a, C places) const {
    return IsBeyond(places) ? C(0) : static_cast<C>(static_cast<WrappingOf<C>>(a) << places);
  }
};
struct ShiftRight {
  template <class C>
  __device__ C operator()(C a, C places) const {
    constexpr int kMost = 8 * sizeof(C) - 1;
    if (!IsBeyond(places)) return static_cast<C>(a >> places);
    if constexpr (std::is_unsigned_v<C>)
      return C(0);
    else
      return static_cast<C>(a >> kMost);
  }
};

struct LogicalAnd {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return a != C(0) && b != C(0);
  }
};
struct LogicalOr {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return a != C(0) || b != C(0);
  }
};
struct LogicalXor {
  template <class C>
  __device__ bool operator()(C a, C b) const {
    return (a != C(0)) != (b != C(0));
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
