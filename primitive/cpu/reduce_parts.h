// SPDX-License-Identifier: Apache-2.0
//
// What reductions on the CPU are cut into, and how they read and write.
#pragma once

#include <algorithm>
#include <optional>

#include "oneflow_lite/core/shape.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/rearrange.h"
#include "primitive/cpu/reduce_loops.h"
#include "primitive/cpu/strided.h"
#include "primitive/reduce_shape.h"

namespace oneflow_lite {

inline constexpr int64_t kPartElements = 65536;  // a part of a long axis is worth a thread
inline constexpr int64_t kMaxRowParts = 256;
inline constexpr int64_t kMaxColumnParts = 16;
inline constexpr int64_t kRowsAtOnce = 8;  // of columns, between a load and a store of their lanes
inline constexpr int64_t kTermsPerLane = 32;  // in float32 before they go into a double
// Rows so short are taken as columns, at one or two cycles an element instead of some 60 a row.
inline constexpr int64_t kShortAxis = 32;
static_assert(kShortAxis <= kTermsPerLane);
inline constexpr int64_t kShortTile = 8192;  // bytes

// An axis as parts of equal size.
struct AxisParts {
  AxisParts(int64_t axis, int64_t smallest, int64_t most)
      : axis(axis),
        size(std::max({int64_t{1}, smallest, (axis + most - 1) / most})),
        count(std::max<int64_t>(1, (axis + size - 1) / size)) {}
  int64_t Begin(int64_t i) const { return i * size; }
  int64_t End(int64_t i) const { return std::min(axis, (i + 1) * size); }

  int64_t axis, size, count;
};

template <class C>
inline constexpr DType kDTypeOfChunks = std::is_same_v<C, uint8_t> ? DType::kBool : DTypeOf<C>();

// The dims of more than one element, those that lie farthest apart first, and of two alike (as of
// windows, which overlap) the one that is reduced; how many, or -1 where a dim is empty.
inline int OrderInMemory(const ReduceShape& shape, int* order) {
  int n = 0;
  for (int d = 0; d < shape.ndim; ++d) {
    if (shape.sizes[d] == 0) return -1;
    if (shape.sizes[d] == 1) continue;
    int at = n++;
    const auto lies_inside = [&](int k) {
      if (shape.strides[k] != shape.strides[d]) return shape.strides[k] < shape.strides[d];
      return shape.reduced[d] && !shape.reduced[k];
    };
    for (; at > 0 && lies_inside(order[at - 1]); --at) order[at] = order[at - 1];
    order[at] = d;
  }
  return n;
}

// The dims around those that are reduced. Of a dense tensor: its dims in the order in which they
// lie in memory, if that order is the given one among those that stay, and among those that are
// reduced; if the reduced ones are neighbours then; and if there are elements.
inline std::optional<AxisSplit> SplitInMemory(const ReduceShape& shape) {
  int order[kMaxReduceDims];
  const int n = OrderInMemory(shape, order);
  if (n < 0) return std::nullopt;
  AxisSplit split;
  int64_t elements = 1;
  int last[2] = {shape.ndim, shape.ndim};  // of the dims that stay, and of the reduced ones
  for (int i = n - 1; i >= 0; --i) {
    const int d = order[i];
    const bool reduced = shape.reduced[d];
    if (shape.strides[d] != elements || d >= last[reduced]) return std::nullopt;
    last[reduced] = d;
    elements *= shape.sizes[d];
    if (reduced && split.outer > 1) return std::nullopt;
    (reduced ? split.axis : split.axis > 1 ? split.outer : split.inner) *= shape.sizes[d];
  }
  return split;
}
// Of a tensor that is dense as it is given, whose reduced dims are neighbours.
inline AxisSplit SplitOf(const ReduceShape& shape) {
  AxisSplit split;
  int first = 0, end = shape.ndim;
  while (first < shape.ndim && !shape.reduced[first]) ++first;
  while (end > first && !shape.reduced[end - 1]) --end;
  for (int d = 0; d < shape.ndim; ++d) {
    (d < first ? split.outer : d < end ? split.axis : split.inner) *= shape.sizes[d];
  }
  return split;
}

// Where the dims around those that are reduced lie, whose elements may lie apart: element (o, a, i)
// is o * outer_stride + a * axis_stride + i.
struct ReduceSplit : AxisSplit {
  int64_t outer_stride = 0, axis_stride = 0;

