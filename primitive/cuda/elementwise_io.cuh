// SPDX-License-Identifier: Apache-2.0
//
// Units of elementwise passes between memory and the compute type. What an operand's dtype is comes
// as a number that is the same for the whole launch: a kernel exists once per compute type, not per
// dtype. The functions are compiled for the host too, where tests run them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string.h>

#include <type_traits>

#include "primitive/cuda/elementwise_pass.h"

namespace oneflow_lite {
namespace cuda {

// A unit as memory has it: up to 32 bytes.
struct RawUnit {
  uint32_t w[8];
};
template <class C>
struct Unit {
  C v[kPassPack<C>];
};

template <int kBytes>
struct alignas(kBytes) AlignedWord {
  uint32_t w[kBytes / 4];
};

// Bytes [8 * (past & 3), ...) of two words.
OFL_HOST_DEVICE uint32_t ShiftedWord(uint32_t low, uint32_t high, unsigned past) {
#ifdef __CUDA_ARCH__
  return __funnelshift_r(low, high, 8 * (past & 3));
#else
  return static_cast<uint32_t>(((static_cast<uint64_t>(high) << 32) | low) >> (8 * (past & 3)));
#endif
}

// kBytes from p on, at any alignment: aligned accesses of up to 16 bytes, shifted into place. Every
// access has a byte of the unit in it.
template <int kBytes>
OFL_HOST_DEVICE void LoadBytes(const char* p, RawUnit& raw) {
  constexpr int kAccess = kBytes < 16 ? kBytes : 16, kWords = kBytes / 4;
  using Word = AlignedWord<kAccess>;
  const unsigned past = static_cast<unsigned>(reinterpret_cast<uintptr_t>(p)) & (kAccess - 1);
  const Word* aligned = reinterpret_cast<const Word*>(p - past);
  if (past == 0) {
#pragma unroll
    for (int i = 0; i < kBytes / kAccess; ++i) {
      const Word word = aligned[i];
#pragma unroll
      for (int k = 0; k < kAccess / 4; ++k) raw.w[i * (kAccess / 4) + k] = word.w[k];
    }
    return;
  }
  uint32_t w[kWords + kAccess / 4];
#pragma unroll
  for (int i = 0; i <= kBytes / kAccess; ++i) {
    const Word word = aligned[i];
#pragma unroll
    for (int k = 0; k < kAccess / 4; ++k) w[i * (kAccess / 4) + k] = word.w[k];
  }
  if constexpr (kAccess == 16) {
#pragma unroll
    for (int i = 0; i < kWords + 2; ++i) w[i] = past & 8 ? w[i + 2] : w[i];
  }
  if constexpr (kAccess >= 8) {
#pragma unroll
    for (int i = 0; i < kWords + 1; ++i) w[i] = past & 4 ? w[i + 1] : w[i];
  }
#pragma unroll
  for (int i = 0; i < kWords; ++i) raw.w[i] = ShiftedWord(w[i], w[i + 1], past);
}

// One aligned access. An assignment may be cut into smaller stores on the device (pack.cuh).
template <int kAccess>
OFL_HOST_DEVICE void StoreAccess(char* p, const uint32_t* w) {
#ifdef __CUDA_ARCH__
  if constexpr (kAccess == 16) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(__cvta_generic_to_global(p)), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                 : "memory");
  } else if constexpr (kAccess == 8) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};"
                 :
                 : "l"(__cvta_generic_to_global(p)), "r"(w[0]), "r"(w[1])
                 : "memory");
  } else {
    *reinterpret_cast<uint32_t*>(p) = w[0];
  }
#else
  memcpy(p, w, kAccess);
#endif
}
// Stores kBytes at p, which is aligned to them or to 16 bytes.
template <int kBytes>
OFL_HOST_DEVICE void StoreBytes(char* p, const uint32_t* w) {
  constexpr int kAccess = kBytes < 16 ? kBytes : 16;
#pragma unroll
  for (int i = 0; i < kBytes / kAccess; ++i) {
    StoreAccess<kAccess>(p + i * kAccess, w + i * (kAccess / 4));
  }
}

// ConvertTo's conversions (convert.cuh) between elements and compute types.
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

