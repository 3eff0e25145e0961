// SPDX-License-Identifier: Apache-2.0
//
// sin, erf, log1p ... on vectors of the compute type: the C library's vector functions (libmvec of
// glibc on x86-64, within 4 ulp, with IEEE 754's corner cases) where the build found them, else its
// scalar ones lane by lane. Compiled once per instruction set, like simd-inl.h.
#if defined(OFL_PRIMITIVE_CPU_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OFL_PRIMITIVE_CPU_VECTOR_MATH_INL_H_
#undef OFL_PRIMITIVE_CPU_VECTOR_MATH_INL_H_
#else
#define OFL_PRIMITIVE_CPU_VECTOR_MATH_INL_H_
#endif

#include <cmath>

#include "primitive/cpu/simd-inl.h"

// The names are those of the x86 vector ABI: b, d and e for SSE4, AVX2 and AVX-512, the lanes, v.
#undef OFL_VECTOR_FLOAT
#undef OFL_VECTOR_DOUBLE
#undef OFL_VECTOR_OF
#undef OFL_VECTOR_FLOAT_OF_TWO
#undef OFL_VECTOR_DOUBLE_OF_TWO
#if defined(OFL_LIBMVEC) && HWY_TARGET == HWY_AVX3
#define OFL_VECTOR_FLOAT(name) _ZGVeN16v_##name##f
#define OFL_VECTOR_DOUBLE(name) _ZGVeN8v_##name
#define OFL_VECTOR_FLOAT_OF_TWO(name) _ZGVeN16vv_##name##f
#define OFL_VECTOR_DOUBLE_OF_TWO(name) _ZGVeN8vv_##name
#define OFL_VECTOR_OF(suffix) __m512##suffix
#elif defined(OFL_LIBMVEC) && HWY_TARGET == HWY_AVX2
#define OFL_VECTOR_FLOAT(name) _ZGVdN8v_##name##f
#define OFL_VECTOR_DOUBLE(name) _ZGVdN4v_##name
#define OFL_VECTOR_FLOAT_OF_TWO(name) _ZGVdN8vv_##name##f
#define OFL_VECTOR_DOUBLE_OF_TWO(name) _ZGVdN4vv_##name
#define OFL_VECTOR_OF(suffix) __m256##suffix
#elif defined(OFL_LIBMVEC) && HWY_TARGET == HWY_SSE4
#define OFL_VECTOR_FLOAT(name) _ZGVbN4v_##name##f
#define OFL_VECTOR_DOUBLE(name) _ZGVbN2v_##name
#define OFL_VECTOR_FLOAT_OF_TWO(name) _ZGVbN4vv_##name##f
#define OFL_VECTOR_DOUBLE_OF_TWO(name) _ZGVbN2vv_##name
#define OFL_VECTOR_OF(suffix) __m128##suffix
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {

// f on each lane: for functions that have no vector form.
template <class D, class F>
HWY_INLINE hn::Vec<D> Each(D d, hn::Vec<D> x, F f) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(D()); ++i) lanes[i] = f(lanes[i]);
  return hn::Load(d, lanes);
}

// Defines Vector<Function>(d, x).
#undef OFL_VECTOR_FUNCTION
#ifdef OFL_VECTOR_FLOAT
#define OFL_VECTOR_FUNCTION(Function, name)                              \
  extern "C" OFL_VECTOR_OF() OFL_VECTOR_FLOAT(name)(OFL_VECTOR_OF());    \
  extern "C" OFL_VECTOR_OF(d) OFL_VECTOR_DOUBLE(name)(OFL_VECTOR_OF(d)); \
  template <class D>                                                     \
  HWY_INLINE hn::Vec<D> Vector##Function(D d, hn::Vec<D> x) {            \
    if constexpr (sizeof(hn::TFromD<D>) == 4)                            \
      return hn::Vec<D>{OFL_VECTOR_FLOAT(name)(x.raw)};                  \
    else                                                                 \
      return hn::Vec<D>{OFL_VECTOR_DOUBLE(name)(x.raw)};                 \
  }
