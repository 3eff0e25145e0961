// SPDX-License-Identifier: Apache-2.0
//
// The order in which an elementwise pass walks through its dims.
#pragma once

#include "oneflow_lite/core/elementwise.h"

namespace oneflow_lite {

// The pass with its dims in the order in which they lie in one operand, merged again. A pass may
// visit its elements in any order; in this one the operand is walked densely wherever it can be.
template <int N>
Elementwise<N> OrderedBy(const Elementwise<N>& g, int operand) {
  if (g.contiguous || g.ndim < 2) return g;
  const int64_t* along = g.strides[operand];
  int order[kMaxDims];
  bool moved = false;
  for (int d = 0; d < g.ndim; ++d) {  // by insertion: std::stable_sort takes memory from the heap
    int at = d;
    for (; at > 0 && along[order[at - 1]] < along[d]; --at) order[at] = order[at - 1];
    order[at] = d;
    moved = moved || at != d;
  }
  if (!moved) return g;
  int64_t dims[kMaxDims], strides[N][kMaxDims];
  for (int d = 0; d < g.ndim; ++d) {
    dims[d] = g.dims[order[d]];
    for (int i = 0; i < N; ++i) strides[i][d] = g.strides[i][order[d]];
  }
  std::array<absl::Span<const int64_t>, N> spans;
  for (int i = 0; i < N; ++i) spans[i] = {strides[i], static_cast<size_t>(g.ndim)};
  return MakeElementwise<N>({dims, static_cast<size_t>(g.ndim)}, spans);
}

}  // namespace oneflow_lite
