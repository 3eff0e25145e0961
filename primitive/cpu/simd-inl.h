// SPDX-License-Identifier: Apache-2.0
//
// Vectors of the compute type over memory of any of the floating element types,
// exp and log on them, and loops over vectors.
// Compiled once per instruction set by Highway's foreach_target.h, which the including file must
// have included; everything lives in oneflow_lite::HWY_NAMESPACE.
//
//   const TagOf<T> d;
//   auto v = LoadFrom(d, x + i);           // widened to float for the 16-bit floats
//   StoreTo(ExpOf(d, v), d, y + i);        // rounded once
#if defined(OFL_PRIMITIVE_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OFL_PRIMITIVE_CPU_SIMD_INL_H_
#undef OFL_PRIMITIVE_CPU_SIMD_INL_H_
#else
#define OFL_PRIMITIVE_CPU_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "oneflow_lite/core/dtype.h"
#include "primitive/cpu/exp_log-inl.h"
#include "primitive/cpu/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Whether the target converts float16 in hardware, and whether it can mask loads and stores.
#undef OFL_SIMD_HAS_F16
#undef OFL_SIMD_HAS_MASKS
#define OFL_SIMD_HAS_F16 (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)
#define OFL_SIMD_HAS_MASKS (HWY_TARGET == HWY_AVX3)

template <class T>
using TagOf = hn::ScalableTag<ComputeOf<T>>;

// ---- Memory <-> vectors ----

template <class D, class T>
HWY_INLINE hn::Vec<D> LoadFrom(D d, const T* HWY_RESTRICT p) {
  return hn::LoadU(d, p);
}
template <class D, class T>
HWY_INLINE void StoreTo(hn::Vec<D> v, D d, T* HWY_RESTRICT p) {
  hn::StoreU(v, d, p);
}

template <class D>
HWY_INLINE hn::Vec<D> FromBFloat16(D d, hn::Vec<hn::Rebind<uint16_t, D>> bits) {
  const hn::Rebind<uint32_t, D> du;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
}
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> ToBFloat16(D d, hn::Vec<D> v) {
  const hn::Rebind<uint32_t, D> du;
  const hn::Rebind<int32_t, D> di;
  const auto u = hn::BitCast(du, v);
  const auto upper = hn::ShiftRight<16>(u);
  const auto odd = hn::And(upper, hn::Set(du, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(u, hn::Add(odd, hn::Set(du, 0x7fff))));
  const auto quiet = hn::Or(upper, hn::Set(du, 0x40));
  const auto chosen = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
  return hn::DemoteTo(hn::Rebind<uint16_t, D>(), hn::BitCast(di, chosen));
}

template <class D>
HWY_INLINE hn::Vec<D> LoadFrom(D d, const bfloat16* HWY_RESTRICT p) {
  const hn::Rebind<uint16_t, D> du16;
  return FromBFloat16(d, hn::LoadU(du16, &p->bits));
}
template <class D>
HWY_INLINE void StoreTo(hn::Vec<D> v, D d, bfloat16* HWY_RESTRICT p) {
  const hn::Rebind<uint16_t, D> du16;
  hn::StoreU(ToBFloat16(d, v), du16, &p->bits);
}

template <class T>
constexpr bool kIsShortFloat = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;
#if OFL_SIMD_HAS_F16
// The bits of a 16-bit float, widened; and those of v, rounded.
template <class T, class D>
HWY_INLINE hn::Vec<D> FromShort(D d, hn::Vec<hn::Rebind<uint16_t, D>> bits) {
  if constexpr (std::is_same_v<T, bfloat16>) return FromBFloat16(d, bits);
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::BitCast(dh, bits));
}
template <class T, class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> ToShort(D d, hn::Vec<D> v) {
  if constexpr (std::is_same_v<T, bfloat16>) return ToBFloat16(d, v);
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::BitCast(hn::Rebind<uint16_t, D>(), hn::DemoteTo(dh, v));
}
#endif

