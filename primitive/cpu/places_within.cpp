// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/places_within.h"

#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/places_within.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

bool Within(const int64_t* places, int64_t n, int64_t low, int64_t high) {
  const hn::ScalableTag<int64_t> d;
  const auto first = hn::Set(d, low), last = hn::Set(d, high);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto signs = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto place = hn::LoadU(d, places + i);
    signs = hn::Or(signs, hn::Or(hn::Sub(place, first), hn::Sub(last, place)));
  }
  return hn::AllFalse(d, hn::Lt(signs, hn::Zero(d))) && AllWithin(places + i, n - i, 1, low, high);
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(Within);

bool cpu::PlacesWithin(const int64_t* places, int64_t n, int64_t low, int64_t high) {
  return HWY_DYNAMIC_DISPATCH(Within)(places, n, low, high);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
