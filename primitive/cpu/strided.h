// SPDX-License-Identifier: Apache-2.0
//
// Strided operands a chunk at a time: one loop over contiguous memory serves every geometry,
// because what does not lie in a row is first gathered into a buffer that stays in the L1 cache.
//
//   StridedReader in(g, 0, item, src, begin);
//   for (int64_t i = begin; i < end; i += kChunk) {
//     const int64_t n = std::min(kChunk, end - i);
//     loop(n, in.Read(n, buffer), ...);
//   }
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "oneflow_lite/core/elementwise.h"
#include "primitive/cpu/rearrange.h"
#include "primitive/word.h"

namespace oneflow_lite {

inline constexpr int64_t kChunk = 512;               // elements
inline constexpr int64_t kElementwiseGrain = 32768;  // elements a thread is worth starting for
struct alignas(64) ChunkBuffer {
  char bytes[kChunk * 8 + kRepeatSlack];
};

// A position in one operand of an elementwise pass, in row-major order of the pass.
class StridedCursor {
 public:
  template <int N>
  StridedCursor(const Elementwise<N>& g, int operand, int64_t begin) {
    // The dims that this operand alone allows to merge: a dense one becomes a single run.
    const int64_t* strides = g.strides[operand];
    for (int d = 0; d < g.ndim; ++d) {
      const bool merge = ndim_ > 0 && strides_[ndim_ - 1] == strides[d] * g.dims[d];
      if (!merge) ++ndim_;
      dims_[ndim_ - 1] = merge ? dims_[ndim_ - 1] * g.dims[d] : g.dims[d];
      strides_[ndim_ - 1] = strides[d];
    }
    if (ndim_ == 0) {
      ndim_ = 1;
      dims_[0] = 1;
      strides_[0] = 1;
    }
    for (int d = ndim_ - 1; d >= 0; --d) {
      index_[d] = begin % dims_[d];
      begin /= dims_[d];
      offset_ += index_[d] * strides_[d];
    }
  }

  int64_t offset() const { return offset_; }
  int64_t stride() const { return strides_[ndim_ - 1]; }
  // Elements from here on that lie stride() apart.
  int64_t run() const { return dims_[ndim_ - 1] - index_[ndim_ - 1]; }

  // Whole runs from here on that lie run_stride() apart; 0 within a run.
  int64_t runs() const {
    if (ndim_ == 1 || index_[ndim_ - 1] != 0) return 0;
    return dims_[ndim_ - 2] - index_[ndim_ - 2];
  }
  int64_t run_stride() const { return strides_[ndim_ - 2]; }

  // Moves n <= run() elements on.
  void Advance(int64_t n) { Move(ndim_ - 1, n); }
  // Moves n <= runs() runs on, from the beginning of one.
  void AdvanceRuns(int64_t n) { Move(ndim_ - 2, n); }

 private:
  void Move(int d, int64_t n) {
    index_[d] += n;
    offset_ += n * strides_[d];
    for (; d > 0 && index_[d] == dims_[d]; --d) {
      offset_ += strides_[d - 1] - dims_[d] * strides_[d];
      index_[d] = 0;
      ++index_[d - 1];
    }
  }

  int ndim_ = 0;
  int64_t offset_ = 0;
  int64_t dims_[kMaxDims];
  int64_t strides_[kMaxDims];
  int64_t index_[kMaxDims];
};

// Moves n elements of `item` bytes (1, 2, 4 or 8), which lie `src_stride` and `dst_stride` elements
// apart.
inline void CopyStrided(size_t item, int64_t n, const char* src, int64_t src_stride, char* dst,
                        int64_t dst_stride) {
  const auto run = [&]<size_t kItem>(std::integral_constant<size_t, kItem>) {
    if (src_stride == 0 && dst_stride == 1) {  // dst may not hold src: the compiler's vectors
      char element[kItem];
      std::memcpy(element, src, kItem);
      for (int64_t i = 0; i < n; ++i) {
        std::memcpy(dst + i * static_cast<int64_t>(kItem), element, kItem);
      }
      return;
    }
    // Of one element, a turn takes a cycle, or two where the loop lies across two lines of code.
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(dst + i * dst_stride * static_cast<int64_t>(kItem),
                  src + i * src_stride * static_cast<int64_t>(kItem), kItem);
    }
  };
  if (src_stride == 1 && dst_stride == 1) {
    CopyBytes(n * static_cast<int64_t>(item), src, dst);
  } else if (item == 1) {
    run(std::integral_constant<size_t, 1>());
  } else if (item == 2) {
    run(std::integral_constant<size_t, 2>());
  } else if (item == 4) {
    run(std::integral_constant<size_t, 4>());
  } else {
    run(std::integral_constant<size_t, 8>());
  }
}

// A plane's rows and columns lie so many elements apart.
struct PlaneStrides {
  int64_t row, col;
};

