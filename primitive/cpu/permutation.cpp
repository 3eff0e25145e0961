// SPDX-License-Identifier: Apache-2.0
//
// A random order by keys that are spread evenly. An item, the upper 32 bits of a key and its place,
// goes to a slot of the bin that its first bits name; some eight share a bin, which a network
// sorts. More items than kItemsAtOnce are put into parts first, whose bins then lie in the cache.
#include "primitive/permutation.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <vector>

#include "oneflow_lite/core/parallel.h"
#include "oneflow_lite/core/philox.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/permutation.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/highway.h"
#include "primitive/cpu/philox_block-inl.h"

#ifndef OFL_PRIMITIVE_CPU_PERMUTATION_ONCE_
#define OFL_PRIMITIVE_CPU_PERMUTATION_ONCE_
namespace oneflow_lite {

inline constexpr int64_t kSlots = 16;            // of a bin, for 8 items at most on average
inline constexpr uint64_t kPlace = 0xFFFFFFFFu;  // of an item

// The order of items: by the keys' upper 32 bits, their other 21, then by their places.
struct ItemOrder {
  uint64_t seed, offset;

  uint64_t Rest(uint64_t item) const {
    const uint64_t place = item & kPlace;
    return Philox(seed, offset + place / 2).v[2 * (place % 2) + 1] >> 11;
  }
  bool operator()(uint64_t a, uint64_t b) const {
    if ((a ^ b) > kPlace) return a < b;
    const uint64_t rest_a = Rest(a), rest_b = Rest(b);
    return rest_a != rest_b ? rest_a < rest_b : a < b;
  }
  // n items become their places in order.
  void Sort(uint64_t* items, int64_t n) const {
    std::sort(items, items + n, *this);
    for (int64_t i = 0; i < n; ++i) items[i] &= kPlace;
  }
};

// The memory of one thread's bins, for so many items on average.
struct BinMemory {
  explicit BinMemory(int64_t items)
      : bins(static_cast<int64_t>(
            std::bit_ceil(std::max<uint64_t>(16, static_cast<uint64_t>(items + 7) / 8)))) {}

  int64_t bins;  // a power of two, at least 16
  // Items that find no slot: one in some 10000.
  int64_t most_spilled() const { return 64 + bins / 8; }
  int64_t bytes() const { return (bins * kSlots + most_spilled()) * 8 + bins * 4; }
  uint64_t* slots(char* memory) const { return reinterpret_cast<uint64_t*>(memory); }
  uint64_t* spilled(char* memory) const { return slots(memory) + bins * kSlots; }
  uint32_t* counts(char* memory) const {
    return reinterpret_cast<uint32_t*>(spilled(memory) + most_spilled());
  }
};

// Items in parts by their first `bits` bits, `room` for each part: counts[p] of part p.
struct ItemParts {
  int bits;
  int64_t room;
  uint64_t* items;
  uint32_t* counts;