// Elements `step` bytes apart, side by side as a dense unit has them.
template <int kPack, class Word>
OFL_HOST_DEVICE void LoadStepped(const char* p, int64_t step, RawUnit& raw) {
  Word v[kPack];
#pragma unroll
  for (int e = 0; e < kPack; ++e) v[e] = *reinterpret_cast<const Word*>(p + e * step);
  memcpy(&raw, v, sizeof(v));
}
template <class C>
OFL_HOST_DEVICE void HoldOne(C value, RawUnit& raw) {
  Unit<C> unit;
#pragma unroll
  for (C& v : unit.v) v = value;
  memcpy(&raw, &unit, sizeof(raw));
}

// The unit of input i that begins at p, not yet converted unless Pass::held says so.
template <class C, int N>
OFL_HOST_DEVICE void LoadUnit(const Pass<N>& pass, int i, const char* p, RawUnit& raw) {
  constexpr int kPack = kPassPack<C>;
  const DType dtype = pass.dtype[i];
  if (pass.form[i] == Form::kValue) {
    C value;
    memcpy(&value, &pass.value, sizeof(C));
    return HoldOne(value, raw);
  }
  if (pass.form[i] == Form::kNumber) return HoldOne(LoadOne<C>(dtype, p), raw);
  const int bytes = pass.bytes[i];
  if (bytes > static_cast<int>(sizeof(C))) {
    Unit<C> unit;
#pragma unroll
    for (int e = 0; e < kPack; ++e) unit.v[e] = LoadOne<C>(dtype, p + e * pass.step[i]);
    memcpy(&raw, &unit, sizeof(raw));
    return;
  }
  if (pass.form[i] == Form::kPacked) {
    if (bytes == 2) return LoadBytes<2 * kPack>(p, raw);
    if (bytes == 4) return LoadBytes<4 * kPack>(p, raw);
    if constexpr (sizeof(C) == 8) {
      if (bytes == 8) return LoadBytes<8 * kPack>(p, raw);
    }
    return LoadBytes<kPack>(p, raw);
  }
  const int64_t step = pass.step[i];
  if (bytes == 2) return LoadStepped<kPack, uint16_t>(p, step, raw);
  if (bytes == 4) return LoadStepped<kPack, uint32_t>(p, step, raw);
  if constexpr (sizeof(C) == 8) {
    if (bytes == 8) return LoadStepped<kPack, uint64_t>(p, step, raw);
  }
  LoadStepped<kPack, uint8_t>(p, step, raw);
}

// A unit that LoadUnit gave, in the compute type.
template <class C>
OFL_HOST_DEVICE Unit<C> WidenUnit(DType held, DType round, const RawUnit& raw) {
  constexpr int kPack = kPassPack<C>;
  Unit<C> unit;
  VisitInputType<C>(held, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, __nv_bfloat16>) {  // the upper half of a float
#pragma unroll
      for (int e = 0; e < kPack; ++e) {
        const uint32_t word = raw.w[e / 2], bits = e % 2 ? word & 0xffff0000u : word << 16;
        float v;
        memcpy(&v, &bits, sizeof(v));
        unit.v[e] = static_cast<C>(v);
      }
    } else if constexpr (sizeof(T) <= sizeof(C)) {
      T v[kPack];
      memcpy(v, &raw, sizeof(v));
#pragma unroll
      for (int e = 0; e < kPack; ++e) unit.v[e] = Widened<C>(v[e]);
    }
  });
  if (round != held) {
#pragma unroll
    for (C& v : unit.v) v = Rounded(round, v);
  }
  return unit;
}

// Stores results of kPack elements; p is at a boundary of the output.
template <int kPack, class R>
OFL_HOST_DEVICE void StoreUnit(DType dtype, char* p, const R (&y)[kPack]) {
  VisitOutputType<R>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    uint32_t w[kPack * sizeof(T) / 4];
    if constexpr (std::is_same_v<T, __half>) {
#pragma unroll
      for (int e = 0; e < kPack; e += 2) {
        const __half2 pair = __floats2half2_rn(y[e], y[e + 1]);
        memcpy(&w[e / 2], &pair, sizeof(pair));
      }
    } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
#pragma unroll
      for (int e = 0; e < kPack; e += 2) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(y[e], y[e + 1]);
        memcpy(&w[e / 2], &pair, sizeof(pair));
      }
    } else {
      T v[kPack];
#pragma unroll
      for (int e = 0; e < kPack; ++e) v[e] = Narrowed<T>(y[e]);
      memcpy(w, v, sizeof(v));
    }
    StoreBytes<kPack* static_cast<int>(sizeof(T))>(p, w);
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
