// SPDX-License-Identifier: Apache-2.0
//
// Moves of elements of 1, 2, 4 or 8 bytes by vectors: rows turned round, one element repeated,
// every second one taken, and tiles transposed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oneflow_lite {

// y[i] = x[n - 1 - i]; x and y do not overlap.
using ReverseFunction = void (*)(int64_t n, const void* x, void* y);
ReverseFunction FindReverse(size_t item);

// y[i] = x[0]; x is not in y.
using RepeatFunction = void (*)(int64_t n, const void* x, void* y);
RepeatFunction FindRepeat(size_t item);

// y[i] = x[2 i]; x and y do not overlap. Reads nothing behind the last one.
using EverySecondFunction = void (*)(int64_t n, const void* x, void* y);
EverySecondFunction FindEverySecond(size_t item);

// y[r * y_stride + c] = x[c * x_stride + r] for r < rows and c < cols.
using TransposeFunction = void (*)(int64_t rows, int64_t cols, const void* x, int64_t x_stride,
                                   void* y, int64_t y_stride);
TransposeFunction FindTranspose(size_t item);

}  // namespace oneflow_lite
