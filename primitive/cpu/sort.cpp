// SPDX-License-Identifier: Apache-2.0
//
// sort, topk and unique_values: keys with their places, in order.
#include "primitive/sort.h"

#include <cstring>
#include <utility>

#include "primitive/cpu/ordered_rows.h"

namespace oneflow_lite {
namespace {

using cpu::RowRanges;

// Writes elements and, unless `indices` is null, their places from sorted items. An element is read
// where its key does not tell its bits: it may lie anywhere in x.
template <class T, class Item>
void WriteItems(const Item* items, int64_t n, bool descending, const T* x, T* values,
                int64_t* indices) {
  const KeyCode code = KeyCodeOf(DTypeOf<T>(), descending);
  for (int64_t i = 0; i < n; ++i) {
    const auto key = static_cast<cpu::KeyOf<T>>(items[i].key());
    if (indices) indices[i] = items[i].place();
    if (code.IsOneElement(key)) {
      const auto raw = static_cast<cpu::RawOf<T>>(code.Decode(key));
      std::memcpy(static_cast<void*>(values + i), &raw, sizeof raw);
    } else {
      values[i] = x[items[i].place()];
    }
  }
}

// Two lists of items for each range of rows.
size_t BytesPerRange(DType dtype, int64_t cols) {
  return VisitAll(dtype, [&]<class T>(Tag<T>) {
    const size_t item = cpu::FitsNarrow<T>(cols) ? sizeof(cpu::NarrowItem) : sizeof(cpu::WideItem);
    return 2 * static_cast<size_t>(cols) * item;
  });
}

// Elements of one byte are counted and put where they belong.
template <class T>
void SortBytes(int64_t cols, bool descending, const T* x_data, T* values_data, int64_t* indices) {
  const auto* x = reinterpret_cast<const uint8_t*>(x_data);
  auto* values = reinterpret_cast<uint8_t*>(values_data);
  const uint32_t flip = KeyCodeOf(DTypeOf<T>(), descending).template Encode<uint32_t>(0);
  int64_t next[256] = {};
  for (int64_t i = 0; i < cols; ++i) ++next[x[i] ^ flip];
  int64_t before = 0;
  for (uint32_t key = 0; key < 256; ++key) {
    std::memset(values + before, static_cast<int>(key ^ flip), static_cast<size_t>(next[key]));
    before += std::exchange(next[key], before);
  }
  for (int64_t i = 0; indices && i < cols; ++i) indices[next[x[i] ^ flip]++] = i;
}

// The places are not wanted where `indices` is null.
template <class T, class Item>
void SortRow(int64_t cols, bool descending, const T* x, T* values, int64_t* indices, Item* items) {
  if constexpr (sizeof(T) == 1) {
    if (cols >= cpu::kCountingItems) return SortBytes(cols, descending, x, values, indices);
  }
  for (int64_t i = 0; i < cols; ++i) items[i] = Item::Of(cpu::KeyAt(x, i, descending), i);
  items = cpu::SortItems(items, items + cols, cols, 8 * sizeof(T));
  WriteItems(items, cols, descending, x, values, indices);
}

class CpuSort final : public Sort {
 public:
  explicit CpuSort(DType dtype) : dtype_(dtype) {}

  StatusOr<size_t> WorkspaceBytes(const Stream&, int64_t rows, int64_t cols) const override {
    return RowRanges{rows, cols}.count() * BytesPerRange(dtype_, cols);
  }
  Status Launch(Stream&, int64_t rows, int64_t cols, bool descending, const void* x, void* values,
                int64_t* indices, void* workspace) const override {
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      cpu::VisitItem<T>(cols, [&]<class Item>(Tag<Item>) {
        RowRanges{rows, cols}.ForRows(
            workspace, BytesPerRange(dtype_, cols), [&](int64_t row, char* memory) {
              SortRow<T, Item>(cols, descending, static_cast<const T*>(x) + row * cols,
                               static_cast<T*>(values) + row * cols, indices + row * cols,
                               reinterpret_cast<Item*>(memory));
            });
      });
    });
    return OkStatus();
  }

 private:
  DType dtype_;
};

// Keeps the first of equal neighbours, and all NaNs; how many there are then.
template <class T>
int64_t KeepDifferent(T* values, int64_t n) {
  constexpr KeyCode kCode = KeyCodeOf(DTypeOf<T>(), /*descending=*/false);
  int64_t kept = 0;
  cpu::KeyOf<T> before{};
  for (int64_t i = 0; i < n; ++i) {
    const T value = values[i];
    const cpu::KeyOf<T> key = cpu::KeyAt(values, i, /*descending=*/false);
    const bool differs = i == 0 || key != before || kCode.IsNan(key);
    values[kept] = value;
    kept += differs ? 1 : 0;
    before = key;
  }
  return kept;
}