template <class D>
HWY_INLINE hn::Vec<D> LoadFrom(D d, const float16* HWY_RESTRICT p) {
#if OFL_SIMD_HAS_F16
  return FromShort<float16>(d, hn::LoadU(hn::Rebind<uint16_t, D>(), &p->bits));
#else
  HWY_ALIGN float wide[hn::MaxLanes(D())];
  for (size_t i = 0; i < hn::Lanes(d); ++i) wide[i] = static_cast<float>(p[i]);
  return hn::Load(d, wide);
#endif
}
template <class D>
HWY_INLINE void StoreTo(hn::Vec<D> v, D d, float16* HWY_RESTRICT p) {
#if OFL_SIMD_HAS_F16
  hn::StoreU(ToShort<float16>(d, v), hn::Rebind<uint16_t, D>(), &p->bits);
#else
  HWY_ALIGN float wide[hn::MaxLanes(D())];
  hn::Store(v, d, wide);
  for (size_t i = 0; i < hn::Lanes(d); ++i) p[i] = float16(wide[i]);
#endif
}

// Without masks a part goes through memory by calls of memcpy: long, and not worth inlining.
#undef OFL_SIMD_PART
#if OFL_SIMD_HAS_MASKS
#define OFL_SIMD_PART HWY_INLINE
#else
#define OFL_SIMD_PART HWY_NOINLINE
#endif

// The first n < Lanes(d) elements at p; the lanes beyond hold `pad`. Reads nothing beyond.
template <class D, class T>
OFL_SIMD_PART hn::Vec<D> LoadPart(D d, const T* HWY_RESTRICT p, size_t n, hn::Vec<D> pad) {
  const auto mask = hn::FirstN(d, n);
#if OFL_SIMD_HAS_MASKS
  if constexpr (sizeof(T) == sizeof(hn::TFromD<D>)) {
    return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, p), pad);
  } else if constexpr (kIsShortFloat<T>) {
    const hn::Rebind<uint16_t, D> du16;
    const auto bits = hn::MaskedLoad(hn::FirstN(du16, n), du16, &p->bits);
    return hn::IfThenElse(mask, FromShort<T>(d, bits), pad);
  }
#endif
  T part[hn::MaxLanes(D())] = {};
  std::memcpy(static_cast<void*>(part), p, std::min(n, hn::MaxLanes(D())) * sizeof(T));
  return hn::IfThenElse(mask, LoadFrom(d, part), pad);
}
// Stores the first n < Lanes(d) lanes; writes nothing beyond.
template <class D, class T>
OFL_SIMD_PART void StorePart(hn::Vec<D> v, D d, T* HWY_RESTRICT p, size_t n) {
#if OFL_SIMD_HAS_MASKS
  if constexpr (sizeof(T) == sizeof(hn::TFromD<D>)) {
    return hn::BlendedStore(v, hn::FirstN(d, n), d, p);
  } else if constexpr (kIsShortFloat<T>) {
    const hn::Rebind<uint16_t, D> du16;
    return hn::BlendedStore(ToShort<T>(d, v), hn::FirstN(du16, n), du16, &p->bits);
  }
#endif
  T part[hn::MaxLanes(D())];
  StoreTo(v, d, part);
  std::memcpy(static_cast<void*>(p), part, std::min(n, hn::MaxLanes(D())) * sizeof(T));
}

// ---- Loops ----

template <int k>
using Slot = std::integral_constant<int, k>;

// Calls f(i, count, Slot) over [0, n) vector by vector, four per turn: `count` is Lanes(d), a
// constant once inlined, except in the one last call where fewer elements are left. Slots 0 to 3
// tell the four apart, so that a reduction can keep four accumulators.
template <class D, class F>
HWY_INLINE void ForVectors(D d, size_t n, F f) {
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    f(i, lanes, Slot<0>());
    f(i + lanes, lanes, Slot<1>());
    f(i + 2 * lanes, lanes, Slot<2>());
    f(i + 3 * lanes, lanes, Slot<3>());
  }
  for (; i + lanes <= n; i += lanes) f(i, lanes, Slot<0>());
  if (i < n) f(i, n - i, Slot<1>());
}

