// SPDX-License-Identifier: Apache-2.0
//
// Planes of a pass that an operand walks the other way round: the result runs along the last dim,
// the operand along another one. Tile by tile both are walked along their cache lines.
//
//   if (const TransposedPlane plane = FindTransposedPlane(g, 0, 1); plane.row >= 0) {
//     ForStrips(g, plane, TileRows(item), [&](const auto& offsets, int64_t rows) { ... });
//   }
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "oneflow_lite/core/elementwise.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/strided.h"

namespace oneflow_lite {

// A tile has as many rows of the result as elements of the operand are in a cache line, and of each
// row four lines or fewer. Items are of 1 to 8 bytes.
inline constexpr int64_t kLine = 64, kTileBytes = 8192;
constexpr int64_t TileRows(int64_t item) { return kLine / item; }
constexpr int64_t TileCols(int64_t item) { return std::min<int64_t>(128, 4 * kLine / item); }
static_assert(TileRows(1) * TileCols(1) <= kTileBytes);

struct TransposedPlane {
  int row = -1;  // the dim along which the operand runs; none if negative
  int64_t rows = 0, cols = 0;
};

template <int N>
TransposedPlane FindTransposedPlane(const Elementwise<N>& g, int operand, int result) {
  const int last = g.ndim - 1;
  if (g.ndim < 2 || g.strides[result][last] != 1 || g.strides[operand][last] <= 1) return {};
  for (int d = 0; d < last; ++d) {
    const bool triples = g.dims[d] == 3 && g.strides[operand][last] == 3;
    if (g.strides[operand][d] == 1 && (g.dims[d] >= 4 || triples) && g.dims[last] >= 4) {
      return {d, g.dims[d], g.dims[last]};
    }
  }
  return {};
}

// Calls f(offsets, rows) for each strip of at most `height` rows of every plane, on several
// threads: the offsets, one for each operand, are those of the strip's first element.
template <int N, class F>
void ForStrips(const Elementwise<N>& g, const TransposedPlane& plane, int64_t height, const F& f) {
  Elementwise<N> outer = g;  // the pass over planes: the plane's dims shrunk to 1
  outer.dims[plane.row] = outer.dims[g.ndim - 1] = 1;
  const int64_t planes = g.numel / (plane.rows * plane.cols);
  const int64_t strips = (plane.rows + height - 1) / height;
  const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / (height * plane.cols));
  ParallelFor(planes * strips, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % strips * height;
      std::array<int64_t, N> offsets;
      for (int k = 0; k < N; ++k) {
        offsets[k] = row * g.strides[k][plane.row];
        int64_t index = i / strips;
        for (int d = g.ndim - 1; d >= 0; --d) {
          offsets[k] += index % outer.dims[d] * g.strides[k][d];
          index /= outer.dims[d];
        }
      }
      f(offsets, std::min(height, plane.rows - row));
    }
  });
}

}  // namespace oneflow_lite