  ReduceSplit() = default;
  // Of a dense tensor.
  explicit ReduceSplit(const AxisSplit& dense)
      : AxisSplit(dense), outer_stride(axis * inner), axis_stride(inner) {}
};

// Of a tensor whose dims merge into those three, in the order in which they lie in memory, if those
// that stay are in the given order then; none where that would be slower than a copy.
inline std::optional<ReduceSplit> StridedSplit(const ReduceShape& shape) {
  struct Group {
    bool reduced;
    int64_t size, stride;
  };
  int order[kMaxReduceDims];
  const int n = OrderInMemory(shape, order);
  if (n < 0) return std::nullopt;
  Group groups[3];
  int count = 0, last = shape.ndim;  // of the dims that stay
  for (int i = n - 1; i >= 0; --i) {
    const int d = order[i];
    const bool reduced = shape.reduced[d];
    if (!reduced && d > last) return std::nullopt;
    if (!reduced) last = d;
    Group* before = count > 0 ? &groups[count - 1] : nullptr;
    if (before && before->reduced == reduced && shape.strides[d] == before->stride * before->size) {
      before->size *= shape.sizes[d];
    } else if (count == 3) {
      return std::nullopt;
    } else {
      groups[count++] = {reduced, shape.sizes[d], shape.strides[d]};
    }
  }
  constexpr int64_t kFewColumns = 64;
  ReduceSplit split;
  int k = 0;
  if (k < count && !groups[k].reduced) {
    if (groups[k].stride != 1) return std::nullopt;
    split.inner = groups[k++].size;
  }
  split.axis_stride = split.inner;
  if (k < count && groups[k].reduced) {
    split.axis = groups[k].size;
    split.axis_stride = groups[k++].stride;
  }
  split.outer_stride = split.axis * split.inner;
  if (k < count && !groups[k].reduced) {
    split.outer = groups[k].size;
    split.outer_stride = groups[k++].stride;
  }
  const bool lies_apart = split.axis_stride != split.inner;
  const bool slow = lies_apart && (split.inner == 1 ? split.outer > 1 : split.inner < kFewColumns);
  if (k < count || slow) return std::nullopt;
  return split;
}

// Reads elements of any dtype, which lie `stride` apart, as contiguous ones of another; uint8_t
// stands for truths.
class ChunkSource {
 public:
  ChunkSource(DType dtype, DType to, int64_t stride = 1)
      : item_(static_cast<int64_t>(SizeOf(dtype))),
        stride_(stride),
        every_second_(FindEverySecond(SizeOf(dtype))),
        convert_(dtype == to ? nullptr : FindConvert(dtype, to)) {}

  // Whether Load fills the buffer.
  bool copies() const { return convert_ || stride_ != 1; }
  int64_t item() const { return item_; }  // bytes of an element in memory
  int64_t stride() const { return stride_; }
  // n elements from element `offset` on; n <= kChunk where it copies.
  const void* Load(const void* x, int64_t offset, int64_t n, void* buffer) const {
    const char* p = static_cast<const char*>(x) + offset * stride_ * item_;
    if (!copies()) return p;
    ChunkBuffer gathered;
    if (stride_ != 1) p = Gather(n, p, convert_ ? gathered.bytes : static_cast<char*>(buffer));
    if (convert_) convert_(n, p, buffer);
    return buffer;
  }

 private:
  const char* Gather(int64_t n, const char* from, char* to) const {
    if (stride_ == 2) {
      every_second_(n, from, to);
    } else {
      CopyStrided(static_cast<size_t>(item_), n, from, stride_, to, 1);
    }
    return to;
  }

  int64_t item_, stride_;
  EverySecondFunction every_second_;
  ConvertFunction convert_;
};

// Columns are reduced in blocks of `width`. Where rows are short, a block is `group` whole rows
// that lie in a row in memory, added as one long vector and folded at the end. A short axis is
// better added up in fewer lanes, kRowsAtOnce groups at a time, than folded.
struct ColumnBlocks {
  static constexpr int64_t kFewLanes = 64;
  // `dense`: rows lie one after another.
  ColumnBlocks(int64_t inner, int64_t axis, bool dense = true)
      : width(std::min(inner, kChunk)),
        group(inner > kChunk / 2 || !dense
                  ? 1
                  : std::clamp(axis / (2 * kRowsAtOnce), std::max<int64_t>(1, kFewLanes / inner),
                               kChunk / inner)),
        count((inner + width - 1) / width) {}
  int64_t width, group, count;
};

// The outputs of a reducer: results of C, rounded to the output's dtype.
template <class C>
class ReduceOutput {
 public:
  ReduceOutput(void* y, DType dtype)
      : y_(static_cast<char*>(y)), item_(static_cast<int64_t>(SizeOf(dtype))) {
    if (y) convert_ = FindConvert(DTypeOf<C>(), dtype);
  }
  // result(i) for the n <= kChunk elements from `index` on; nothing without an output.
  template <class F>
  void Write(int64_t n, int64_t index, F result) const {
    if (!y_ || n <= 0) return;
    C results[kChunk];
    for (int64_t i = 0; i < n; ++i) results[i] = static_cast<C>(result(i));
    convert_(n, results, y_ + index * item_);
  }
  void Copy(int64_t n, int64_t index, const C* results) const {
    if (y_) convert_(n, results, y_ + index * item_);
  }

 private:
  char* y_;
  int64_t item_;
  ConvertFunction convert_ = nullptr;
};

}  // namespace oneflow_lite
