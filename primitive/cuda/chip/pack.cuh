// SPDX-License-Identifier: Apache-2.0
//
// Packs: N elements that move through memory in one access of up to 16 bytes.
//
//   Pack<__half, 8> p = LoadPack<8>(x + i);   // one 16-byte load where x + i is aligned
#pragma once

#include <string.h>

#include "primitive/cuda/chip/convert.cuh"

namespace oneflow_lite::cuda {

inline constexpr int kPackBytes = 16;
template <class T>
inline constexpr int kPackSize = kPackBytes / static_cast<int>(sizeof(T));

template <class T, int N>
struct Pack {
  T v[N];
};

// Bytes from the last 16-byte boundary to p.
OFL_DEVICE unsigned BytesPastBoundary(const void* p) {
  return static_cast<unsigned>(reinterpret_cast<uintptr_t>(p)) & (kPackBytes - 1);
}
// Elements from p to the next 16-byte boundary; p is aligned to its element.
template <class T>
OFL_DEVICE int ElementsToBoundary(const T* p) {
  const unsigned past = static_cast<unsigned>(reinterpret_cast<uintptr_t>(p)) & (kPackBytes - 1);
  return static_cast<int>((kPackBytes - past) % kPackBytes / sizeof(T));
}

// The type of one memory access of so many bytes; void where there is none.
template <int kBytes>
struct WordOf {
  template <int kSize, class Word, class Other>
  using If = std::conditional_t<kBytes == kSize, Word, Other>;
  using type = If<16, uint4, If<8, uint2, If<4, uint32_t, If<2, uint16_t, void>>>>;
};

template <class Word>
OFL_DEVICE bool IsAlignedFor(const void* p) {
  return (reinterpret_cast<uintptr_t>(p) & (sizeof(Word) - 1)) == 0;
}

// Makes the compiler hold a pack of 16-bit elements as 4-byte words and forget what it computed
// from it so far. It would otherwise spread the elements over a register each, and carry a row that
// stays in registers along in the wider compute type as well. Nothing for wider elements.
template <class T, int N>
OFL_DEVICE void KeepPacked(Pack<T, N>& pack) {
  if constexpr (sizeof(T) < 4 && sizeof(pack) % 4 == 0) {
    uint32_t words[sizeof(pack) / 4];
    memcpy(words, &pack, sizeof(pack));
#pragma unroll
    for (uint32_t& word : words) asm volatile("" : "+r"(word));
    memcpy(&pack, words, sizeof(pack));
  }
}

OFL_DEVICE void PinRegister(uint32_t& v) { asm volatile("" : "+r"(v)); }
OFL_DEVICE void PinRegister(float& v) { asm volatile("" : "+f"(v)); }
OFL_DEVICE void PinRegister(double& v) { asm volatile("" : "+d"(v)); }
template <class T>
OFL_DEVICE void PinRegister(T&) {}

// Two 16-bit floats of a word.
template <class T>
OFL_DEVICE float2 WidenPair(uint32_t word) {
  if constexpr (std::is_same_v<T, __half>) {
    __half2 pair;
    memcpy(&pair, &word, sizeof(pair));
    return __half22float2(pair);
  } else {  // a bfloat16 is the upper half of a float
    return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
  }
}

// A pack as it waits in registers: 16-bit elements two to a register, others as they are.
template <class T, int N>
struct StowedPack {
  static constexpr bool kWords = sizeof(T) < 4 && N % 2 == 0;
  std::conditional_t<kWords, Pack<uint32_t, (N * sizeof(T) + 3) / 4>, Pack<T, N>> held;

