// SPDX-License-Identifier: Apache-2.0
//
// Element types, and the one visitor that turns a run-time dtype into a C++ type.
//
//   Status s = VisitFloating(dtype, [&]<class T>(Tag<T>) { return Run<T>(x, n); });
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "oneflow_lite/core/export.h"
#include "oneflow_lite/core/half.h"

namespace oneflow_lite {

enum class DType : uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
};
inline constexpr int kNumDTypes = 10;

template <class T>
struct Tag {
  using type = T;
};

// The dtype of a C++ element type.
template <class T>
constexpr DType DTypeOf() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::kBool;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::kUInt8;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::kInt8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::kInt16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::kInt32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::kInt64;
  else if constexpr (std::is_same_v<T, float16>)
    return DType::kFloat16;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return DType::kBFloat16;
  else if constexpr (std::is_same_v<T, float>)
    return DType::kFloat32;
  else {
    static_assert(std::is_same_v<T, double>, "not an element type");
    return DType::kFloat64;
  }
}

// Whether t is one of the above: another number may have been cast to the type.
constexpr bool IsDType(DType t) { return static_cast<int>(t) < kNumDTypes; }
// Bytes of one element. Precondition: IsDType(t).
constexpr size_t SizeOf(DType t) {
  constexpr size_t kSizes[kNumDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return kSizes[static_cast<int>(t)];
}
constexpr bool IsFloating(DType t) { return t >= DType::kFloat16; }
constexpr bool IsIntegral(DType t) { return t > DType::kBool && t < DType::kFloat16; }

// "float32"; "unknown" of what is none.
OFL_API const char* Name(DType t);

// The type in which kernels compute and accumulate: float32 for the 16-bit floats, else itself.
constexpr DType ComputeType(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16 ? DType::kFloat32 : t;
}
template <class T>
using ComputeOf =
    std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

// PyTorch's promotion of two tensor dtypes (the table of torch.promote_types).
OFL_API DType PromoteTypes(DType a, DType b);

// Calls f(Tag<T>) for one of float16, bfloat16, float32, float64. Precondition: IsFloating(t).
template <class F>
decltype(auto) VisitFloating(DType t, F&& f) {
  switch (t) {
    case DType::kFloat16:
      return f(Tag<float16>{});
    case DType::kBFloat16:
      return f(Tag<bfloat16>{});
    case DType::kFloat64:
      return f(Tag<double>{});
    default:
      return f(Tag<float>{});
  }
}

// Calls f(Tag<T>) for any dtype.
template <class F>
decltype(auto) VisitAll(DType t, F&& f) {
  switch (t) {
    case DType::kBool:
      return f(Tag<bool>{});
    case DType::kUInt8:
      return f(Tag<uint8_t>{});
    case DType::kInt8:
      return f(Tag<int8_t>{});
    case DType::kInt16:
      return f(Tag<int16_t>{});
    case DType::kInt32:
      return f(Tag<int32_t>{});
    case DType::kInt64:
      return f(Tag<int64_t>{});
    default:
      return VisitFloating(t, static_cast<F&&>(f));
  }
}

}  // namespace oneflow_lite