// Moves a plane of elements of `item` bytes (1, 2, 4 or 8): rows so short that a call for each
// would take longer than its elements.
inline void CopyPlane(size_t item, int64_t rows, int64_t cols, const char* src, PlaneStrides from,
                      char* dst, PlaneStrides to) {
  const auto width = static_cast<int64_t>(item), bytes = cols * width;
  if (from.col == 1 && to.col == 1) {
    return CopyRows(rows, bytes, src, from.row * width, dst, to.row * width);
  }
  VisitWord(item, [&]<class T>(Tag<T>) {
    const T* x = reinterpret_cast<const T*>(src);
    T* y = reinterpret_cast<T*>(dst);
    for (int64_t r = 0; r < rows; ++r, x += from.row, y += to.row) {
      for (int64_t c = 0; c < cols; ++c) y[c * to.col] = x[c * from.col];
    }
  });
}

class StridedReader {
 public:
  template <int N>
  StridedReader(const Elementwise<N>& g, int operand, size_t item, const void* base, int64_t begin)
      : cursor_(g, operand, begin),
        item_(item),
        base_(static_cast<const char*>(base)),
        repeat_(FindRepeat(item)),
        repeat_each_(FindRepeatEach(item)),
        every_second_(FindEverySecond(item)) {}

  // The next n <= kChunk elements in a row: in place, or in `buffer`, which is this reader's own.
  const void* Read(int64_t n, ChunkBuffer& buffer) {
    const char* here = At(cursor_.offset());
    if (cursor_.run() >= n && cursor_.stride() == 1) {
      cursor_.Advance(n);
      return here;
    }
    if (cursor_.run() >= n && cursor_.stride() == 0) {
      if (repeated_ != here || repeats_ < n) {
        repeat_(n, here, buffer.bytes);
        repeated_ = here;
        repeats_ = n;
      }
      cursor_.Advance(n);
      return buffer.bytes;
    }
    if (HasRepeatedRows(n)) {
      if (repeated_ != here || repeats_ < n)
        Gather(n, buffer);
      else
        cursor_.AdvanceRuns(n / cursor_.run());
      repeated_ = here;
      repeats_ = n;
      return buffer.bytes;
    }
    repeated_ = nullptr;
    Gather(n, buffer);
    return buffer.bytes;
  }

 private:
  const char* At(int64_t offset) const { return base_ + offset * static_cast<int64_t>(item_); }

  // Whether the next n elements are one row, again and again.
  bool HasRepeatedRows(int64_t n) const {
    return cursor_.runs() * cursor_.run() >= n && cursor_.run_stride() == 0 &&
           n % cursor_.run() == 0;
  }
  // Runs of a few elements are moved together.
  void Gather(int64_t n, ChunkBuffer& buffer) {
    constexpr int64_t kShort = 256;
    for (int64_t i = 0; i < n;) {
      const int64_t run = cursor_.run(), count = std::min(n - i, run);
      const int64_t runs = std::min(cursor_.runs(), (n - i) / run), stride = cursor_.stride();
      const char* from = At(cursor_.offset());
      char* to = buffer.bytes + i * static_cast<int64_t>(item_);
      if (runs > 0 && (run <= kShort || stride == 0)) {
        if (stride == 0) {
          repeat_each_(runs, run, from, cursor_.run_stride(), to);
        } else {
          CopyPlane(item_, runs, run, from, {cursor_.run_stride(), stride}, to, {run, 1});
        }
        cursor_.AdvanceRuns(runs);
        i += runs * run;
        continue;
      }
      if (stride == 2) {
        every_second_(count, from, to);
      } else {
        CopyStrided(item_, count, from, stride, to, 1);
      }
      cursor_.Advance(count);
      i += count;
    }
  }

  StridedCursor cursor_;
  size_t item_;
  const char* base_;
  RepeatFunction repeat_;
  RepeatEachFunction repeat_each_;
  EverySecondFunction every_second_;
  const char* repeated_ = nullptr;  // where an element or a row lies that fills the buffer
  int64_t repeats_ = 0;             // elements of the buffer
};

class StridedWriter {
 public:
  template <int N>
  StridedWriter(const Elementwise<N>& g, int operand, size_t item, void* base, int64_t begin)
      : cursor_(g, operand, begin), item_(item), base_(static_cast<char*>(base)) {}

  // Where to put the next n <= kChunk elements: in place, or in `buffer`. Finish moves them.
  void* Start(int64_t n, ChunkBuffer& buffer) {
    in_place_ = cursor_.run() >= n && cursor_.stride() == 1;
    return in_place_ ? base_ + cursor_.offset() * static_cast<int64_t>(item_) : buffer.bytes;
  }
  void Finish(int64_t n, const ChunkBuffer& buffer) {
    if (in_place_) {
      cursor_.Advance(n);
      return;
    }
    for (int64_t i = 0; i < n;) {
      const int64_t run = cursor_.run(), runs = std::min(cursor_.runs(), (n - i) / run);
      const char* from = buffer.bytes + i * static_cast<int64_t>(item_);
      char* to = base_ + cursor_.offset() * static_cast<int64_t>(item_);
      if (runs > 1) {
        CopyPlane(item_, runs, run, from, {run, 1}, to, {cursor_.run_stride(), cursor_.stride()});
        cursor_.AdvanceRuns(runs);
        i += runs * run;
        continue;
      }
      const int64_t count = std::min(n - i, run);
      CopyStrided(item_, count, from, 1, to, cursor_.stride());
      cursor_.Advance(count);
      i += count;
    }
  }

 private:
  StridedCursor cursor_;
  size_t item_;
  char* base_;
  bool in_place_ = true;
};

}  // namespace oneflow_lite
