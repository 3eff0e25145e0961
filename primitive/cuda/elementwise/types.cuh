// SPDX-License-Identifier: Apache-2.0
//
// Elements of a dtype that comes as a number, to and from the compute type; for the host too.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "primitive/cuda/elementwise/pass.h"

namespace oneflow_lite {
namespace cuda {

// ConvertTo's conversions (chip/convert.cuh) between elements and compute types.
template <class C, class T>
OFL_HOST_DEVICE C Widened(T x) {
  if constexpr (std::is_same_v<T, __half>) {
    return static_cast<C>(__half2float(x));
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return static_cast<C>(__bfloat162float(x));
  } else {
    return static_cast<C>(x);
  }
}
template <class T, class C>
OFL_HOST_DEVICE T Narrowed(C x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(x);
  } else if constexpr (std::is_same_v<T, bool>) {
    return x != C(0);
  } else {
    return static_cast<T>(x);
  }
}

template <class T>
struct TypeTag {
  using type = T;
};
// Calls f(TypeTag<T>) with the type of a dtype that may go into C: integers and bool into integers,
// everything into floats. bool is uint8_t here.
template <class C, class F>
OFL_HOST_DEVICE void VisitInputType(DType dtype, F f) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return f(TypeTag<uint8_t>{});
    case DType::kInt8:
      return f(TypeTag<int8_t>{});
    case DType::kInt16:
      return f(TypeTag<int16_t>{});
    case DType::kInt32:
      return f(TypeTag<int32_t>{});
    case DType::kInt64:
      return f(TypeTag<int64_t>{});
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<C>) {
    switch (dtype) {
      case DType::kFloat16:
        return f(TypeTag<__half>{});
      case DType::kBFloat16:
        return f(TypeTag<__nv_bfloat16>{});
      case DType::kFloat32:
        return f(TypeTag<float>{});
      default:
        return f(TypeTag<double>{});
    }
  }
}
// The same, with the usual dtypes asked for first.
template <class C, class F>
OFL_HOST_DEVICE void VisitHeldType(DType dtype, F f) {
  if constexpr (std::is_same_v<C, float>) {
    if (dtype == DType::kFloat32) return f(TypeTag<float>{});
    if (dtype == DType::kFloat16) return f(TypeTag<__half>{});
    if (dtype == DType::kBFloat16) return f(TypeTag<__nv_bfloat16>{});
  }
  VisitInputType<C>(dtype, f);
}
// The same with the type of a dtype that results of compute type C are stored as.
template <class C, class F>
OFL_HOST_DEVICE void VisitOutputType(DType dtype, F f) {
  if constexpr (std::is_same_v<C, bool>) {
    f(TypeTag<bool>{});
  } else if constexpr (std::is_same_v<C, float>) {
    if (dtype == DType::kFloat16) return f(TypeTag<__half>{});
    if (dtype == DType::kBFloat16) return f(TypeTag<__nv_bfloat16>{});
    f(TypeTag<float>{});
  } else if constexpr (sizeof(C) == 8) {
    f(TypeTag<C>{});
  } else {  // integers: only the size matters
    switch (dtype) {
      case DType::kBool:
        return f(TypeTag<bool>{});
      case DType::kUInt8:
      case DType::kInt8:
        return f(TypeTag<uint8_t>{});
      case DType::kInt16:
        return f(TypeTag<int16_t>{});
      default:
        return f(TypeTag<int32_t>{});
    }
  }
}

template <class C>
OFL_HOST_DEVICE C LoadOne(DType dtype, const char* p) {
  C value{};
  VisitInputType<C>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    value = Widened<C>(*reinterpret_cast<const T*>(p));
  });
  return value;
}
template <class R>
OFL_HOST_DEVICE void StoreOne(DType dtype, char* p, R value) {
  VisitOutputType<R>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *reinterpret_cast<T*>(p) = Narrowed<T>(value);
  });
}

// Rounds to a 16-bit float and back, as a cast before the operation would.
template <class C>
OFL_HOST_DEVICE C Rounded(DType to, C x) {
  if constexpr (std::is_same_v<C, float>) {
    if (to == DType::kFloat16) return __half2float(__float2half_rn(x));
    if (to == DType::kBFloat16) return __bfloat162float(__float2bfloat16_rn(x));
  }
  return x;
}

}  // namespace cuda
}  // namespace oneflow_lite
