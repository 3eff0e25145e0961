// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/key_loops.h"

#include <algorithm>
#include <bit>

#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/key_loops.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// As KeyCode::Encode has it.
template <bool kFloat, class D>
HWY_INLINE hn::Vec<D> KeysOf(D d, const KeyCode& code, hn::Vec<D> raw) {
  using Key = hn::TFromD<D>;
  const auto most = hn::Set(d, code.Most<Key>()), sign = hn::Set(d, code.Sign<Key>());
  auto key = raw;
  if constexpr (kFloat) {
    const auto infinity = hn::Set(d, static_cast<Key>(code.infinity));
    const auto magnitude = hn::AndNot(sign, raw);
    const auto is_negative = hn::Eq(hn::And(raw, sign), sign);
    key = hn::IfThenElse(is_negative, hn::AndNot(raw, most), hn::Or(raw, sign));
    key = hn::IfThenElse(hn::Eq(magnitude, hn::Zero(d)), sign, key);
    key = hn::IfThenElse(hn::Gt(magnitude, infinity), most, key);
  } else if (code.is_signed) {
    key = hn::Xor(raw, sign);
  }
  return code.descending ? hn::AndNot(key, most) : key;
}

template <bool kFloat, class Raw, class Key>
void Encode(const KeyCode& code, int64_t n, const Raw* x, Key* keys) {
  const hn::ScalableTag<Key> d;
  const hn::Rebind<Raw, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto raw = hn::Undefined(d);
    if constexpr (sizeof(Raw) == sizeof(Key)) {
      raw = hn::LoadU(d, x + i);
    } else {
      raw = hn::PromoteTo(d, hn::LoadU(narrow, x + i));
    }
    hn::StoreU(KeysOf<kFloat>(d, code, raw), d, keys + i);
  }
  for (; i < n; ++i) keys[i] = code.Encode(static_cast<Key>(x[i]));
}
template <class Raw, class Key>
void EncodeAny(const KeyCode& code, int64_t n, const void* x_data, Key* keys) {
  const Raw* x = static_cast<const Raw*>(x_data);
  if constexpr (sizeof(Raw) > 1) {
    if (code.is_float) return Encode<true>(code, n, x, keys);
  }
  Encode<false>(code, n, x, keys);
}

// How many of n keys are below each of three bounds that do not fall.
template <class Key>
struct Below {
  int64_t count[3];

  HWY_INLINE Below(const Key* keys, int64_t n, const Key (&bounds)[3]) : count{} {
    const hn::ScalableTag<Key> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto a = hn::Set(d, bounds[0]), b = hn::Set(d, bounds[1]), c = hn::Set(d, bounds[2]);
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      const auto v = hn::LoadU(d, keys + i);
      count[0] += static_cast<int64_t>(hn::CountTrue(d, hn::Lt(v, a)));
      count[1] += static_cast<int64_t>(hn::CountTrue(d, hn::Lt(v, b)));
      count[2] += static_cast<int64_t>(hn::CountTrue(d, hn::Lt(v, c)));
    }
    for (; i < n; ++i) {
      for (int k = 0; k < 3; ++k) count[k] += keys[i] < bounds[k];
    }
  }
};

template <class Key>
int Differing(const Key* keys, int64_t n) {
  const hn::ScalableTag<Key> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto first = hn::Set(d, keys[0]);
  auto all = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) all = hn::Or(all, hn::Xor(hn::LoadU(d, keys + i), first));
  HWY_ALIGN Key of_lanes[hn::MaxLanes(d)];
  hn::Store(all, d, of_lanes);
  Key differ = 0;
  for (int64_t k = 0; k < lanes; ++k) differ |= of_lanes[k];
  for (; i < n; ++i) differ |= keys[i] ^ keys[0];
  return static_cast<int>(std::bit_width(differ));
}

// The largest bound that no more than `rank` keys are below, two bits at a time. Few keys become
// whole vectors, by keys that no bound is above.
template <class Key>
cpu::Selected<Key> Ranked(const Key* given, int64_t count, int64_t rank) {
  constexpr int64_t kFew = 512;
  const hn::ScalableTag<Key> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int bits = (Differing(given, count) + 1) / 2 * 2;
  if (bits == 0) return {given[0], rank};
  HWY_ALIGN Key whole[kFew];
  const Key* keys = given;
  int64_t n = count;
  if (n % lanes != 0 && n < kFew) {
    n = (n + lanes - 1) / lanes * lanes;
    std::copy_n(given, count, whole);
    std::fill(whole + count, whole + n, static_cast<Key>(~Key{0}));
    keys = whole;
  }
  const Key differing = ~Key{0} >> (8 * static_cast<int>(sizeof(Key)) - bits);
  Key key = keys[0] & ~differing;
  int64_t before = 0;
  for (int low = bits - 2; low >= 0; low -= 2) {
    const Key step = Key{1} << low;
    const Key bounds[3] = {static_cast<Key>(key + step), static_cast<Key>(key + 2 * step),
                           static_cast<Key>(key + 3 * step)};
    const Below<Key> below(keys, n, bounds);
    for (int k = 0; k < 3; ++k) {
      const bool reached = below.count[k] <= rank;
      key = reached ? bounds[k] : key;
      before = reached ? below.count[k] : before;
    }
  }
  return {key, rank - before};
}

