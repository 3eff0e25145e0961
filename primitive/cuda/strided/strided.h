// SPDX-License-Identifier: Apache-2.0
//
// Operands of any strides, as arguments of kernels.
#pragma once

#include <stdint.h>

namespace oneflow_lite {
namespace cuda {

inline constexpr int kMaxStridedDims = 16;

// N strided operands of one shape, as a kernel argument.
template <int N>
struct Strided {
  int ndim = 0;
  bool contiguous = true;
  int64_t numel = 1;
  int64_t dims[kMaxStridedDims] = {};  // innermost first
  int64_t strides[N][kMaxStridedDims] = {};
  // Division by dims[d] of an index below 2^31: (umulhi(i, multiplier) + i) >> shift (Granlund and
  // Montgomery, "Division by Invariant Integers using Multiplication", 1994). Valid where numel is
  // below 2^31.
  uint32_t multiplier[kMaxStridedDims] = {};
  uint32_t shift[kMaxStridedDims] = {};
};

// An element given by value: its bits, in the lowest bytes.
using ScalarBits = uint64_t;

}  // namespace cuda
}  // namespace oneflow_lite