class CpuUniqueValues final : public UniqueValues {
 public:
  explicit CpuUniqueValues(DType dtype) : dtype_(dtype) {}

  StatusOr<size_t> WorkspaceBytes(const Stream&, int64_t n) const override {
    return BytesPerRange(dtype_, n);
  }
  Status Launch(Stream&, int64_t n, const void* x, void* values, int64_t* count,
                void* workspace) const override {
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      cpu::VisitItem<T>(n, [&]<class Item>(Tag<Item>) {
        SortRow<T, Item>(n, /*descending=*/false, static_cast<const T*>(x), static_cast<T*>(values),
                         nullptr, static_cast<Item*>(workspace));
      });
      *count = KeepDifferent(static_cast<T*>(values), n);
    });
    return OkStatus();
  }

 private:
  DType dtype_;
};

class CpuTopK final : public TopK {
 public:
  explicit CpuTopK(DType dtype)
      : dtype_(dtype), beyond_{FindBeyond(dtype, false), FindBeyond(dtype, true)} {}

  // Keys, as many again for the selection, and two lists of k items.
  StatusOr<size_t> WorkspaceBytes(const Stream&, const Problem& p) const override {
    return RowRanges{p.rows, p.cols}.count() * Bytes(p);
  }
  Status Launch(Stream&, const Problem& p, const void* x, void* values, int64_t* indices,
                void* workspace) const override {
    VisitAll(dtype_, [&]<class T>(Tag<T>) {
      cpu::VisitItem<T>(p.cols, [&]<class Item>(Tag<Item>) {
        RowRanges{p.rows, p.cols}.ForRows(workspace, Bytes(p), [&](int64_t row, char* memory) {
          const T* from = static_cast<const T*>(x) + row * p.cols;
          Item* items = reinterpret_cast<Item*>(memory);
          if (!cpu::KeepFirst(p.cols, p.k, p.largest, beyond_[p.largest], from, items)) {
            items = Select(p, from, items);
          }
          WriteItems(items, p.k, p.largest, from, static_cast<T*>(values) + row * p.k,
                     indices + row * p.k);
        });
      });
    });
    return OkStatus();
  }

 private:
  size_t Bytes(const Problem& p) const {
    return BytesPerRange(dtype_, p.cols) + BytesPerRange(dtype_, p.k);
  }

  // The items are those before the one of rank k - 1, and of its equals the first ones.
  template <class T, class Item>
  static Item* Select(const Problem& p, const T* x, Item* items) {
    using Key = cpu::KeyOf<T>;
    const int64_t cols = p.cols;
    Key* keys = reinterpret_cast<Key*>(items + 2 * p.k);
    cpu::EncodeKeys(KeyCodeOf(DTypeOf<T>(), p.largest), cols, x, keys);
    const cpu::Selected<Key> last = cpu::SelectKey(keys, cols, p.k - 1, keys + cols);
    int64_t kept = 0, equals = last.equal + 1;
    for (int64_t i = 0; kept < p.k; ++i) {
      const Key most = equals > 0 ? last.key : static_cast<Key>(last.key - 1);
      i = cpu::NextKey(keys, i, cols, Key{0}, most);
      equals -= keys[i] == last.key ? 1 : 0;
      items[kept++] = Item::Of(keys[i], i);
    }
    return cpu::SortItems(items, items + p.k, p.k, 8 * sizeof(T));
  }

  DType dtype_;
  BeyondFunction beyond_[2];
};

StatusOr<std::unique_ptr<Sort>> NewSort(const Sort::Spec& spec) {
  return std::make_unique<CpuSort>(spec.dtype);
}
StatusOr<std::unique_ptr<TopK>> NewTopK(const TopK::Spec& spec) {
  return std::make_unique<CpuTopK>(spec.dtype);
}

const bool sort_registered = RegisterPrimitive<Sort>(DeviceType::kCPU, &NewSort);
StatusOr<std::unique_ptr<UniqueValues>> NewUniqueValues(const UniqueValues::Spec& spec) {
  return std::make_unique<CpuUniqueValues>(spec.dtype);
}

const bool unique_registered = RegisterPrimitive<UniqueValues>(DeviceType::kCPU, &NewUniqueValues);
const bool topk_registered = RegisterPrimitive<TopK>(DeviceType::kCPU, &NewTopK);

}  // namespace
}  // namespace oneflow_lite