  OFL_DEVICE static StowedPack Of(const Pack<T, N>& pack) {
    StowedPack stowed;
    memcpy(&stowed.held, &pack, sizeof(pack));
    return stowed;
  }
  // The instructions that give the pack its value stay in front of this place.
  OFL_DEVICE void Pin() {
#pragma unroll
    for (auto& v : held.v) PinRegister(v);
  }
  // The compiler keeps nothing that the caller computes from the result for the next Get.
  OFL_DEVICE Pack<T, N> Get() const {
    Pack<T, N> pack;
    memcpy(&pack, &held, sizeof(pack));
    KeepPacked(pack);
    return pack;
  }
  // Get, as ComputeType<T>, word by word: a pack that waits from one turn of a loop to the next
  // would else do so in a register per element.
  OFL_DEVICE Pack<ComputeType<T>, N> GetWide() const {
    if constexpr (kWords) {
      Pack<float, N> wide;
#pragma unroll
      for (int i = 0; i < N; i += 2) {
        const float2 pair = WidenPair<T>(held.v[i / 2]);
        wide.v[i] = pair.x, wide.v[i + 1] = pair.y;
      }
      return wide;
    } else {
      return held;
    }
  }
};

template <int N, class T>
OFL_DEVICE Pack<T, N> LoadEach(const T* p) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.v[i] = p[i];
  return pack;
}

template <class T, int N>
OFL_DEVICE Pack<T, 2 * N> BothHalves(const Pack<T, N>& low, const Pack<T, N>& high) {
  Pack<T, 2 * N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.v[i] = low.v[i], pack.v[N + i] = high.v[i];
  return pack;
}

// N elements from p on, which is aligned to all of them, or to 16 bytes.
template <int N, class T>
OFL_DEVICE Pack<T, N> LoadAlignedPack(const T* p) {
  if constexpr (N * sizeof(T) > kPackBytes) {
    return BothHalves(LoadAlignedPack<N / 2>(p), LoadAlignedPack<N / 2>(p + N / 2));
  } else {
    using Word = typename WordOf<N * sizeof(T)>::type;
    Pack<T, N> pack;
    const Word word = *reinterpret_cast<const Word*>(p);
    memcpy(&pack, &word, sizeof(Word));
    return pack;
  }
}

// N elements from p on: accesses of up to 16 bytes where p is aligned to them, else element by
// element.
template <int N, class T>
OFL_DEVICE Pack<T, N> LoadPack(const T* p) {
  using Word = typename WordOf<N * sizeof(T)>::type;
  if constexpr (N > 1 && !std::is_void_v<Word>) {
    if constexpr (sizeof(T) < 4) {
      // Both branches give a word: if they gave elements, those would take N registers.
      Pack<T, N> pack;
      Word word;
      if (IsAlignedFor<Word>(p)) {
        word = *reinterpret_cast<const Word*>(p);
      } else {
        pack = LoadEach<N>(p);
        memcpy(&word, &pack, sizeof(Word));
      }
      memcpy(&pack, &word, sizeof(Word));
      KeepPacked(pack);
      return pack;
    } else if (IsAlignedFor<Word>(p)) {
      return LoadAlignedPack<N>(p);
    }
  }
  if constexpr (N * sizeof(T) > kPackBytes) {
    return BothHalves(LoadPack<N / 2>(p), LoadPack<N / 2>(p + N / 2));
  } else {
    return LoadEach<N>(p);
  }
}

// The 16 bytes that begin `past` < 16 bytes into low, and reach into high.
template <class T, int N>
OFL_DEVICE Pack<T, N> ShiftPacks(const Pack<T, N>& low, const Pack<T, N>& high, unsigned past) {
  static_assert(N * sizeof(T) == kPackBytes, "");
  uint32_t w[8];
  memcpy(w, &low, kPackBytes);
  memcpy(w + 4, &high, kPackBytes);
#pragma unroll
  for (int i = 0; i < 6; ++i) w[i] = past & 8 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) w[i] = past & 4 ? w[i + 1] : w[i];
#pragma unroll
  for (int i = 0; i < 4; ++i) w[i] = __funnelshift_r(w[i], w[i + 1], 8 * (past & 3));
  Pack<T, N> pack;
  memcpy(&pack, w, sizeof(pack));
  return pack;
}

