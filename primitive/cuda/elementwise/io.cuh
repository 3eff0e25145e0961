// SPDX-License-Identifier: Apache-2.0
//
// Units of elementwise passes between memory and the compute type. What an operand's dtype is comes
// as a number that is the same for the whole launch: a kernel exists once per compute type, not per
// dtype. The functions are compiled for the host too, where tests run them.
#pragma once

#include <string.h>

#include <type_traits>

#include "primitive/cuda/elementwise/types.cuh"

namespace oneflow_lite {
namespace cuda {

// A unit as memory has it: up to 32 bytes.
struct RawUnit {
  uint32_t w[8];
};

template <int kBytes>
struct alignas(kBytes) AlignedWord {
  uint32_t w[kBytes / 4];
};

// One aligned access.
template <int kBytes>
OFL_HOST_DEVICE void LoadAccess(const char* p, uint32_t* to) {
  if constexpr (kBytes < 4) {
    to[0] =
        kBytes == 1 ? *reinterpret_cast<const uint8_t*>(p) : *reinterpret_cast<const uint16_t*>(p);
  } else {
    const auto word = *reinterpret_cast<const AlignedWord<kBytes>*>(p);
#pragma unroll
    for (int i = 0; i < kBytes / 4; ++i) to[i] = word.w[i];
  }
}
// Half of a unit of kBytes from p on, half of it from q on.
template <int kBytes>
OFL_HOST_DEVICE void LoadHalves(const char* p, const char* q, RawUnit& raw) {
  if constexpr (kBytes == 4) {
    uint32_t halves[2];
    LoadAccess<2>(p, &halves[0]);
    LoadAccess<2>(q, &halves[1]);
    raw.w[0] = halves[0] | halves[1] << 16;
  } else {
    LoadAccess<kBytes / 2>(p, raw.w);
    LoadAccess<kBytes / 2>(q, raw.w + kBytes / 8);
  }
}

// One aligned access. An assignment may be cut into smaller stores on the device (chip/pack.cuh).
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
// Stores kBytes at p, which is aligned to them or to 16 bytes; of 32 and more the second half is
// stored `second` bytes behind p.
template <int kBytes>
OFL_HOST_DEVICE void StoreBytes(char* p, uint32_t second, const uint32_t* w) {
  constexpr int kAccess = kBytes < 16 ? kBytes : 16, kHalf = kBytes / kAccess / 2;
  if constexpr (kHalf == 0) {
    StoreAccess<kAccess>(p, w);
  } else {
#pragma unroll
    for (int i = 0; i < kHalf; ++i) StoreAccess<16>(p + 16 * i, w + 4 * i);
#pragma unroll
    for (int i = 0; i < kHalf; ++i) StoreAccess<16>(p + second + 16 * i, w + 4 * (kHalf + i));
  }
}

// An element that is wider than the compute type, float64 or int64, as a word of it.
template <class C>
OFL_HOST_DEVICE uint32_t LoadNarrowed(DType dtype, const char* p) {
  static_assert(sizeof(C) == 4, "wider than the compute type");
  const uint64_t bits = *reinterpret_cast<const uint64_t*>(p);
  double real;
  memcpy(&real, &bits, sizeof(real));
  const C value =
      dtype == DType::kFloat64 ? static_cast<C>(real) : static_cast<C>(static_cast<int64_t>(bits));
  uint32_t word;
  memcpy(&word, &value, sizeof(word));
  return word;
}

// The word or words of one element.
template <class C>
using RawElement = uint32_t[sizeof(C) / 4];

// An element as memory has it.
template <class C>
OFL_HOST_DEVICE void LoadElement(DType dtype, uint32_t bytes, const char* p, uint32_t* to) {
  if constexpr (sizeof(C) == 8) {
    if (bytes == 8) return LoadAccess<8>(p, to);
  } else if (bytes == 8) {
    to[0] = LoadNarrowed<C>(dtype, p);
    return;
  }
  if (bytes == 4) return LoadAccess<4>(p, to);
  if (bytes == 2) return LoadAccess<2>(p, to);
  LoadAccess<1>(p, to);
}
template <int kBytes, class C, int kPack>
OFL_HOST_DEVICE void LoadLineOf(const char* p, uint32_t hop, int count,
                                RawElement<C> (&raw)[kPack]) {
#pragma unroll
  for (int e = 0; e < kPack; ++e, p += hop) {
    if (e < count) LoadAccess<kBytes>(p, raw[e]);
  }
}
// `count` elements, `hop` bytes apart.
template <class C, int kPack>
OFL_HOST_DEVICE void LoadLine(DType dtype, uint32_t bytes, const char* p, uint32_t hop, int count,
                              RawElement<C> (&raw)[kPack]) {
  if (bytes == 4) return LoadLineOf<4, C>(p, hop, count, raw);
  if (bytes == 2) return LoadLineOf<2, C>(p, hop, count, raw);
  if (bytes == 1) return LoadLineOf<1, C>(p, hop, count, raw);
  if constexpr (sizeof(C) == 8) {
    LoadLineOf<8, C>(p, hop, count, raw);
  } else {
#pragma unroll
    for (int e = 0; e < kPack; ++e, p += hop) {
      if (e < count) raw[e][0] = LoadNarrowed<C>(dtype, p);
    }
  }
}

// A unit of input i at p, whose second half is `second` elements behind the first one, as memory
// has it: of a number its element alone.
template <class C, int N>
OFL_HOST_DEVICE void LoadUnit(const Pass<N>& pass, int i, const char* p, uint32_t second,
                              RawUnit& raw) {
  constexpr uint32_t kSize = sizeof(C);
  const uint32_t bytes = pass.packed[i];
  if (bytes == 32) return LoadHalves<32>(p, p + second * kSize, raw);
  if (bytes == 16) {
    if (pass.halved == 0) return LoadAccess<16>(p, raw.w);
    return LoadHalves<16>(p, p + second * (kSize / 2), raw);
  }
  if (bytes == 8) {
    if (pass.halved == 0) return LoadAccess<8>(p, raw.w);
    return LoadHalves<8>(p, p + second * (kSize / 4), raw);
  }
  if constexpr (kSize == 8) {
    if (bytes == 4) {
      if (pass.halved == 0) return LoadAccess<4>(p, raw.w);
      return LoadHalves<4>(p, p + second, raw);
    }
  }
  if (pass.form[i] == Form::kNumber) LoadElement<C>(pass.dtype[i], pass.bytes[i], p, raw.w);
}

// A unit of nothing but the first element.
template <class C>
OFL_HOST_DEVICE void RepeatElement(uint32_t bytes, RawUnit& raw) {
  if (bytes == 2) raw.w[0] |= raw.w[0] << 16;
  if (bytes == 1) raw.w[0] *= 0x01010101u;
  const bool wide = sizeof(C) == 8 && bytes == 8;
  raw.w[1] = wide ? raw.w[1] : raw.w[0];
#pragma unroll
  for (int k = 2; k < 8; ++k) raw.w[k] = raw.w[k % 2];
}

// A unit of input i that LoadUnit gave, in the compute type.
template <class C, int N, int kPack>
OFL_HOST_DEVICE void WidenUnit(const Pass<N>& pass, int i, RawUnit& raw, C (&x)[kPack]) {
  const uint32_t held = pass.held[i], round = pass.round[i];
  if (pass.packed[i] == 0) {
    if (pass.form[i] == Form::kValue) {
      C value;
      memcpy(&value, &pass.value[i], sizeof(C));
#pragma unroll
      for (C& v : x) v = value;
      return;
    }
    RepeatElement<C>(sizeof(C) == 4 && pass.bytes[i] == 8 ? 4 : pass.bytes[i], raw);
  }
  VisitHeldType<C>(static_cast<DType>(held), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, __nv_bfloat16>) {  // the upper half of a float
#pragma unroll
      for (int e = 0; e < kPack; ++e) {
        const uint32_t word = raw.w[e / 2], bits = e % 2 ? word & 0xffff0000u : word << 16;
        float v;
        memcpy(&v, &bits, sizeof(v));
        x[e] = static_cast<C>(v);
      }
    } else if constexpr (sizeof(T) <= sizeof(C)) {
      T v[kPack];
      memcpy(v, &raw, sizeof(v));
#pragma unroll
      for (int e = 0; e < kPack; ++e) x[e] = Widened<C>(v[e]);
    }
  });
  if (round != held) {
#pragma unroll
    for (C& v : x) v = Rounded(static_cast<DType>(round), v);
  }
}

