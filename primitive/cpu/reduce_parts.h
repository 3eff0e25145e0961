// SPDX-License-Identifier: Apache-2.0
//
// What reductions on the CPU are cut into, and how they read and write.
#pragma once

#include <algorithm>
#include <optional>

#include "oneflow_lite/core/shape.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/reduce_loops.h"
#include "primitive/cpu/strided.h"
#include "primitive/reduce_shape.h"

namespace oneflow_lite {

inline constexpr int64_t kPartElements = 65536;  // a part of a long axis is worth a thread
inline constexpr int64_t kMaxRowParts = 256;
inline constexpr int64_t kMaxColumnParts = 16;
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

// The dims around those that are reduced. Of a dense tensor: its dims in the order in which they
// lie in memory, if that order is the given one among those that stay, and among those that are
// reduced too where places count; if the reduced ones are neighbours then; and if there are
// elements.
inline std::optional<AxisSplit> SplitInMemory(const ReduceShape& shape, bool counts_places) {
  int order[kMaxReduceDims], n = 0;
  for (int d = 0; d < shape.ndim; ++d) {
    if (shape.sizes[d] == 0) return std::nullopt;
    if (shape.sizes[d] == 1) continue;
    int at = n++;
    for (; at > 0 && shape.strides[order[at - 1]] < shape.strides[d]; --at)
      order[at] = order[at - 1];
    order[at] = d;
  }
  AxisSplit split;
  int64_t elements = 1;
  int last[2] = {shape.ndim, shape.ndim};  // of the dims that stay, and of the reduced ones
  for (int i = n - 1; i >= 0; --i) {
    const int d = order[i];
    const bool reduced = shape.reduced[d], follows = d < last[reduced];
    if (shape.strides[d] != elements || (!follows && (!reduced || counts_places))) {
      return std::nullopt;
    }
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

// How far the elements of a line lie apart that is reduced altogether; 0 of other tensors.
inline int64_t LineStride(const ReduceShape& shape) {
  int line = -1;  // its dim
  for (int d = 0; d < shape.ndim; ++d) {
    if (shape.sizes[d] == 1) continue;
    if (line >= 0 || !shape.reduced[d] || shape.sizes[d] == 0) return 0;
    line = d;
  }
  return line < 0 ? 0 : shape.strides[line];
}

// Reads elements of any dtype, which lie `stride` apart, as contiguous ones of another; uint8_t
// stands for truths.
class ChunkSource {
 public:
  ChunkSource(DType dtype, DType to, int64_t stride = 1)
      : item_(static_cast<int64_t>(SizeOf(dtype))),
        stride_(stride),
        convert_(dtype == to && stride == 1 ? nullptr : FindConvert(dtype, to)) {}

  bool converts() const { return convert_ != nullptr; }
  int64_t item() const { return item_; }  // bytes of an element in memory
  int64_t stride() const { return stride_; }
  // n elements from element `offset` on; n <= kChunk where it converts.
  const void* Load(const void* x, int64_t offset, int64_t n, void* buffer) const {
    const char* p = static_cast<const char*>(x) + offset * stride_ * item_;
    if (!convert_) return p;
    if (stride_ != 1) {
      ChunkBuffer gathered;
      CopyStrided(static_cast<size_t>(item_), n, p, stride_, gathered.bytes, 1);
      convert_(n, gathered.bytes, buffer);
      return buffer;
    }
    convert_(n, p, buffer);
    return buffer;
  }

 private:
  int64_t item_, stride_;
  ConvertFunction convert_;
};

// Columns are reduced in blocks of `width`. Where rows are short, a block is `group` whole rows
// that lie in a row in memory, added as one long vector and folded at the end. A short axis is
// better added up in fewer lanes, kChunksAtOnce groups at a time, than folded.
struct ColumnBlocks {
  static constexpr int64_t kFewLanes = 64;
  ColumnBlocks(int64_t inner, int64_t axis)
      : width(std::min(inner, kChunk)),
        group(inner > kChunk / 2
                  ? 1
                  : std::clamp(axis / (2 * kChunksAtOnce), std::max<int64_t>(1, kFewLanes / inner),
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
