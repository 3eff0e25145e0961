// SPDX-License-Identifier: Apache-2.0
//
// Rows of keys on the CPU: a stable radix sort of keys with their places, and selection by counting
// digits. What they need besides, the caller passes in.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/beyond.h"
#include "primitive/cpu/key_loops.h"
#include "primitive/cpu/stable_parts.h"
#include "primitive/ordered_keys.h"

namespace oneflow_lite::cpu {

template <class T>
using RawOf =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
// Keys of 4 bytes serve narrower elements too.
template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// The key of element i. `code` is KeyCodeOf(DTypeOf<T>(), ...), of which the compiler knows all but
// the direction.
template <class T>
KeyOf<T> KeyAt(const T* x, int64_t i, bool descending) {
  RawOf<T> raw;
  std::memcpy(&raw, x + i, sizeof raw);
  return KeyCodeOf(DTypeOf<T>(), descending).template Encode<KeyOf<T>>(raw);
}

// A key and its place: one integer where both fit, which is then compared at once.
struct NarrowItem {
  uint64_t both;
  static NarrowItem Of(uint64_t key, int64_t place) {
    return {key << 32 | static_cast<uint64_t>(place)};
  }
  uint64_t key() const { return both >> 32; }
  int64_t place() const { return static_cast<int64_t>(both & 0xFFFFFFFFu); }
  bool operator<(const NarrowItem& o) const { return both < o.both; }
};
struct WideItem {
  uint64_t high;
  int64_t low;
  static WideItem Of(uint64_t key, int64_t place) { return {key, place}; }
  uint64_t key() const { return high; }
  int64_t place() const { return low; }
  bool operator<(const WideItem& o) const {
    return high < o.high || (high == o.high && low < o.low);
  }
};
template <class T>
constexpr bool FitsNarrow(int64_t cols) {
  return sizeof(T) <= 4 && cols < (int64_t{1} << 32);
}

// Calls f(Tag<Item>) for the items of rows of T.
template <class T, class F>
void VisitItem(int64_t cols, F&& f) {
  if (FitsNarrow<T>(cols)) {
    f(Tag<NarrowItem>{});
  } else {
    f(Tag<WideItem>{});
  }
}

// Up to so many items find their ranks by comparing each with all, without branches that would be
// guessed: 3 in 7 instead of 23 ns, 8 in 33 instead of 77.
inline constexpr int64_t kRankedItems = 8;

// Puts items, which stand in the order of their places, in order at `to`.
template <class Item>
void RankItems(const Item* items, int64_t n, Item* to) {
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t key = items[i].key();
    int64_t rank = 0;
    for (int64_t j = 0; j < i; ++j) rank += items[j].key() <= key;
    for (int64_t j = i + 1; j < n; ++j) rank += items[j].key() < key;
    to[rank] = items[i];
  }
}

// From so many items on counting beats comparisons, in keys whose bytes all differ and in those of
// which few do.
inline constexpr int64_t kCountingItems = 384, kCountingItemsPerByte = 96;

// Puts items, which stand in the order of their places, in order; `other` has room for as many.
// Returns where they are then, items or other.
template <class Item>
Item* SortItems(Item* items, Item* other, int64_t n, int bits) {
  if (n <= kRankedItems) {
    RankItems(items, n, other);
    return other;
  }
  uint64_t differ = 0;
  for (int64_t i = 1; i < n; ++i) differ |= items[i].key() ^ items[0].key();
  int shifts[8], bytes = 0;  // of those that differ
  for (int shift = 0; shift < bits; shift += 8) {
    if ((differ >> shift & 255) != 0) shifts[bytes++] = shift;
  }
  if (n < std::min(kCountingItems, bytes * kCountingItemsPerByte)) {
    std::sort(items, items + n);
    return items;
  }
  int64_t counts[8][256];
  std::memset(counts, 0, sizeof counts[0] * bytes);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t key = items[i].key();
    for (int k = 0; k < bytes; ++k) ++counts[k][key >> shifts[k] & 255];
  }
  for (int k = 0; k < bytes; ++k) {
    int64_t before = 0;
    for (int64_t& count : counts[k]) before += std::exchange(count, before);
    for (int64_t i = 0; i < n; ++i) {
      other[counts[k][items[i].key() >> shifts[k] & 255]++] = items[i];
    }
    std::swap(items, other);
  }
  return items;
}

// Below this many keys RankedKey finishes.
inline constexpr int64_t kFewKeys = 512;

// The key of the rank, 0 <= rank < n; `scratch` has room for n keys, and may not be `keys`.
template <class Key>
Selected<Key> SelectKey(const Key* keys, int64_t n, int64_t rank, Key* scratch) {
  const Key* in = keys;
  for (int low = n > kFewKeys ? DifferingBits(keys, n) : 0; n > kFewKeys && low > 0;) {
    const int width = std::min(low, 11);
    low -= width;
    const auto digit = [&](Key key) { return static_cast<int>(key >> low) & ((1 << width) - 1); };
    int64_t counts[1 << 11];
    std::memset(counts, 0, sizeof(int64_t) << width);
    for (int64_t i = 0; i < n; ++i) ++counts[digit(in[i])];
    int bin = 0;
    for (; rank >= counts[bin]; ++bin) rank -= counts[bin];
    if (counts[bin] == n) continue;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Key key = in[i];
      scratch[kept] = key;
      kept += digit(key) == bin;
    }
    in = scratch;
    n = kept;
  }
  if (n > kFewKeys) return {in[0], rank};  // all digits are the same
  return RankedKey(in, n, rank);
}

// So few are kept in order while the row is gone through, of which most elements are passed over by
// whole vectors.
inline constexpr int64_t kFewKept = 16;

// The first k items of a row, in order; false where k is more than a few, or so many come in that a
// selection is quicker, because the row rises or falls: one that comes in moves half of the kept
// ones. `beyond` is FindBeyond's for T and the direction.
template <class T, class Item>
bool KeepFirst(int64_t cols, int64_t k, bool descending, BeyondFunction beyond, const T* x,
               Item* items) {
  if (k > kFewKept) return false;
  int64_t kept = 0, left = 4 * k + cols / 8;
  for (int64_t i = 0; i < cols; ++i) {
    if (kept == k) {
      i = beyond(x, i, cols, x + items[kept - 1].place());
      if (i == cols) break;
    }
    const Item item = Item::Of(KeyAt(x, i, descending), i);
    if (kept < k) {
      ++kept;
    } else if (!(item < items[kept - 1])) {
      continue;
    }
    if (--left < 0) return false;
    int64_t at = kept - 1;
    for (; at > 0 && item < items[at - 1]; --at) items[at] = items[at - 1];
    items[at] = item;
  }
  return true;
}

// Rows shared out among threads, with memory of `bytes` for each range of rows.
struct RowRanges {
  static constexpr int64_t kGrain = 4096;  // elements
  int64_t rows, cols;

  int64_t count() const { return StableParts(rows, kGrain / std::max<int64_t>(1, cols)); }
  // Calls f(row, memory) for each row.
  template <class F>
  void ForRows(void* workspace, size_t bytes, F&& f) const {
    const int64_t ranges = count();
    ParallelFor(ranges, 1, [&](int64_t first, int64_t last) {
      for (int64_t range = first; range < last; ++range) {
        char* memory = static_cast<char*>(workspace) + range * static_cast<int64_t>(bytes);
        const int64_t end = rows * (range + 1) / ranges;
        for (int64_t row = rows * range / ranges; row < end; ++row) f(row, memory);
      }
    });
  }
};

}  // namespace oneflow_lite::cpu
