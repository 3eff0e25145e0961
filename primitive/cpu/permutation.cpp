// SPDX-License-Identifier: Apache-2.0
//
// A random order by keys that are spread evenly. An item, the upper 32 bits of a key and its place,
// goes to a slot of the bin that its first bits name; some eight share a bin, which a network
// sorts. More items than kItemsAtOnce are put into parts first, whose bins then lie in the cache.
#include "primitive/permutation.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "oneflow_lite/core/parallel.h"
#include "oneflow_lite/core/philox.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/permutation.cpp"
#include "hwy/foreach_target.h"
// clang-format on
#include "hwy/highway.h"
#include "primitive/cpu/philox_block-inl.h"

#ifndef OFL_PRIMITIVE_CPU_PERMUTATION_ONCE_
#define OFL_PRIMITIVE_CPU_PERMUTATION_ONCE_
namespace oneflow_lite {

inline constexpr int64_t kSlots = 16;  // of a bin, for 8 items at most on average

// The memory of one thread's bins, for so many items on average.
struct BinMemory {
  explicit BinMemory(int64_t items)
      : bins(static_cast<int64_t>(
            std::bit_ceil(std::max<uint64_t>(2, static_cast<uint64_t>(items + 7) / 8)))) {}

  int64_t bins;  // a power of two, at least 2
  // Items that find no slot: one in some 10000.
  int64_t most_spilled() const { return 64 + bins / 8; }
  int64_t bytes() const { return (bins * kSlots + most_spilled()) * 8 + bins * 4; }
  uint64_t* slots(char* memory) const { return reinterpret_cast<uint64_t*>(memory); }
  uint64_t* spilled(char* memory) const { return slots(memory) + bins * kSlots; }
  uint32_t* counts(char* memory) const {
    return reinterpret_cast<uint32_t*>(spilled(memory) + most_spilled());
  }
};

// Items of a part, whose first `bits` bits are alike, on their way to `order`, n places. Without
// `items` they are made, all of them.
struct PermutationPart {
  uint64_t seed, offset;
  const uint64_t* items;
  int64_t n;
  int bits;
  BinMemory bins;
  char* memory;
  uint64_t* order;
};

}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kBlock = 2 * kPhiloxLanes;

// Items of places [first, first + kBlock), first a multiple of kBlock.
HWY_INLINE void MakeBlock(uint64_t seed, uint64_t offset, int64_t first, uint64_t* items) {
  const PhiloxBlock bits(seed, offset + static_cast<uint64_t>(first / 2));
  for (int i = 0; i < kPhiloxLanes; ++i) {
    const uint64_t place = static_cast<uint64_t>(first) + 2 * static_cast<uint64_t>(i);
    items[2 * i] = uint64_t{bits.words[0][i]} << 32 | place;
    items[2 * i + 1] = uint64_t{bits.words[2][i]} << 32 | (place + 1);
  }
}

#if HWY_TARGET == HWY_AVX3
// Bitonic networks of vectors of eight.
class Network {
 public:
  using D = hn::FixedTag<uint64_t, 8>;
  using V = hn::Vec<D>;

  // Sorts n <= kSlots items.
  static HWY_INLINE void Sort(const uint64_t* items, size_t n, uint64_t* sorted) {
    const D d;
    const auto first = hn::FirstN(d, std::min<size_t>(n, 8));
    const auto second = hn::FirstN(d, n > 8 ? n - 8 : 0);
    const V last = hn::Set(d, ~uint64_t{0});
    const V a = SortVector(hn::IfThenElse(first, hn::LoadU(d, items), last));
    const V b = hn::Reverse(d, SortVector(hn::IfThenElse(second, hn::LoadU(d, items + 8), last)));
    hn::BlendedStore(MergeVector(hn::Min(a, b)), first, d, sorted);
    hn::BlendedStore(MergeVector(hn::Max(a, b)), second, d, sorted + 8);
  }

 private:
  static HWY_INLINE V SortVector(V v) {
    const D d;
    v = Pairs(v);
    v = Fours(v, hn::Reverse4(d, v));
    v = Pairs(v);
    v = Eights(v, hn::Reverse8(d, v));
    v = Fours(v, Apart2(v));
    return Pairs(v);
  }
  // What rises and then falls.
  static HWY_INLINE V MergeVector(V v) {
    v = Eights(v, hn::ConcatLowerUpper(D(), v, v));
    v = Fours(v, Apart2(v));
    return Pairs(v);
  }
  // The smaller of v and `other` in the lower half of each group of lanes, the larger in the upper.
  static HWY_INLINE V Pairs(V v) {
    const V other = hn::Reverse2(D(), v);
    return hn::OddEven(hn::Max(v, other), hn::Min(v, other));
  }
  static HWY_INLINE V Fours(V v, V other) {
    return hn::OddEvenBlocks(hn::Max(v, other), hn::Min(v, other));
  }
  static HWY_INLINE V Eights(V v, V other) {
    return hn::ConcatUpperLower(D(), hn::Max(v, other), hn::Min(v, other));
  }
  // Lanes i and i ^ 2 change places.
  static HWY_INLINE V Apart2(V v) { return hn::Reverse2(D(), hn::Reverse4(D(), v)); }
};
#else
struct Network {
  static void Sort(const uint64_t* items, size_t n, uint64_t* sorted) {
    for (size_t i = 0; i < n; ++i) {
      size_t at = i;
      for (; at > 0 && items[i] < sorted[at - 1]; --at) sorted[at] = sorted[at - 1];
      sorted[at] = items[i];
    }
  }
};
#endif

