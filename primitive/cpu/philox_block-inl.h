// SPDX-License-Identifier: Apache-2.0
//
// Philox for many counters in a row, by the vectors of the instruction set that the including file
// is compiled for (foreach_target.h); everything lives in oneflow_lite::HWY_NAMESPACE.
//
//   const PhiloxBlock bits(seed, counter);
//   bits.words[w][i];  // Philox(seed, counter + i).v[w], i < kPhiloxLanes
#include <cstdint>

#ifndef OFL_PRIMITIVE_CPU_PHILOX_BLOCK_ONCE_
#define OFL_PRIMITIVE_CPU_PHILOX_BLOCK_ONCE_
namespace oneflow_lite {
inline constexpr int kPhiloxLanes = 16;
}  // namespace oneflow_lite
#endif

#if defined(OFL_PRIMITIVE_CPU_PHILOX_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef OFL_PRIMITIVE_CPU_PHILOX_BLOCK_INL_H_
#undef OFL_PRIMITIVE_CPU_PHILOX_BLOCK_INL_H_
#else
#define OFL_PRIMITIVE_CPU_PHILOX_BLOCK_INL_H_
#endif

#include "primitive/cpu/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {

// A word stands in the lower half of a lane of 64 bits, where a product of two of 32 bits has room.
// What lies in the upper half does not count.
class PhiloxWords {
 public:
  using D = hwy::HWY_NAMESPACE::CappedTag<uint64_t, kPhiloxLanes / 2>;
  using V = hwy::HWY_NAMESPACE::Vec<D>;

  HWY_INLINE explicit PhiloxWords(uint64_t counter)
      : c0_(hwy::HWY_NAMESPACE::Add(hwy::HWY_NAMESPACE::Set(D(), counter),
                                    hwy::HWY_NAMESPACE::Iota(D(), uint64_t{0}))),
        c1_(hwy::HWY_NAMESPACE::ShiftRight<32>(c0_)),
        c2_(hwy::HWY_NAMESPACE::Zero(D())),
        c3_(hwy::HWY_NAMESPACE::Zero(D())) {}

  HWY_INLINE void Round(V k0, V k1) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::Repartition<uint32_t, D> d32;
    const V p0 = hn::MulEven(hn::Set(d32, 0xD2511F53u), hn::BitCast(d32, c0_));
    const V p1 = hn::MulEven(hn::Set(d32, 0xCD9E8D57u), hn::BitCast(d32, c2_));
    c0_ = hn::Xor3(hn::ShiftRight<32>(p1), c1_, k0);
    c1_ = p1;
    c2_ = hn::Xor3(hn::ShiftRight<32>(p0), c3_, k1);
    c3_ = p0;
  }
  HWY_INLINE void StoreTo(uint32_t (*words)[kPhiloxLanes], size_t lane) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::Rebind<uint32_t, D> d;
    hn::StoreU(hn::TruncateTo(d, c0_), d, words[0] + lane);
    hn::StoreU(hn::TruncateTo(d, c1_), d, words[1] + lane);
    hn::StoreU(hn::TruncateTo(d, c2_), d, words[2] + lane);
    hn::StoreU(hn::TruncateTo(d, c3_), d, words[3] + lane);
  }

 private:
  V c0_, c1_, c2_, c3_;
};

struct PhiloxBlock {
  alignas(64) uint32_t words[4][kPhiloxLanes];

  // Two vectors at a time: a product's latency is hidden by the other's.
  HWY_INLINE PhiloxBlock(uint64_t seed, uint64_t counter) {
    const PhiloxWords::D d;
    const size_t lanes = hwy::HWY_NAMESPACE::Lanes(d);
    for (size_t i = 0; i < kPhiloxLanes; i += 2 * lanes) {
      PhiloxWords first(counter + i), second(counter + i + lanes);
      uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
      for (int round = 0; round < 10; ++round) {
        const auto key0 = hwy::HWY_NAMESPACE::Set(d, uint64_t{k0});
        const auto key1 = hwy::HWY_NAMESPACE::Set(d, uint64_t{k1});
        first.Round(key0, key1);
        second.Round(key0, key1);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
      }
      first.StoreTo(words, i);
      second.StoreTo(words, i + lanes);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#endif