// Calls f(i, count) likewise, one vector per turn: for what keeps no accumulators, and is several
// times as long as the loop's own instructions. Half the code of ForVectors, and of its build time.
template <class D, class F>
HWY_INLINE void ForEachVector(D d, size_t n, F f) {
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) f(i, lanes);
  if (i < n) f(i, n - i);
}

// What a lambda passed to ForVectors carries: the instruction set, and that it is inlined.
#undef OFL_SIMD_LAMBDA
#define OFL_SIMD_LAMBDA HWY_ATTR __attribute__((always_inline))

// Loads or stores `count` elements, all of a vector's or fewer.
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadUpTo(D d, const T* HWY_RESTRICT p, size_t count, hn::Vec<D> pad) {
  return count == hn::Lanes(d) ? LoadFrom(d, p) : LoadPart(d, p, count, pad);
}
template <class D, class T>
HWY_INLINE void StoreUpTo(hn::Vec<D> v, D d, T* HWY_RESTRICT p, size_t count) {
  if (count == hn::Lanes(d)) {
    StoreTo(v, d, p);
  } else {
    StorePart(v, d, p, count);
  }
}

// Stores a full vector past the caches, where the type has a vector of its own. Precondition: p is
// aligned to the vector. hwy::FlushStream() must follow the last one.
template <class D, class T>
HWY_INLINE void StreamTo(hn::Vec<D> v, D d, T* HWY_RESTRICT p) {
  const hn::Rebind<uint16_t, D> du16;
  if constexpr (hn::MaxLanes(D()) * sizeof(T) < 16) {
    StoreTo(v, d, p);  // Highway would write 16 bytes
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    hn::Stream(ToBFloat16(d, v), du16, &p->bits);
  } else if constexpr (std::is_same_v<T, float16>) {
#if OFL_SIMD_HAS_F16
    hn::Stream(ToShort<float16>(d, v), du16, &p->bits);
#else
    StoreTo(v, d, p);
#endif
  } else {
    hn::Stream(v, d, p);
  }
}

// The elements of [0, n) at y that lie in whole lines of memory, which alone are worth storing past
// the caches: a line of which one half goes past the cache and the other through it is read and
// written twice. `unit` elements, a power of two, are stored at once.
struct WholeLines {
  size_t begin, end;
};
template <class T>
HWY_INLINE WholeLines FindWholeLines(const T* y, size_t n, size_t unit) {
  const size_t line = std::max<size_t>(unit, 64 / sizeof(T));
  const size_t past = reinterpret_cast<uintptr_t>(y) / sizeof(T) % line;
  const size_t begin = std::min(n, past == 0 ? 0 : line - past);
  return {begin, begin + (n - begin) / line * line};
}

// y[i] = f(i, count), vector by vector; with kStream past the caches where lines are whole.
template <bool kStream, class D, class T, class F>
HWY_INLINE void Generate(D d, size_t n, T* y, F f) {
  const auto store = [&](size_t begin, size_t end) OFL_SIMD_LAMBDA {
    ForEachVector(d, end - begin, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
      StoreUpTo(f(begin + i, count), d, y + begin + i, count);
    });
  };
  if constexpr (kStream) {
    const WholeLines lines = FindWholeLines(y, n, hn::Lanes(d));
    store(0, lines.begin);
    for (size_t i = lines.begin; i + hn::Lanes(d) <= lines.end; i += hn::Lanes(d)) {
      StreamTo(f(i, hn::Lanes(d)), d, y + i);
    }
    store(lines.end, n);
  } else {
    store(0, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#endif  // OFL_PRIMITIVE_CPU_SIMD_INL_H_