class Bins {
 public:
  explicit Bins(const PermutationPart& part)
      : bins_(part.bins.bins),
        most_spilled_(part.bins.most_spilled()),
        shift_(64 - part.bits - std::countr_zero(static_cast<uint64_t>(bins_))),
        slots_(part.bins.slots(part.memory)),
        spilled_(part.bins.spilled(part.memory)),
        counts_(part.bins.counts(part.memory)) {
    std::fill(counts_, counts_ + bins_, 0);
  }

  // False: there are too many for one bin.
  HWY_INLINE bool Put(const uint64_t* items, int64_t n) {
    const uint64_t mask = static_cast<uint64_t>(bins_ - 1);
    const int shift = shift_;
    uint32_t* HWY_RESTRICT counts = counts_;
    uint64_t* HWY_RESTRICT slots = slots_;
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t item = items[i], bin = item >> shift & mask;
      const uint32_t count = counts[bin]++;
      if (HWY_LIKELY(count < kSlots)) {
        slots[bin * kSlots + count] = item;
      } else {
        if (num_spilled_ == most_spilled_) return false;
        spilled_[num_spilled_++] = item;
      }
    }
    return true;
  }
  void Write(uint64_t* order) const {
    const uint64_t mask = static_cast<uint64_t>(bins_ - 1);
    for (int64_t bin = 0; bin < bins_; ++bin) {
      const uint32_t count = counts_[bin];
      const uint64_t* slots = slots_ + bin * kSlots;
      if (HWY_LIKELY(count <= kSlots)) {
        Network::Sort(slots, count, order);
      } else {
        uint64_t* end = std::copy(slots, slots + kSlots, order);
        std::copy_if(spilled_, spilled_ + num_spilled_, end, [&](uint64_t item) {
          return (item >> shift_ & mask) == static_cast<uint64_t>(bin);
        });
        std::sort(order, order + count);
      }
      order += count;
    }
  }

 private:
  const int64_t bins_, most_spilled_;
  const int shift_;
  uint64_t* const slots_;
  uint64_t* const spilled_;
  uint32_t* const counts_;
  int64_t num_spilled_ = 0;
};

// Whether two neighbours are alike in the upper half; those are left out then.
bool TakePlaces(uint64_t* order, int64_t n) {
  uint64_t alike = 0;
  for (int64_t i = 1; i < n; ++i) {
    alike |= static_cast<uint64_t>((order[i] ^ order[i - 1]) < uint64_t{1} << 32);
  }
  if (alike) return false;
  for (int64_t i = 0; i < n; ++i) order[i] &= 0xFFFFFFFFu;
  return true;
}

}  // namespace

// Items [begin, end), begin a multiple of kBlock.
void MakeItems(uint64_t seed, uint64_t offset, int64_t begin, int64_t end, uint64_t* items) {
  for (int64_t first = begin; first < end; first += kBlock) {
    uint64_t made[kBlock];
    MakeBlock(seed, offset, first, made);
    std::copy(made, made + std::min(kBlock, end - first), items + first);
  }
}