// N elements from p on at any alignment, where the N elements before and after may be read too: two
// aligned accesses, shifted into place.
template <int N, class T>
OFL_DEVICE Pack<T, N> LoadShiftedPack(const T* p) {
  const unsigned past = BytesPastBoundary(p);
  const auto* aligned = reinterpret_cast<const T*>(reinterpret_cast<const char*>(p) - past);
  const Pack<T, N> low = LoadAlignedPack<N>(aligned);
  Pack<T, N> high = {};
  if (past != 0) high = LoadAlignedPack<N>(aligned + N);
  return ShiftPacks(low, high, past);
}

// An assignment would do, but the compiler cuts one of packed 16-bit values into 4-byte stores,
// which run at two thirds of the speed.
OFL_DEVICE void StoreWord(uint4* p, const uint4& v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(p)), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
OFL_DEVICE void StoreWord(uint2* p, const uint2& v) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};"
               :
               : "l"(__cvta_generic_to_global(p)), "r"(v.x), "r"(v.y)
               : "memory");
}
template <class Word>
OFL_DEVICE void StoreWord(Word* p, const Word& v) {
  *p = v;
}

template <int N, class T>
OFL_DEVICE void StoreAlignedPack(T* p, const Pack<T, N>& pack) {
  using Word = typename WordOf<N * sizeof(T)>::type;
  Word word;
  memcpy(&word, &pack, sizeof(Word));
  StoreWord(reinterpret_cast<Word*>(p), word);
}

// Stores N elements to global memory from p on, as LoadPack loads them.
template <int N, class T>
OFL_DEVICE void StorePack(T* p, const Pack<T, N>& pack) {
  using Word = typename WordOf<N * sizeof(T)>::type;
  if constexpr (N > 1 && !std::is_void_v<Word>) {
    if (IsAlignedFor<Word>(p)) return StoreAlignedPack<N>(p, pack);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) p[i] = pack.v[i];
}

// Conversion of a whole pack; two values at a time to the 16-bit floats.
template <class To, class From, int N>
OFL_DEVICE Pack<To, N> ConvertPack(const Pack<From, N>& x) {
  Pack<To, N> y;
  if constexpr (N % 2 == 0 && std::is_same_v<From, float> && std::is_same_v<To, __half>) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const __half2 pair = __floats2half2_rn(x.v[i], x.v[i + 1]);
      memcpy(&y.v[i], &pair, sizeof(pair));
    }
  } else if constexpr (N % 2 == 0 && std::is_same_v<From, float> &&
                       std::is_same_v<To, __nv_bfloat16>) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(x.v[i], x.v[i + 1]);
      memcpy(&y.v[i], &pair, sizeof(pair));
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) y.v[i] = ConvertTo<To>(x.v[i]);
  }
  return y;
}

template <class C, int N>
OFL_DEVICE Pack<C, N>& operator+=(Pack<C, N>& x, const Pack<C, N>& other) {
#pragma unroll
  for (int i = 0; i < N; ++i) x.v[i] += other.v[i];
  return x;
}
template <class C, int N>
OFL_DEVICE Pack<C, N>& operator*=(Pack<C, N>& x, const Pack<C, N>& other) {
#pragma unroll
  for (int i = 0; i < N; ++i) x.v[i] *= other.v[i];
  return x;
}
template <class C, int N>
OFL_DEVICE Pack<C, N>& operator*=(Pack<C, N>& x, C scale) {
#pragma unroll
  for (C& v : x.v) v *= scale;
  return x;
}
template <int N, class T>
OFL_DEVICE Pack<T, N> FilledPack(T value) {
  Pack<T, N> pack;
#pragma unroll
  for (T& v : pack.v) v = value;
  return pack;
}

// Get, converted. Two bfloat16 of a word take two instructions to be floats, one by one three.
template <class To, class T, int N>
OFL_DEVICE Pack<To, N> GetAs(const StowedPack<T, N>& stowed) {
  const Pack<T, N> pack = stowed.Get();
  if constexpr (std::is_same_v<T, __nv_bfloat16> && std::is_same_v<To, float> && N % 2 == 0) {
    return StowedPack<T, N>::Of(pack).GetWide();
  } else {
    return ConvertPack<To>(pack);
  }
}

}  // namespace oneflow_lite::cuda