  int64_t count() const { return int64_t{1} << bits; }
};

// n items of a part on their way to `order`, n places: in each of so many ItemParts those of
// `part`. Without any, all items are made here.
struct PermutationPart {
  ItemOrder by;
  const ItemParts* ranges;
  int64_t num_ranges, part, n;
  int bits;  // that all have in common
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

// The first n items.
void MakeItems(const ItemOrder& by, int64_t n, uint64_t* items) {
  for (int64_t first = 0; first < n; first += kBlock) {
    uint64_t made[kBlock];
    MakeBlock(by.seed, by.offset, first, made);
    std::copy(made, made + std::min(kBlock, n - first), items + first);
  }
}

#if HWY_TARGET == HWY_AVX3
// A bitonic network for a vector of sixteen keys of 28 bits, each with the number of its slot.
class Network {
 public:
  // The places of n <= kSlots items in the order of their keys, but for the first `shift` bits,
  // which are alike; false where two have the same key.
  static HWY_INLINE bool Sort(const uint64_t* items, size_t n, int shift, uint64_t* places) {
    const D d;
    const hn::Repartition<uint64_t, D> d64;
    const auto first = hn::BitCast(d, hn::LoadU(d64, items));
    const auto second = hn::BitCast(d, hn::LoadU(d64, items + 8));
    const auto slots = hn::Iota(d, 0), slot_bits = hn::Set(d, 15);
    const V bits = hn::ShiftLeftSame(hn::ConcatOdd(d, second, first), shift);
    V keys = hn::Or(hn::AndNot(slot_bits, bits), slots);
    keys = SortVector(hn::IfThenElse(hn::FirstN(d, n), keys, hn::Set(d, ~0u)));
    const V next = hn::TableLookupLanes(
        keys, hn::IndicesFromVec(d, hn::Min(hn::Add(slots, hn::Set(d, 1)), slot_bits)));
    const auto alike =
        hn::And(hn::Lt(hn::Xor(keys, next), hn::Set(d, 16)), hn::FirstN(d, n > 0 ? n - 1 : 0));
    if (HWY_UNLIKELY(!hn::AllFalse(d, alike))) return false;
    const V ordered = hn::TableLookupLanes(hn::ConcatEven(d, second, first),
                                           hn::IndicesFromVec(d, hn::And(keys, slot_bits)));
    const hn::Half<D> half;
    hn::BlendedStore(hn::PromoteTo(d64, hn::LowerHalf(half, ordered)),
                     hn::FirstN(d64, std::min<size_t>(n, 8)), d64, places);
    hn::BlendedStore(hn::PromoteTo(d64, hn::UpperHalf(half, ordered)),
                     hn::FirstN(d64, n > 8 ? n - 8 : 0), d64, places + 8);
    return true;
  }

 private:
  using D = hn::FixedTag<uint32_t, 16>;
  using V = hn::Vec<D>;

  static HWY_INLINE V SortVector(V v) {
    const D d;
    v = Pairs(v);
    v = Pairs(Fours(v, hn::Reverse4(d, v)));
    v = Eights(v, hn::Reverse8(d, v));
    v = Pairs(Fours(v, Apart2(v)));
    v = hn::ConcatUpperLower(d, hn::Max(v, hn::Reverse(d, v)), hn::Min(v, hn::Reverse(d, v)));
    v = Eights(v, hn::SwapAdjacentBlocks(v));
    return Pairs(Fours(v, Apart2(v)));
  }
  // The smaller of v and `other` in the lower half of each group of lanes, the larger in the upper.
  static HWY_INLINE V Pairs(V v) {
    const V other = hn::Reverse2(D(), v);
    return hn::OddEven(hn::Max(v, other), hn::Min(v, other));
  }
  static HWY_INLINE V Fours(V v, V other) {
    const hn::Repartition<uint64_t, D> d64;
    return hn::BitCast(
        D(), hn::OddEven(hn::BitCast(d64, hn::Max(v, other)), hn::BitCast(d64, hn::Min(v, other))));
  }
  static HWY_INLINE V Eights(V v, V other) {
    return hn::OddEvenBlocks(hn::Max(v, other), hn::Min(v, other));
  }
  // Lanes i and i ^ 2 change places.
  static HWY_INLINE V Apart2(V v) {
    const hn::Repartition<uint64_t, D> d64;
    return hn::BitCast(D(), hn::Reverse2(d64, hn::BitCast(d64, v)));
  }
};
#else
struct Network {
  static bool Sort(const uint64_t* items, size_t n, int, uint64_t* places) {
    uint64_t sorted[kSlots];
    for (size_t i = 0; i < n; ++i) {
      size_t at = i;
      for (; at > 0 && items[i] < sorted[at - 1]; --at) sorted[at] = sorted[at - 1];
      sorted[at] = items[i];
    }
    bool differ = true;
    for (size_t i = 1; i < n; ++i) differ = differ && (sorted[i] ^ sorted[i - 1]) > kPlace;
    for (size_t i = 0; i < n; ++i) places[i] = sorted[i] & kPlace;
    return differ;
  }
};
#endif

class Bins {
 public:
  explicit Bins(const PermutationPart& part)
      : by_(part.by),
        bins_(part.bins.bins),
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
    for (int64_t bin = 0; bin < bins_; ++bin) {
      const uint32_t count = counts_[bin];
      const uint64_t* slots = slots_ + bin * kSlots;
      if (HWY_UNLIKELY(count > kSlots || !Network::Sort(slots, count, 64 - shift_, order))) {
        WriteOneByOne(bin, count, order);
      }
      order += count;
    }
  }