// Whether `order` has the places now: false where it has the items, in order but for those that are
// alike in the upper half.
bool OrderPart(const PermutationPart& part) {
  Bins bins(part);
  bool fits = true;
  if (part.items) {
    fits = bins.Put(part.items, part.n);
  } else {
    for (int64_t first = 0; fits && first < part.n; first += kBlock) {
      uint64_t made[kBlock];
      MakeBlock(part.seed, part.offset, first, made);
      fits = bins.Put(made, std::min(kBlock, part.n - first));
    }
  }
  if (fits) {
    bins.Write(part.order);
  } else {
    if (part.items) {
      std::copy(part.items, part.items + part.n, part.order);
    } else {
      MakeItems(part.seed, part.offset, 0, part.n, part.order);
    }
    std::sort(part.order, part.order + part.n);
  }
  return TakePlaces(part.order, part.n);
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(MakeItems);
HWY_EXPORT(OrderPart);

// So many items have bins that lie in the second cache. More than kMostParts parts are more places
// to write to than the TLB has pages.
constexpr int64_t kItemsAtOnce = 1 << 16;
constexpr uint64_t kMostParts = 2048;
constexpr int64_t kBlock = 2 * kPhiloxLanes;

class Order {
 public:
  explicit Order(int64_t n)
      : n_(n),
        bits_(n <= kItemsAtOnce
                  ? 0
                  : std::bit_width(
                        std::min(static_cast<uint64_t>(n) / kItemsAtOnce * 2, kMostParts - 1))),
        bins_(std::max<int64_t>(1, n >> bits_)) {}

  size_t bytes() const {
    const int64_t ranges = bits_ > 0 ? ParallelRanges(parts(), 1) : 1;
    return static_cast<size_t>(items_bytes() + ranges * bins_.bytes());
  }

  // Items are made in the result's memory, put into parts in the scratch, and each part in order in
  // the result's. So many ranges of parts go at once as the scratch of `bytes` has bins for.
  void Run(const PhiloxState& state, int64_t* result, char* workspace, size_t bytes) const {
    uint64_t* order = reinterpret_cast<uint64_t*>(result);
    const PermutationPart all = {state.seed, state.offset, nullptr, n_, 0, bins_, workspace, order};
    if (bits_ == 0) return Finish(all);
    ParallelFor((n_ + kBlock - 1) / kBlock, /*grain=*/256, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(MakeItems)
      (state.seed, state.offset, begin * kBlock, std::min(n_, end * kBlock), order);
    });
    uint64_t* items = reinterpret_cast<uint64_t*>(workspace);
    int64_t ends[kMostParts];
    FillParts(order, items, ends);
    char* memory = workspace + items_bytes();
    const int64_t count = (static_cast<int64_t>(bytes) - items_bytes()) / bins_.bytes();
    ParallelFor(count, /*grain=*/1, [&](int64_t first, int64_t last) {
      for (int64_t range = first; range < last; ++range) {
        PermutationPart part = all;
        part.bits = bits_;
        part.memory = memory + range * bins_.bytes();
        const int64_t stop = parts() * (range + 1) / count;
        for (int64_t p = parts() * range / count; p < stop; ++p) {
          const int64_t begin = p > 0 ? ends[p - 1] : 0;
          part.items = items + begin, part.n = ends[p] - begin, part.order = order + begin;
          Finish(part);
        }
      }
    });
  }

 private:
  int64_t parts() const { return int64_t{1} << bits_; }
  int64_t items_bytes() const { return bits_ > 0 ? n_ * 8 : 0; }

  void FillParts(const uint64_t* made, uint64_t* items, int64_t* ends) const {
    const int shift = 64 - bits_;
    std::fill(ends, ends + parts(), 0);
    for (int64_t i = 0; i < n_; ++i) ++ends[made[i] >> shift];
    int64_t before = 0;
    for (int64_t p = 0; p < parts(); ++p) before += std::exchange(ends[p], before);
    for (int64_t i = 0; i < n_; ++i) items[ends[made[i] >> shift]++] = made[i];
  }

  // Those whose keys share 32 bits by the other 21, then by their places.
  static void Finish(const PermutationPart& part) {
    if (HWY_DYNAMIC_DISPATCH(OrderPart)(part)) return;
    const auto rest = [&](uint64_t item) {
      const uint64_t place = item & 0xFFFFFFFFu;
      return Philox(part.seed, part.offset + place / 2).v[2 * (place % 2) + 1] >> 11;
    };
    uint64_t* order = part.order;
    const auto are_alike = [&](int64_t i) { return (order[i] ^ order[i - 1]) >> 32 == 0; };
    for (int64_t i = 1; i < part.n; ++i) {
      if (HWY_LIKELY(!are_alike(i))) continue;
      int64_t end = i + 1;
      while (end < part.n && are_alike(end)) ++end;
      std::stable_sort(order + i - 1, order + end,
                       [&](uint64_t a, uint64_t b) { return rest(a) < rest(b); });
      i = end;
    }
    for (int64_t i = 0; i < part.n; ++i) order[i] &= 0xFFFFFFFFu;
  }

  const int64_t n_;
  const int bits_;  // of a key, that name its part
  const BinMemory bins_;
};

class CpuPermutation final : public Permutation {
 public:
  StatusOr<size_t> WorkspaceBytes(const Stream&, int64_t n) const override {
    return Order(n).bytes();
  }
  Status Launch(Stream&, int64_t n, const PhiloxState& state, int64_t* order, void* workspace,
                size_t bytes) const override {
    if (n > 0) Order(n).Run(state, order, static_cast<char*>(workspace), bytes);
    return OkStatus();
  }
};

StatusOr<std::unique_ptr<Permutation>> NewPermutation(const Permutation::Spec& spec) {
  if (spec.dtype != DType::kInt64) {
    return NoPrimitiveFor(Permutation::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuPermutation>();
}

const bool registered = RegisterPrimitive<Permutation>(DeviceType::kCPU, &NewPermutation);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
