// SPDX-License-Identifier: Apache-2.0
//
// Moves of elements of 1, 2, 4 or 8 bytes by vectors: rows copied and turned round, one element
// repeated, every second one taken, and tiles transposed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace oneflow_lite {

// memcpy, for bytes by the thousand that do not lie at whole vectors.
void CopyByVectors(int64_t bytes, const void* x, void* y);

// The same for any number of bytes and wherever they lie. memcpy copies 2 KB to 1 MB by rep movsb,
// which on Zen is 16 times as slow where y lies 1 to 31 bytes behind x on its page of 4096 bytes,
// and up to 1.6 times as slow as vectors wherever one of the two is at no line's begin.
inline void CopyBytes(int64_t bytes, const void* x, void* y) {
  constexpr int64_t kLeast = 2048, kMost = 1 << 20;
  constexpr uintptr_t kLine = 64;
  const uintptr_t places = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y);
  if (bytes >= kLeast && bytes < kMost && places % kLine != 0) return CopyByVectors(bytes, x, y);
  std::memcpy(y, x, static_cast<size_t>(bytes));
}

// Rows of `bytes` each, moved from x to y, where they lie so many bytes apart: rows so short that a
// call for each would take longer than its bytes. Reads and writes nothing between the rows.
void CopyRows(int64_t rows, int64_t bytes, const void* x, int64_t x_stride, void* y,
              int64_t y_stride);

// y[r * y_stride + i] = x[r * x_stride + n - 1 - i] for r < rows; x and y do not overlap.
using ReverseFunction = void (*)(int64_t rows, int64_t n, const void* x, int64_t x_stride, void* y,
                                 int64_t y_stride);
ReverseFunction FindReverse(size_t item);

// y[i] = x[0]; x is not in y.
using RepeatFunction = void (*)(int64_t n, const void* x, void* y);
RepeatFunction FindRepeat(size_t item);

// y[r * length + i] = x[r * x_stride] for r < rows and i < length. Writes up to kRepeatSlack bytes
// behind the last one; x is not in y.
using RepeatEachFunction = void (*)(int64_t rows, int64_t length, const void* x, int64_t x_stride,
                                    void* y);
RepeatEachFunction FindRepeatEach(size_t item);
inline constexpr size_t kRepeatSlack = 64;

// y[i] = x[2 i]; x and y do not overlap. Reads nothing behind the last one.
using EverySecondFunction = void (*)(int64_t n, const void* x, void* y);
EverySecondFunction FindEverySecond(size_t item);

// y[r * y_stride + c] = x[c * x_stride + r] for r < rows and c < cols.
using TransposeFunction = void (*)(int64_t rows, int64_t cols, const void* x, int64_t x_stride,
                                   void* y, int64_t y_stride);
TransposeFunction FindTranspose(size_t item);

}  // namespace oneflow_lite
