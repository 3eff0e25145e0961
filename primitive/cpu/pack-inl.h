// SPDX-License-Identifier: Apache-2.0
//
// Packs: as many elements as fill a vector, of bfloat16 two vectors of the compute type. Those at
// even places of memory and those at odd ones take one instruction each to widen, and whole
// vectors are loaded and stored. For the other types a pack is one vector of the compute type.
// Compiled once per instruction set, like simd-inl.h.
//
//   ForPacks<T>(n, [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
//     const auto v = LoadPack(x + i, count, zero);
//     StorePack<false>(EachPart([&](auto a) OFL_SIMD_LAMBDA { return hn::Mul(a, a); }, v),
//                      y + i, count);
//   });
#if defined(OFL_PRIMITIVE_CPU_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OFL_PRIMITIVE_CPU_PACK_INL_H_
#undef OFL_PRIMITIVE_CPU_PACK_INL_H_
#else
#define OFL_PRIMITIVE_CPU_PACK_INL_H_
#endif

#include <utility>

#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {

template <class T>
constexpr int kPackParts = std::is_same_v<T, bfloat16> ? 2 : 1;

template <class T>
struct Pack {
  hn::Vec<TagOf<T>> part[kPackParts<T>];
};

template <class T>
HWY_INLINE size_t PackSize() {
  return kPackParts<T> * hn::Lanes(TagOf<T>());
}

// A multiple of it; n at least.
template <class T>
HWY_INLINE size_t RoundUpToPacks(size_t n) {
  const size_t size = PackSize<T>();
  return (n + size - 1) / size * size;
}

// {f(a.part[k], b.part[k] ...)}
template <class F, class P, class... Ps>
HWY_INLINE P EachPart(F f, P a, Ps... b) {
  P out;
  out.part[0] = f(a.part[0], b.part[0]...);
  if constexpr (sizeof(out.part) > sizeof(out.part[0])) out.part[1] = f(a.part[1], b.part[1]...);
  return out;
}
template <class T>
HWY_INLINE Pack<T> SetPack(hn::Vec<TagOf<T>> v) {
  return EachPart([&](auto) OFL_SIMD_LAMBDA { return v; }, Pack<T>());
}

// `count` elements, all of a pack's or fewer; those beyond count are `pad`, a value that T has.
template <class T>
HWY_INLINE Pack<T> LoadPack(const T* HWY_RESTRICT p, size_t count, hn::Vec<TagOf<T>> pad) {
  const TagOf<T> d;
  if constexpr (kPackParts<T> == 1) {
    return {{LoadUpTo(d, p, count, pad)}};
  } else {
    const hn::RebindToUnsigned<TagOf<T>> du;
    const hn::Repartition<uint16_t, TagOf<T>> du16;
    const auto upper = hn::Set(du, 0xffff0000u);
    auto bits = hn::Undefined(du16);
    if (count == PackSize<T>()) {
      bits = hn::LoadU(du16, &p->bits);
    } else {
      const auto pad_bits = hn::BitCast(du, pad);
      const auto pads = hn::Or(pad_bits, hn::ShiftRight<16>(pad_bits));
      bits = LoadPart(du16, &p->bits, count, hn::BitCast(du16, pads));
    }
    const auto pair = hn::BitCast(du, bits);
    return {{hn::BitCast(d, hn::ShiftLeft<16>(pair)), hn::BitCast(d, hn::And(pair, upper))}};
  }
}

// Rounded to nearest, ties to even, in the upper 16 bits. A NaN's lower 16 bits must be 0: so they
// are in any that arithmetic made, or took over from a bfloat16.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> RoundedUpper(D, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> du;
  const auto u = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 1));
  return hn::Add(hn::Add(u, hn::Set(du, 0x7fff)), odd);
}

// Stores the first `count` elements, with kStream whole packs past the caches (then p is aligned
// to them and hwy::FlushStream() must follow the last one). NaNs: as RoundedUpper says.
template <bool kStream, class T>
HWY_INLINE void StorePack(Pack<T> v, T* HWY_RESTRICT p, size_t count) {
  const TagOf<T> d;
  const bool whole = count == PackSize<T>();
  if constexpr (kPackParts<T> == 1) {
    if (kStream && whole) return StreamTo(v.part[0], d, p);
    StoreUpTo(v.part[0], d, p, count);
  } else {
    const hn::Repartition<uint16_t, TagOf<T>> du16;
    const auto even = hn::BitCast(du16, hn::ShiftRight<16>(RoundedUpper(d, v.part[0])));
    const auto bits = hn::OddEven(hn::BitCast(du16, RoundedUpper(d, v.part[1])), even);
    if (kStream && whole) return hn::Stream(bits, du16, &p->bits);
    StoreUpTo(bits, du16, &p->bits, count);
  }
}

