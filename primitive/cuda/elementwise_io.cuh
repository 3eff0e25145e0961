// SPDX-License-Identifier: Apache-2.0
//
// Units of elementwise passes between memory and the compute type. What an operand's dtype is comes
// as a number that is the same for the whole launch: a kernel exists once per compute type, not per
// dtype. The functions are compiled for the host too, where tests run them.
#pragma once

#include <string.h>

#include <type_traits>

#include "primitive/cuda/elementwise_types.cuh"

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
OFL_HOST_DEVICE void LoadBytes(const char* p, uint32_t* to) {
  constexpr int kAccess = kBytes < 16 ? kBytes : 16, kWords = kBytes / 4;
  using Word = AlignedWord<kAccess>;
  const unsigned past = static_cast<unsigned>(reinterpret_cast<uintptr_t>(p)) & (kAccess - 1);
  const Word* aligned = reinterpret_cast<const Word*>(p - past);
  if (past == 0) {
#pragma unroll
    for (int i = 0; i < kBytes / kAccess; ++i) {
      const Word word = aligned[i];
#pragma unroll
      for (int k = 0; k < kAccess / 4; ++k) to[i * (kAccess / 4) + k] = word.w[k];
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
  for (int i = 0; i < kWords; ++i) to[i] = ShiftedWord(w[i], w[i + 1], past);
}
// Half of them from p on, half from q on.
template <int kBytes>
OFL_HOST_DEVICE void LoadHalves(const char* p, const char* q, RawUnit& raw) {
  LoadBytes<kBytes / 2>(p, raw.w);
  LoadBytes<kBytes / 2>(q, raw.w + kBytes / 8);
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
// Stores kBytes at p, which is aligned to them or to 16 bytes; of 32 and more the second half at q.
template <int kBytes>
OFL_HOST_DEVICE void StoreBytes(char* p, char* q, const uint32_t* w) {
  constexpr int kAccess = kBytes < 16 ? kBytes : 16, kHalf = kBytes / kAccess / 2;
  if constexpr (kHalf == 0) {
    StoreAccess<kAccess>(p, w);
  } else {
#pragma unroll
    for (int i = 0; i < kHalf; ++i) StoreAccess<16>(p + 16 * i, w + 4 * i);
#pragma unroll
    for (int i = 0; i < kHalf; ++i) StoreAccess<16>(q + 16 * i, w + 4 * (kHalf + i));
  }
}

// Elements `step` bytes apart, half of them from p on and half from q on, as a dense unit has them.
template <int kPack, class Word>
OFL_HOST_DEVICE void LoadStepped(const char* p, const char* q, int64_t step, Word (&v)[kPack]) {
  constexpr int kHalf = kPack / 2;
#pragma unroll
  for (int e = 0; e < kPack; ++e) {
    v[e] = *reinterpret_cast<const Word*>(e < kHalf ? p + e * step : q + (e - kHalf) * step);
  }
}
template <int kPack, class Word>
OFL_HOST_DEVICE void LoadSteppedUnit(const char* p, const char* q, int64_t step, RawUnit& raw) {
  Word v[kPack];
  LoadStepped(p, q, step, v);
  memcpy(&raw, v, sizeof(v));
}
// The same of elements that are wider than the compute type, float64 or int64, which are converted.
template <class C>
OFL_HOST_DEVICE void LoadWide(DType dtype, const char* p, const char* q, int64_t step,
                              RawUnit& raw) {
  constexpr int kPack = kPassPack<C>;
  uint64_t bits[kPack];
  LoadStepped(p, q, step, bits);
  Unit<C> unit;
#pragma unroll
  for (int e = 0; e < kPack; ++e) {
    double real;
    memcpy(&real, &bits[e], sizeof(real));
    unit.v[e] = dtype == DType::kFloat64 ? static_cast<C>(real)
                                         : static_cast<C>(static_cast<int64_t>(bits[e]));
  }
  memcpy(&raw, &unit, sizeof(raw));
}
template <class C>
OFL_HOST_DEVICE void HoldOne(C value, RawUnit& raw) {
  Unit<C> unit;
#pragma unroll
  for (C& v : unit.v) v = value;
  memcpy(&raw, &unit, sizeof(raw));
}

// A dense unit of elements of a size.
template <class C>
OFL_HOST_DEVICE void LoadPacked(int bytes, const char* p, const char* q, bool halved,
                                RawUnit& raw) {
  constexpr int kPack = kPassPack<C>;
  if (bytes == static_cast<int>(sizeof(C))) return LoadHalves<32>(p, q, raw);
  if constexpr (sizeof(C) == 8) {
    if (bytes == 4) return halved ? LoadHalves<16>(p, q, raw) : LoadBytes<16>(p, raw.w);
  }
  if (bytes == 2) return halved ? LoadHalves<2 * kPack>(p, q, raw) : LoadBytes<2 * kPack>(p, raw.w);
  if constexpr (sizeof(C) == 8) {
    if (halved) return LoadSteppedUnit<kPack, uint8_t>(p, q, 1, raw);
  } else {
    if (halved) return LoadHalves<kPack>(p, q, raw);
  }
  LoadBytes<kPack>(p, raw.w);
}

// The unit of input i whose halves begin at p and q, not yet converted unless Pass::held says so.
template <class C, int N>
OFL_HOST_DEVICE void LoadUnit(const Pass<N>& pass, int i, const char* p, const char* q, bool halved,
                              RawUnit& raw) {
  constexpr int kPack = kPassPack<C>;
  const DType dtype = pass.dtype[i];
  if (pass.form[i] == Form::kValue) {
    C value;
    memcpy(&value, &pass.value[i], sizeof(C));
    return HoldOne(value, raw);
  }
  if (pass.form[i] == Form::kNumber) return HoldOne(LoadOne<C>(dtype, p), raw);
  const int bytes = pass.bytes[i];
  const int64_t step = pass.step[i];
  if constexpr (sizeof(C) < 8) {
    if (bytes == 8) return LoadWide<C>(dtype, p, q, step, raw);
  }
  if (pass.form[i] == Form::kPacked) return LoadPacked<C>(bytes, p, q, halved, raw);
  if (bytes == 2) return LoadSteppedUnit<kPack, uint16_t>(p, q, step, raw);
  if (bytes == 4) return LoadSteppedUnit<kPack, uint32_t>(p, q, step, raw);
  if constexpr (sizeof(C) == 8) {
    if (bytes == 8) return LoadSteppedUnit<kPack, uint64_t>(p, q, step, raw);
  }
  LoadSteppedUnit<kPack, uint8_t>(p, q, step, raw);
}

// The unit of input i at byte `offset` of a plain pass; its second half is `second` bytes on, where
// it is 32 bytes.
template <class C, int N>
OFL_HOST_DEVICE void LoadPlain(const Pass<N>& pass, int i, uint64_t offset, uint32_t second,
                               RawUnit& raw) {
  if (pass.form[i] == Form::kValue) {
    C value;
    memcpy(&value, &pass.value[i], sizeof(C));
    return HoldOne(value, raw);
  }
  using Word = AlignedWord<16>;
  const char* p = pass.in[i] + offset;
  const Word first = *reinterpret_cast<const Word*>(p);
  memcpy(raw.w, &first, sizeof(first));
  if (pass.halved) {
    const Word rest = *reinterpret_cast<const Word*>(p + second);
    memcpy(raw.w + 4, &rest, sizeof(rest));
  }
}

// A unit that LoadUnit gave, in the compute type.
template <class C>
OFL_HOST_DEVICE Unit<C> WidenUnit(DType held, DType round, const RawUnit& raw) {
  constexpr int kPack = kPassPack<C>;
  Unit<C> unit;
  VisitHeldType<C>(held, [&](auto tag) {
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

// Stores results of kPack elements; p is at a boundary of the output, and where they are 32 bytes
// or more their second half goes to q.
template <int kPack, class R>
OFL_HOST_DEVICE void StoreUnit(DType dtype, char* p, char* q, const R (&y)[kPack]) {
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
    StoreBytes<kPack* static_cast<int>(sizeof(T))>(p, q, w);
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