template <class Key>
int64_t Next(const Key* keys, int64_t begin, int64_t n, Key least, Key most) {
  const hn::ScalableTag<Key> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto low = hn::Set(d, least), width = hn::Set(d, static_cast<Key>(most - least));
  int64_t i = begin;
  for (; i + lanes <= n; i += lanes) {
    const auto found = hn::Not(hn::Gt(hn::Sub(hn::LoadU(d, keys + i), low), width));
    if (!hn::AllFalse(d, found)) return i + static_cast<int64_t>(hn::FindKnownFirstTrue(d, found));
  }
  while (i<n&& static_cast<Key>(keys[i] - least)> static_cast<Key>(most - least)) ++i;
  return i;
}

}  // namespace

void EncodeShort(const KeyCode& code, int64_t n, const void* x, uint32_t* keys) {
  if (code.bits == 8) return EncodeAny<uint8_t>(code, n, x, keys);
  if (code.bits == 16) return EncodeAny<uint16_t>(code, n, x, keys);
  EncodeAny<uint32_t>(code, n, x, keys);
}
void EncodeLong(const KeyCode& code, int64_t n, const void* x, uint64_t* keys) {
  EncodeAny<uint64_t>(code, n, x, keys);
}
cpu::Selected<uint32_t> RankedShort(const uint32_t* keys, int64_t n, int64_t rank) {
  return Ranked(keys, n, rank);
}
cpu::Selected<uint64_t> RankedLong(const uint64_t* keys, int64_t n, int64_t rank) {
  return Ranked(keys, n, rank);
}
int DifferingShort(const uint32_t* keys, int64_t n) { return Differing(keys, n); }
int DifferingLong(const uint64_t* keys, int64_t n) { return Differing(keys, n); }
int64_t NextShort(const uint32_t* keys, int64_t begin, int64_t n, uint32_t least, uint32_t most) {
  return Next(keys, begin, n, least, most);
}
int64_t NextLong(const uint64_t* keys, int64_t begin, int64_t n, uint64_t least, uint64_t most) {
  return Next(keys, begin, n, least, most);
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(EncodeShort);
HWY_EXPORT(EncodeLong);
HWY_EXPORT(RankedShort);
HWY_EXPORT(RankedLong);
HWY_EXPORT(DifferingShort);
HWY_EXPORT(DifferingLong);
HWY_EXPORT(NextShort);
HWY_EXPORT(NextLong);

namespace cpu {

void EncodeKeys(const KeyCode& code, int64_t n, const void* x, uint32_t* keys) {
  HWY_DYNAMIC_DISPATCH(EncodeShort)(code, n, x, keys);
}
void EncodeKeys(const KeyCode& code, int64_t n, const void* x, uint64_t* keys) {
  HWY_DYNAMIC_DISPATCH(EncodeLong)(code, n, x, keys);
}
Selected<uint32_t> RankedKey(const uint32_t* keys, int64_t n, int64_t rank) {
  return HWY_DYNAMIC_DISPATCH(RankedShort)(keys, n, rank);
}
Selected<uint64_t> RankedKey(const uint64_t* keys, int64_t n, int64_t rank) {
  return HWY_DYNAMIC_DISPATCH(RankedLong)(keys, n, rank);
}
int DifferingBits(const uint32_t* keys, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(DifferingShort)(keys, n);
}
int DifferingBits(const uint64_t* keys, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(DifferingLong)(keys, n);
}
int64_t NextKey(const uint32_t* keys, int64_t begin, int64_t n, uint32_t least, uint32_t most) {
  return HWY_DYNAMIC_DISPATCH(NextShort)(keys, begin, n, least, most);
}
int64_t NextKey(const uint64_t* keys, int64_t begin, int64_t n, uint64_t least, uint64_t most) {
  return HWY_DYNAMIC_DISPATCH(NextLong)(keys, begin, n, least, most);
}

}  // namespace cpu
}  // namespace oneflow_lite
#endif  // HWY_ONCE
