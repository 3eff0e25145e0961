// SPDX-License-Identifier: Apache-2.0
//
// The geometry of an elementwise pass: N operands of one broadcast shape, with dims that lie
// densely in each other merged, so that contiguous operands become one long row.
//
//   auto g = MakeElementwise<2>(shape, {src_strides, dst_strides});
//   if (g.contiguous) ...  // both are g.numel elements in a row
#pragma once

#include <array>
#include <cstdint>

#include "oneflow_lite/core/shape.h"

namespace oneflow_lite {

// The most dims a tensor may have.
inline constexpr int kMaxDims = 16;

// Plain data, so that a CUDA kernel can take it as an argument.
template <int N>
struct Elementwise {
  int ndim = 0;  // after merging; 0 for a single element
  int64_t numel = 1;
  bool contiguous = true;             // every operand: stride 1 in one merged dim
  int64_t dims[kMaxDims] = {};        // outermost first
  int64_t strides[N][kMaxDims] = {};  // elements; 0 where an operand is broadcast
};

// Merges dims. Precondition: at most kMaxDims dims; every strides list as long as shape.
template <int N>
Elementwise<N> MakeElementwise(absl::Span<const int64_t> shape,
                               const std::array<absl::Span<const int64_t>, N>& strides) {
  Elementwise<N> g;
  for (size_t d = 0; d < shape.size(); ++d) {
    g.numel *= shape[d];
    if (shape[d] == 1) continue;
    bool merge = g.ndim > 0;
    for (int i = 0; merge && i < N; ++i) {
      merge = g.strides[i][g.ndim - 1] == strides[i][d] * shape[d];
    }
    if (!merge) ++g.ndim;
    g.dims[g.ndim - 1] = merge ? g.dims[g.ndim - 1] * shape[d] : shape[d];
    for (int i = 0; i < N; ++i) g.strides[i][g.ndim - 1] = strides[i][d];
  }
  for (int i = 0; i < N; ++i) {
    g.contiguous = g.contiguous && (g.ndim == 0 || (g.ndim == 1 && g.strides[i][0] == 1));
  }
  return g;
}

}  // namespace oneflow_lite
