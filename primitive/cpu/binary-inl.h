// SPDX-License-Identifier: Apache-2.0
//
// From an expression of two elements, or of two vectors, to the loop for a dtype. Compiled once per
// instruction set, as simd-inl.h is.
//
//   Numbers(dtype, [](auto a, auto b) { return Raw(a) + Raw(b); })
#if defined(OFL_PRIMITIVE_CPU_BINARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OFL_PRIMITIVE_CPU_BINARY_INL_H_
#undef OFL_PRIMITIVE_CPU_BINARY_INL_H_
#else
#define OFL_PRIMITIVE_CPU_BINARY_INL_H_
#endif

#include "primitive/cpu/binary_loop.h"
#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T, class R, class F>
void Loop(int64_t n, const void* a_data, const void* b_data, void* out_data) {
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  R* out = static_cast<R*>(out_data);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<R>(F()(a[i], b[i]));
}

template <class T, class F>
BinaryLoop Make(F) {
  constexpr bool kCompares =
      std::is_same_v<decltype(F()(T(), T())), bool> && !std::is_same_v<T, bool>;
  return &Loop<T, std::conditional_t<kCompares, bool, T>, F>;
}

// f for the compute types float32 and float64; for integers; both; all of them and bool; integers
// and bool. Null for the rest.
template <class F>
BinaryLoop Floats(DType dtype, F f) {
  if (dtype == DType::kFloat32) return Make<float>(f);
  return dtype == DType::kFloat64 ? Make<double>(f) : nullptr;
}
// f on vectors, where the compiler would not vectorise it.
template <class T, class F>
void VectorLoop(int64_t n, const void* a_data, const void* b_data, void* out_data) {
  const TagOf<T> d;
  const T* a = static_cast<const T*>(a_data);
  const T* b = static_cast<const T*>(b_data);
  T* out = static_cast<T*>(out_data);
  const auto zero = hn::Zero(d);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto y = F()(d, LoadUpTo(d, a + i, count, zero), LoadUpTo(d, b + i, count, zero));
    StoreUpTo(y, d, out + i, count);
  });
}
template <class F>
BinaryLoop Vectors(DType dtype, F) {
  if (dtype == DType::kFloat32) return &VectorLoop<float, F>;
  return dtype == DType::kFloat64 ? &VectorLoop<double, F> : nullptr;
}
template <class F>
BinaryLoop Integers(DType dtype, F f) {
  switch (dtype) {
    case DType::kUInt8:
      return Make<uint8_t>(f);
    case DType::kInt8:
      return Make<int8_t>(f);
    case DType::kInt16:
      return Make<int16_t>(f);
    case DType::kInt32:
      return Make<int32_t>(f);
    case DType::kInt64:
      return Make<int64_t>(f);
    default:
      return nullptr;
  }
}
template <class F>
BinaryLoop Numbers(DType dtype, F f) {
  return IsFloating(dtype) ? Floats(dtype, f) : Integers(dtype, f);
}
template <class F>
BinaryLoop All(DType dtype, F f) {
  return dtype == DType::kBool ? Make<bool>(f) : Numbers(dtype, f);
}
template <class F>
BinaryLoop Bits(DType dtype, F f) {
  return dtype == DType::kBool ? Make<bool>(f) : Integers(dtype, f);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#endif  // OFL_PRIMITIVE_CPU_BINARY_INL_H_