#else
#define OFL_VECTOR_FUNCTION(Function, name)                   \
  template <class D>                                          \
  HWY_INLINE hn::Vec<D> Vector##Function(D d, hn::Vec<D> x) { \
    return Each(d, x, [](auto v) { return std::name(v); });   \
  }
#endif

OFL_VECTOR_FUNCTION(Sin, sin)
OFL_VECTOR_FUNCTION(Cos, cos)
OFL_VECTOR_FUNCTION(Tan, tan)
OFL_VECTOR_FUNCTION(Asin, asin)
OFL_VECTOR_FUNCTION(Acos, acos)
OFL_VECTOR_FUNCTION(Atan, atan)
OFL_VECTOR_FUNCTION(Sinh, sinh)
OFL_VECTOR_FUNCTION(Cosh, cosh)
OFL_VECTOR_FUNCTION(Tanh, tanh)
OFL_VECTOR_FUNCTION(Asinh, asinh)
OFL_VECTOR_FUNCTION(Acosh, acosh)
OFL_VECTOR_FUNCTION(Atanh, atanh)
OFL_VECTOR_FUNCTION(Exp2, exp2)
OFL_VECTOR_FUNCTION(Expm1, expm1)
OFL_VECTOR_FUNCTION(Log1p, log1p)
OFL_VECTOR_FUNCTION(Log2, log2)
OFL_VECTOR_FUNCTION(Log10, log10)
OFL_VECTOR_FUNCTION(Erf, erf)
OFL_VECTOR_FUNCTION(Erfc, erfc)

// Defines Vector<Function>(d, x, y).
#undef OFL_VECTOR_FUNCTION_OF_TWO
#ifdef OFL_VECTOR_FLOAT
#define OFL_VECTOR_FUNCTION_OF_TWO(Function, name)                                                \
  extern "C" OFL_VECTOR_OF() OFL_VECTOR_FLOAT_OF_TWO(name)(OFL_VECTOR_OF(), OFL_VECTOR_OF());     \
  extern "C" OFL_VECTOR_OF(d) OFL_VECTOR_DOUBLE_OF_TWO(name)(OFL_VECTOR_OF(d), OFL_VECTOR_OF(d)); \
  template <class D>                                                                              \
  HWY_INLINE hn::Vec<D> Vector##Function(D d, hn::Vec<D> x, hn::Vec<D> y) {                       \
    if constexpr (sizeof(hn::TFromD<D>) == 4)                                                     \
      return hn::Vec<D>{OFL_VECTOR_FLOAT_OF_TWO(name)(x.raw, y.raw)};                             \
    else                                                                                          \
      return hn::Vec<D>{OFL_VECTOR_DOUBLE_OF_TWO(name)(x.raw, y.raw)};                            \
  }
#else
#define OFL_VECTOR_FUNCTION_OF_TWO(Function, name)                          \
  template <class D>                                                        \
  HWY_INLINE hn::Vec<D> Vector##Function(D d, hn::Vec<D> x, hn::Vec<D> y) { \
    HWY_ALIGN hn::TFromD<D> a[hn::MaxLanes(D())], b[hn::MaxLanes(D())];     \
    hn::Store(x, d, a);                                                     \
    hn::Store(y, d, b);                                                     \
    for (size_t i = 0; i < hn::Lanes(d); ++i) a[i] = std::name(a[i], b[i]); \
    return hn::Load(d, a);                                                  \
  }
#endif

OFL_VECTOR_FUNCTION_OF_TWO(Atan2, atan2)
OFL_VECTOR_FUNCTION_OF_TWO(PowOfPositive, pow)

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#endif  // OFL_PRIMITIVE_CPU_VECTOR_MATH_INL_H_