 private:
  // More than there are slots, or some that are alike.
  void WriteOneByOne(int64_t bin, uint32_t count, uint64_t* order) const {
    const uint64_t mask = static_cast<uint64_t>(bins_ - 1);
    const uint64_t* slots = slots_ + bin * kSlots;
    uint64_t* end = std::copy(slots, slots + std::min<int64_t>(count, kSlots), order);
    std::copy_if(spilled_, spilled_ + num_spilled_, end, [&](uint64_t item) {
      return (item >> shift_ & mask) == static_cast<uint64_t>(bin);
    });
    by_.Sort(order, count);
  }

  const ItemOrder by_;
  const int64_t bins_, most_spilled_;
  const int shift_;
  uint64_t* const slots_;
  uint64_t* const spilled_;
  uint32_t* const counts_;
  int64_t num_spilled_ = 0;
};

}  // namespace

// Items [begin, end), begin a multiple of kBlock, go to their parts; false where one has no room.
bool FillParts(const ItemOrder& by, int64_t begin, int64_t end, const ItemParts& parts) {
  const int shift = 64 - parts.bits;
  std::fill(parts.counts, parts.counts + parts.count(), 0);
  for (int64_t first = begin; first < end; first += kBlock) {
    uint64_t made[kBlock];
    MakeBlock(by.seed, by.offset, first, made);
    const int64_t n = std::min(kBlock, end - first);
    for (int64_t i = 0; i < n; ++i) {
      const auto part = static_cast<int64_t>(made[i] >> shift);
      const uint32_t count = parts.counts[part]++;
      if (HWY_UNLIKELY(count == parts.room)) return false;
      parts.items[part * parts.room + count] = made[i];
    }
  }
  return true;
}

