// SPDX-License-Identifier: Apache-2.0
//
// Elements as unsigned integers that are in order as the elements are: NaN is the largest, both
// zeros are one key. Sorts and selections of every dtype then compare keys alone.
//
//   const KeyCode code = KeyCodeOf(DType::kFloat32, /*descending=*/true);
//   uint32_t key = code.Encode(bits);
#pragma once

#include <cstdint>

#include "oneflow_lite/core/dtype.h"

#ifdef __CUDACC__
#define OFL_KEY_FUNCTION __host__ __device__ __forceinline__
#else
#define OFL_KEY_FUNCTION inline
#endif

namespace oneflow_lite {

struct KeyCode {
  int bits;  // of an element
  bool is_signed;
  bool is_float;
  bool descending;    // the larger element has the smaller key
  uint64_t infinity;  // its bits, of a float

  // The largest key, in an unsigned integer of at least `bits` bits.
  template <class U>
  OFL_KEY_FUNCTION U Most() const {
    return static_cast<U>(~uint64_t{0} >> (64 - bits));
  }
  template <class U>
  OFL_KEY_FUNCTION U Sign() const {
    return static_cast<U>(uint64_t{1} << (bits - 1));
  }
  // From the element's bits to its key.
  template <class U>
  OFL_KEY_FUNCTION U Encode(U raw) const {
    const U most = Most<U>(), sign = Sign<U>();
    U key = raw;
    if (is_float) {
      const U magnitude = raw & ~sign;
      if (magnitude > static_cast<U>(infinity)) {
        key = most;
      } else if (magnitude == 0) {
        key = sign;
      } else {
        key = (raw & sign) != 0 ? ~raw & most : raw | sign;
      }
    } else if (is_signed) {
      key = raw ^ sign;
    }
    return descending ? most & ~key : key;
  }
  // And back, where IsOneElement(key): a NaN may have any bits and a zero either sign.
  template <class U>
  OFL_KEY_FUNCTION U Decode(U key) const {
    const U most = Most<U>(), sign = Sign<U>();
    if (descending) key = most & ~key;
    if (is_float) return (key & sign) != 0 ? key ^ sign : most & ~key;
    return is_signed ? key ^ sign : key;
  }
  template <class U>
  OFL_KEY_FUNCTION bool IsOneElement(U key) const {
    if (descending) key = Most<U>() & ~key;
    return !is_float || (key != Most<U>() && key != Sign<U>());
  }
  template <class U>
  OFL_KEY_FUNCTION bool IsNan(U key) const {
    return is_float && key == (descending ? U{0} : Most<U>());
  }
};

constexpr KeyCode KeyCodeOf(DType dtype, bool descending) {
  return {static_cast<int>(8 * SizeOf(dtype)), dtype >= DType::kInt8 && dtype <= DType::kInt64,
          IsFloating(dtype), descending,
          dtype == DType::kFloat16    ? 0x7C00u
          : dtype == DType::kBFloat16 ? 0x7F80u
          : dtype == DType::kFloat32  ? 0x7F800000u
                                      : 0x7FF0000000000000u};
}

}  // namespace oneflow_lite