// The same of elements that LoadLine gave.
template <class C, int N, int kPack>
OFL_HOST_DEVICE void WidenLine(const Pass<N>& pass, int i, const RawElement<C> (&raw)[kPack],
                               C (&x)[kPack]) {
  const uint32_t held = pass.held[i], round = pass.round[i];
  if (pass.form[i] == Form::kValue) {
    C value;
    memcpy(&value, &pass.value[i], sizeof(C));
#pragma unroll
    for (C& v : x) v = value;
    return;
  }
  VisitHeldType<C>(static_cast<DType>(held), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) <= sizeof(C)) {
#pragma unroll
      for (int e = 0; e < kPack; ++e) {
        T v;
        memcpy(&v, raw[e], sizeof(v));
        x[e] = Widened<C>(v);
      }
    }
  });
  if (round != held) {
#pragma unroll
    for (C& v : x) v = Rounded(static_cast<DType>(round), v);
  }
}

// Stores `count` results, `hop` bytes apart.
template <int kPack, class R>
OFL_HOST_DEVICE void StoreLine(DType dtype, char* p, uint32_t hop, int count, const R (&y)[kPack]) {
  VisitOutputType<R>(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
#pragma unroll
    for (int e = 0; e < kPack; ++e, p += hop) {
      if (e < count) *reinterpret_cast<T*>(p) = Narrowed<T>(y[e]);
    }
  });
}

// Stores results of kPack elements; p is aligned to the accesses, and where they are 32 bytes or
// more their second half goes `second` elements behind p.
template <int kPack, class R>
OFL_HOST_DEVICE void StoreUnit(DType dtype, char* p, uint32_t second, const R (&y)[kPack]) {
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
    StoreBytes<kPack* static_cast<int>(sizeof(T))>(p, second * sizeof(T), w);
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