void OrderPart(const PermutationPart& part) {
  Bins bins(part);
  bool fits = true;
  for (int64_t r = 0; fits && r < part.num_ranges; ++r) {
    const ItemParts& range = part.ranges[r];
    fits = bins.Put(range.items + part.part * range.room, range.counts[part.part]);
  }
  const int64_t made_here = part.num_ranges > 0 ? 0 : part.n;
  for (int64_t first = 0; fits && first < made_here; first += kBlock) {
    uint64_t made[kBlock];
    MakeBlock(part.by.seed, part.by.offset, first, made);
    fits = bins.Put(made, std::min(kBlock, part.n - first));
  }
  if (fits) return bins.Write(part.order);
  uint64_t* end = part.order;
  for (int64_t r = 0; r < part.num_ranges; ++r) {
    const ItemParts& range = part.ranges[r];
    end = std::copy_n(range.items + part.part * range.room, range.counts[part.part], end);
  }
  MakeItems(part.by, made_here, part.order);
  part.by.Sort(part.order, part.n);
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FillParts);
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

  size_t bytes() const { return static_cast<size_t>(Bytes(Ranges())); }

  // Ranges of places put their items into parts in the scratch of `bytes`, each part then goes in
  // order to the result's memory.
  void Run(const PhiloxState& state, int64_t* result, char* workspace, size_t bytes) const {
    const ItemOrder by = {state.seed, state.offset};
    uint64_t* order = reinterpret_cast<uint64_t*>(result);
    PermutationPart all = {by, nullptr, 0, 0, n_, 0, bins_, workspace, order};
    if (bits_ == 0) return HWY_DYNAMIC_DISPATCH(OrderPart)(all);
    int64_t count = Ranges();
    while (count > 1 && Bytes(count) > static_cast<int64_t>(bytes)) --count;
    std::vector<ItemParts> ranges;
    for (int64_t r = 0; r < count; ++r) ranges.push_back(RangeOf(workspace, r, count));
    std::atomic<bool> fits{true};
    ParallelFor(count, /*grain=*/1, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const int64_t begin = blocks() * r / count * kBlock,
                      end = blocks() * (r + 1) / count * kBlock;
        if (!HWY_DYNAMIC_DISPATCH(FillParts)(by, begin, std::min(n_, end), ranges[r])) fits = false;
      }
    });
    if (!fits) return SortAll(by, order);
    all.ranges = ranges.data(), all.num_ranges = count, all.bits = bits_;
    OrderParts(all, workspace + count * RangeBytes(count));
  }

 private:
  int64_t parts() const { return int64_t{1} << bits_; }
  int64_t blocks() const { return (n_ + kBlock - 1) / kBlock; }
  int64_t Ranges() const { return bits_ > 0 ? ParallelRanges(blocks(), /*grain=*/256) : 1; }

  // For the items of one of so many ranges that go to one part: eight standard deviations beyond
  // the mean.
  int64_t RoomOf(int64_t ranges) const {
    const int64_t mean = (blocks() / ranges + 1) * kBlock / parts() + 1;
    return mean + 64 + 8 * static_cast<int64_t>(std::sqrt(static_cast<double>(mean)));
  }
  int64_t RangeBytes(int64_t ranges) const {
    return bits_ > 0 ? parts() * (RoomOf(ranges) * 8 + 4) : 0;
  }
  int64_t Bytes(int64_t ranges) const { return ranges * (RangeBytes(ranges) + bins_.bytes()); }
  ItemParts RangeOf(char* workspace, int64_t r, int64_t ranges) const {
    auto* items = reinterpret_cast<uint64_t*>(workspace + r * RangeBytes(ranges));
    return {bits_, RoomOf(ranges), items,
            reinterpret_cast<uint32_t*>(items + parts() * RoomOf(ranges))};
  }

  // Each of as many ranges of parts as there are of places has bins in `memory`.
  void OrderParts(const PermutationPart& all, char* memory) const {
    std::vector<int64_t> begin(static_cast<size_t>(parts()) + 1, 0);
    for (int64_t p = 0; p < parts(); ++p) {
      begin[p + 1] = begin[p];
      for (int64_t r = 0; r < all.num_ranges; ++r) begin[p + 1] += all.ranges[r].counts[p];
    }
    ParallelFor(all.num_ranges, /*grain=*/1, [&](int64_t first, int64_t last) {
      for (int64_t range = first; range < last; ++range) {
        PermutationPart part = all;
        part.memory = memory + range * bins_.bytes();
        const int64_t stop = parts() * (range + 1) / all.num_ranges;
        for (int64_t p = parts() * range / all.num_ranges; p < stop; ++p) {
          part.part = p, part.n = begin[p + 1] - begin[p], part.order = all.order + begin[p];
          HWY_DYNAMIC_DISPATCH(OrderPart)(part);
        }
      }
    });
  }

  // Without parts.
  void SortAll(const ItemOrder& by, uint64_t* order) const {
    for (int64_t i = 0; i < n_; ++i) {
      const auto place = static_cast<uint64_t>(i);
      const uint64_t key = Philox(by.seed, by.offset + place / 2).v[2 * (place % 2)];
      order[i] = key << 32 | place;
    }
    by.Sort(order, n_);
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
