// SPDX-License-Identifier: Apache-2.0
#include "primitive/ranks.h"

#include <vector>

#include "primitive/cpu/ordered_rows.h"

namespace oneflow_lite {
namespace {

using cpu::RowRanges;

// From this many ranks of a row on, one sort finds them sooner than a selection of each.
constexpr int64_t kManyRanks = 12;
// Of a short row a selection takes as long as sorting so many elements, or of 8 bytes twice as
// many.
constexpr int64_t kSortedPerRank = 12;
bool IsSorted(int64_t cols, int64_t ranks, size_t item) {
  const int64_t most = kSortedPerRank * (item == 8 ? 2 : 1);
  return ranks >= kManyRanks || cols <= most * ranks;
}

// The ranks that are wanted of each row; those of rows without a NaN are found once.
class RanksOfRows {
 public:
  RanksOfRows(const Ranks& ranks, int64_t cols) : ranks_(ranks), cols_(cols) {
    for (int64_t i = 0; i < count(); ++i) whole_.push_back(ranks.At(i, cols, cols));
  }
  int64_t count() const { return ranks_.per_row(); }
  // The i-th one of a row with so many numbers.
  int64_t At(int64_t i, int64_t numbers) const {
    return numbers == cols_ ? whole_[static_cast<size_t>(i)] : ranks_.At(i, cols_, numbers);
  }

 private:
  const Ranks& ranks_;
  int64_t cols_;
  std::vector<int64_t> whole_;
};

class CpuRankSelect final : public RankSelect {
 public:
  explicit CpuRankSelect(DType dtype) : dtype_(dtype), beyond_(FindBeyond(dtype, false)) {}

  StatusOr<size_t> WorkspaceBytes(const Stream&, int64_t rows, int64_t cols,
                                  const Ranks& ranks) const override {
    return RowRanges{rows, cols}.count() * Bytes(cols, ranks);
  }
  Status Launch(Stream&, int64_t rows, int64_t cols, const Ranks& given, const void* x_data,
                void* values_data, int64_t* places, int64_t* numbers,
                void* workspace) const override {
    const RanksOfRows ranks(given, cols);
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      const auto row_of = [&](int64_t row, char* memory) {
        const T* x = static_cast<const T*>(x_data) + row * cols;
        const int64_t wanted = ranks.count(), first = row * wanted, some = Numbers(x, cols);
        const bool found = wanted == 1 && KeepFirst(cols, ranks.At(0, some) + 1, x, places + first);
        if (numbers) numbers[row] = some;
        if (!found && !IsSorted(cols, wanted, sizeof(T))) {
          Select(ranks, cols, some, x, places + first, memory);
        } else if (!found) {
          cpu::VisitItem<T>(cols, [&]<class Item>(Tag<Item>) {
            Sorted(ranks, cols, some, x, places + first, reinterpret_cast<Item*>(memory));
          });
        }
        T* values = static_cast<T*>(values_data);
        for (int64_t i = 0; values && i < wanted; ++i) values[first + i] = x[places[first + i]];
      };
      RowRanges{rows, cols}.ForRows(workspace, Bytes(cols, given), row_of);
    });
    return OkStatus();
  }

 private:
  // Two lists of keys, or of items.
  size_t Bytes(int64_t cols, const Ranks& ranks) const {
    const size_t each = IsSorted(cols, ranks.per_row(), SizeOf(dtype_))
                            ? sizeof(cpu::WideItem)
                            : std::max<size_t>(4, SizeOf(dtype_));
    return 2 * static_cast<size_t>(cols) * each;
  }

  template <class T>
  static int64_t Numbers(const T* x, int64_t cols) {
    if constexpr (IsFloating(DTypeOf<T>())) {
      int64_t nans = 0;
      for (int64_t i = 0; i < cols; ++i) {
        const auto v = static_cast<ComputeOf<T>>(x[i]);
        nans += v != v;
      }
      return cols - nans;
    }
    return cols;
  }

  // The place of the k-th item; false as cpu::KeepFirst says, or where a selection is quicker.
  template <class T>
  bool KeepFirst(int64_t cols, int64_t k, const T* x, int64_t* place) const {
    constexpr int64_t kFew = 4;  // more of them pay where most elements come after them
    if (sizeof(T) < 8 && k > kFew && cols < kFew * k) return false;
    bool found = false;
    cpu::VisitItem<T>(cols, [&]<class Item>(Tag<Item>) {
      Item items[cpu::kFewKept];
      found = cpu::KeepFirst(cols, k, /*descending=*/false, beyond_, x, items);
      if (found) *place = items[k - 1].place();
    });
    return found;
  }

  template <class T>
  void Select(const RanksOfRows& ranks, int64_t cols, int64_t numbers, const T* x, int64_t* places,
              char* memory) const {
    using Key = cpu::KeyOf<T>;
    Key* keys = reinterpret_cast<Key*>(memory);
    cpu::EncodeKeys(KeyCodeOf(DTypeOf<T>(), /*descending=*/false), cols, x, keys);
    for (int64_t task = 0; task < ranks.count(); ++task) {
      const cpu::Selected<Key> found =
          cpu::SelectKey(keys, cols, ranks.At(task, numbers), keys + cols);
      int64_t place = cpu::NextKey(keys, 0, cols, found.key, found.key);
      for (int64_t before = found.equal; before > 0; --before) {
        place = cpu::NextKey(keys, place + 1, cols, found.key, found.key);
      }
      places[task] = place;
    }
  }

  template <class T, class Item>
  static void Sorted(const RanksOfRows& ranks, int64_t cols, int64_t numbers, const T* x,
                     int64_t* places, Item* items) {
    for (int64_t i = 0; i < cols; ++i) items[i] = Item::Of(cpu::KeyAt(x, i, false), i);
    items = cpu::SortItems(items, items + cols, cols, 8 * sizeof(T));
    for (int64_t task = 0; task < ranks.count(); ++task) {
      places[task] = items[ranks.At(task, numbers)].place();
    }
  }

  DType dtype_;
  BeyondFunction beyond_;  // before what is kept
};

StatusOr<std::unique_ptr<RankSelect>> NewRankSelect(const RankSelect::Spec& spec) {
  return std::make_unique<CpuRankSelect>(spec.dtype);
}

const bool registered = RegisterPrimitive<RankSelect>(DeviceType::kCPU, &NewRankSelect);

}  // namespace
}  // namespace oneflow_lite
