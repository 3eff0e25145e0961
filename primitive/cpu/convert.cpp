// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/convert.h"

#include <algorithm>
#include <cstring>

#include "primitive/cpu/rearrange.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/convert.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// Two vectors at a time, of which the upper halves are put together by one instruction.
void NarrowToBFloat16(int64_t n, const float* HWY_RESTRICT src, bfloat16* HWY_RESTRICT dst) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Repartition<uint16_t, decltype(d)> du16;
  const auto rounded = [&](const float* p) OFL_SIMD_LAMBDA {
    const auto v = hn::LoadU(d, p);
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto near = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
    const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
    return hn::BitCast(du16, hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, near));
  };
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    hn::StoreU(hn::ConcatOdd(du16, rounded(src + i + lanes), rounded(src + i)), du16, &dst[i].bits);
  }
  const auto zero = hn::Zero(d);
  ForEachVector(d, static_cast<size_t>(n - i), [&](size_t j, size_t count) OFL_SIMD_LAMBDA {
    StoreUpTo(LoadUpTo(d, src + i + j, count, zero), d, dst + i + j, count);
  });
}

template <class From, class To>
void ConvertRow(int64_t n, const void* src_data, void* dst_data) {
  const From* HWY_RESTRICT src = static_cast<const From*>(src_data);
  To* HWY_RESTRICT dst = static_cast<To*>(dst_data);
  if constexpr (std::is_same_v<From, To>) {
    CopyBytes(n * int64_t{sizeof(To)}, src_data, dst_data);
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bfloat16>) {
    NarrowToBFloat16(n, src, dst);
  } else if constexpr ((kIsHalf<From> ||
                        std::is_same_v<From, float>)&&(kIsHalf<To> || std::is_same_v<To, float>)) {
    const hn::ScalableTag<float> d;
    const auto zero = hn::Zero(d);
    ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
      StoreUpTo(LoadUpTo(d, src + i, count, zero), d, dst + i, count);
    });
  } else if constexpr (kIsHalf<From> || kIsHalf<To>) {  // through float, a piece at a time
    constexpr int64_t kPiece = 256;
    float wide[kPiece];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t count = std::min(kPiece, n - i);
      ConvertRow<From, float>(count, src + i, wide);
      ConvertRow<float, To>(count, wide, dst + i);
    }
  } else if constexpr (std::is_same_v<From, bool>) {  // by vectors, as of bytes
    const uint8_t* HWY_RESTRICT bytes = static_cast<const uint8_t*>(src_data);
    for (int64_t i = 0; i < n; ++i) {
      dst[i] = static_cast<To>(std::min<uint8_t>(bytes[i], 1));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = Cast<To>(src[i]);
  }
}

}  // namespace

ConvertFunction Find(DType from, DType to) {
  return VisitAll(from, [&]<class From>(Tag<From>) {
    return VisitAll(to,
                    [&]<class To>(Tag<To>) -> ConvertFunction { return &ConvertRow<From, To>; });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(Find);
ConvertFunction FindConvert(DType from, DType to) { return HWY_DYNAMIC_DISPATCH(Find)(from, to); }

}  // namespace oneflow_lite
#endif  // HWY_ONCE