// The parts one after the other, for LoadParts to read at the same places; of bfloat16 always all.
template <class T>
HWY_INLINE void StoreParts(Pack<T> v, ComputeOf<T>* p, size_t count) {
  const TagOf<T> d;
  if constexpr (kPackParts<T> == 1) {
    StoreUpTo(v.part[0], d, p, count);
  } else {
    hn::StoreU(v.part[0], d, p);
    hn::StoreU(v.part[1], d, p + hn::Lanes(d));
  }
}
template <class T>
HWY_INLINE Pack<T> LoadParts(const ComputeOf<T>* p, size_t count) {
  const TagOf<T> d;
  if constexpr (kPackParts<T> == 1) {
    return {{LoadUpTo(d, p, count, hn::Zero(d))}};
  } else {
    return {{hn::LoadU(d, p), hn::LoadU(d, p + hn::Lanes(d))}};
  }
}

// Calls f(i, count, Slot) over [0, n) like ForVectors, pack by pack.
template <class T, class F>
HWY_INLINE void ForPacks(size_t n, F f) {
  const size_t size = PackSize<T>();
  size_t i = 0;
  for (; i + 4 * size <= n; i += 4 * size) {
    f(i, size, Slot<0>());
    f(i + size, size, Slot<1>());
    f(i + 2 * size, size, Slot<2>());
    f(i + 3 * size, size, Slot<3>());
  }
  for (; i + size <= n; i += size) f(i, size, Slot<0>());
  if (i < n) f(i, n - i, Slot<1>());
}

// A reduction's four accumulators as one vector.
template <class T, class Merge>
HWY_INLINE hn::Vec<TagOf<T>> Merged(Merge merge, const Pack<T> (&s)[4]) {
  const auto all = EachPart(merge, EachPart(merge, s[0], s[1]), EachPart(merge, s[2], s[3]));
  if constexpr (kPackParts<T> == 1) return all.part[0];
  return merge(all.part[0], all.part[kPackParts<T> - 1]);
}

// The sum of what add(i, count, sum) adds to `sum`, over [0, n). Blocks of 128 packs are summed in
// the compute type, at most 32 terms per lane, and the blocks in double.
template <class T, class Add>
HWY_INLINE double SumPacks(size_t n, Add add) {
  const TagOf<T> d;
  const size_t block = 128 * PackSize<T>();
  double total = 0;
  for (size_t begin = 0; begin < n; begin += block) {
    Pack<T> s[4];
    std::fill_n(s, 4, SetPack<T>(hn::Zero(d)));
    ForPacks<T>(std::min(block, n - begin), [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
      s[slot] = add(begin + i, count, s[slot]);
    });
    const auto plus = [](auto a, auto b) OFL_SIMD_LAMBDA { return hn::Add(a, b); };
    total += hn::GetLane(hn::SumOfLanes(d, Merged<T>(plus, s)));
  }
  return total;
}

// Elements between p and the pack's alignment before it.
template <class T>
HWY_INLINE size_t PastAlignment(const T* p) {
  return reinterpret_cast<uintptr_t>(p) / sizeof(T) % PackSize<T>();
}

// y[i] = f(i, count), pack by pack; with kStream past the caches where lines are whole. Long rows
// begin with a partial pack that brings y to its alignment. With kFours four packs are loaded
// before the first of them is stored, for functions of few instructions: loads of two operands
// between stores cost a quarter of the time where the caches are the limit.
template <class T, bool kStream, bool kFours = false, class F>
HWY_INLINE void GeneratePacks(size_t n, T* y, F f) {
  const size_t size = PackSize<T>();
  WholeLines at{0, n};
  if constexpr (kStream) {
    at = FindWholeLines(y, n, size);
  } else if (n >= 16 * size && PastAlignment(y) != 0) {
    at.begin = size - PastAlignment(y);
  }
  const auto store = [&](size_t i, size_t end) OFL_SIMD_LAMBDA {
    for (; i + size <= end; i += size) StorePack<false>(f(i, size), y + i, size);
    if (i < end) StorePack<false>(f(i, end - i), y + i, end - i);
  };
  size_t i = at.begin;
  if constexpr (kFours) {
    for (; i + 4 * size <= at.end; i += 4 * size) {
      const Pack<T> four[4] = {f(i, size), f(i + size, size), f(i + 2 * size, size),
                               f(i + 3 * size, size)};
#pragma GCC unroll 4
      for (size_t k = 0; k < 4; ++k) StorePack<kStream>(four[k], y + i + k * size, size);
    }
    // What is left at both ends, by one loop: f is compiled once less for each of its calls.
    for (size_t end = n; end > 0; i = 0, end = std::exchange(at.begin, 0)) store(i, end);
  } else {
    store(0, at.begin);
    if constexpr (kStream) {
      // With this condition GCC counts i alone, without a pointer to y beside it, which took 5 %
      // more by two threads.
      for (; i + size <= at.end; i += size) StorePack<true>(f(i, size), y + i, size);
    }
    store(i, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#endif  // OFL_PRIMITIVE_CPU_PACK_INL_H_
