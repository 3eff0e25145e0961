// SPDX-License-Identifier: Apache-2.0
//
// How a strided copy is launched: which kernel, over which elements. All of it is decided from the
// geometry and the operands' alignment. Needs no GPU.
//
//   const CopyPlan plan = PlanCopy(g, sizeof(float), src, dst);
//   if (plan.access_bytes) ...  // a transpose, in tiles
//   if (plan.repeats == Repeats::kElements) ...  // dst[i] = src[i / plan.g.dims[1]]
//   if (plan.shifted) ...  // rows whose packs of dst lie in two of src
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "oneflow_lite/core/elementwise_order.h"

namespace oneflow_lite::cuda {

// The two dims of a transpose are at least this long; below, a tile would be mostly empty.
inline constexpr int64_t kShortestTiled = 32;

// A line of which each element comes several times in a row, or which comes several times itself:
// g is then elements x times, or times x elements.
enum class Repeats { kNothing, kElements, kLine };
// From so many bytes on a line is read once for all its copies. Shorter ones stay in a GPU's L2.
inline constexpr int64_t kLongLine = int64_t{16} << 20;

// Rows of so many bytes are copied in packs, at whatever places within 16 bytes they begin and end.
inline constexpr int64_t kShortestShifted = 64;

// The most packs of `pack` elements that so many may lie in.
constexpr int64_t MostPacks(int64_t length, int64_t pack) { return (length + 2 * pack - 2) / pack; }

struct CopyPlan {
  // In elements of element_bytes. Of a transpose the last dim is dense in dst, the one before it in
  // src.
  Elementwise<2> g;
  int element_bytes = 0;
  int access_bytes = 0;  // of a transpose: what a thread loads and stores at once; 0: no transpose
  Repeats repeats = Repeats::kNothing;
  bool shifted = false;  // rows along the last dim, of any length, at any alignment
};

// Whether both operands are dense along the last dim.
inline bool IsDenseInRows(const Elementwise<2>& g) {
  return g.ndim > 0 && g.strides[0][g.ndim - 1] == 1 && g.strides[1][g.ndim - 1] == 1;
}

// Whether a thread may move `count` elements at once along the operands' dense dims (of src, of
// dst): these are whole packs, and every pack is aligned to its size.
inline bool AllowsPacks(const Elementwise<2>& g, int64_t count, const std::array<int, 2>& dense,
                        const std::array<int, 2>& element_bytes,
                        const std::array<const void*, 2>& operands) {
  for (int i = 0; i < 2; ++i) {
    if (g.dims[dense[i]] % count != 0) return false;
    if (reinterpret_cast<uintptr_t>(operands[i]) % (count * element_bytes[i]) != 0) return false;
    for (int d = 0; d < g.ndim; ++d) {
      if (d != dense[i] && g.strides[i][d] % count != 0) return false;
    }
  }
  return true;
}

// The most bytes, up to `most`, that a thread may move at once; element_bytes where it is no pack.
inline int WidestAccess(const Elementwise<2>& g, const std::array<int, 2>& dense, int element_bytes,
                        const void* src, const void* dst, int most = 16) {
  int bytes = most;
  while (bytes > element_bytes && !AllowsPacks(g, bytes / element_bytes, dense,
                                               {element_bytes, element_bytes}, {src, dst})) {
    bytes /= 2;
  }
  return bytes;
}

// The same bytes in elements `factor` times as wide. Precondition: AllowsPacks(factor) along the
// last dim, in which both operands are dense.
inline Elementwise<2> InWiderElements(Elementwise<2> g, int64_t factor) {
  const int last = g.ndim - 1;
  g.numel /= factor;
  g.dims[last] /= factor;
  for (auto& strides : g.strides) {
    for (int d = 0; d < last; ++d) strides[d] /= factor;
  }
  if (g.dims[last] == 1) --g.ndim;
  return g;
}

// The dim along which src is dense, where that and the last dim, along which dst is, are a
// transpose worth tiles; else -1. The tiles' number stays within a grid.
inline int FindTransposed(const Elementwise<2>& g) {
  const int last = g.ndim - 1;
  if (g.ndim < 2 || g.numel >= int64_t{1} << 39 || g.strides[1][last] != 1) return -1;
  if (g.dims[last] < kShortestTiled) return -1;
  for (int d = last - 1; d >= 0; --d) {
    if (g.strides[0][d] == 1 && g.dims[d] >= kShortestTiled) return d;
  }
  return -1;
}

// Whether rows are long, and no whole packs that are aligned in both operands. Their elements are
// counted in 31 bits, and packs of all rows.
inline bool AreShifted(const Elementwise<2>& g, int element_bytes, const void* src,
                       const void* dst) {
  if (!IsDenseInRows(g) || element_bytes > 8) return false;
  const int64_t length = g.dims[g.ndim - 1], pack = 16 / element_bytes;
  if (length * element_bytes < kShortestShifted || length >= int64_t{1} << 30) return false;
  const auto past = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16; };
  if (g.contiguous && past(src) == past(dst)) return false;  // one row, in packs but at its ends
  const int64_t packs = g.numel / length * MostPacks(length, pack);
  return packs < (int64_t{1} << 31) - (1 << 16) &&
         WidestAccess(g, {g.ndim - 1, g.ndim - 1}, element_bytes, src, dst) < 16;
}

// What comes several times. A line that does so is whole accesses of 16 bytes.
inline Repeats FindRepeats(const Elementwise<2>& g, int element_bytes, const void* src,
                           const void* dst) {
  const bool dense = g.ndim == 2 && g.strides[1][0] == g.dims[1] && g.strides[1][1] == 1;
  if (!dense) return Repeats::kNothing;
  if (g.strides[0][0] == 1 && g.strides[0][1] == 0) return Repeats::kElements;
  const bool line = g.strides[0][0] == 0 && g.strides[0][1] == 1 &&
                    g.dims[1] * element_bytes >= kLongLine &&
                    WidestAccess(g, {1, 1}, element_bytes, src, dst) == 16;
  return line ? Repeats::kLine : Repeats::kNothing;
}

// A copy without conversion: a transpose, what comes several times, or elements of up to 8 bytes.
// Preconditions: the operands do not overlap, and dst has no stride 0.
inline CopyPlan PlanCopy(const Elementwise<2>& geometry, int element_bytes, const void* src,
                         const void* dst) {
  CopyPlan plan{geometry, element_bytes, 0};
  Elementwise<2>& g = plan.g;
  if (g.numel == 0) return plan;
  g = OrderedBy(g, 1);
  plan.repeats = FindRepeats(g, element_bytes, src, dst);
  if (plan.repeats != Repeats::kNothing) return plan;
  const auto widen = [&](int most) {
    if (!IsDenseInRows(g)) return;
    plan.element_bytes = WidestAccess(g, {g.ndim - 1, g.ndim - 1}, element_bytes, src, dst, most);
    g = InWiderElements(g, plan.element_bytes / element_bytes);
  };
  const Elementwise<2> ordered = g;
  widen(16);
  const int rows = FindTransposed(g);
  if (rows < 0) {
    g = ordered, plan.element_bytes = element_bytes;
    plan.shifted = AreShifted(g, element_bytes, src, dst);
    if (!plan.shifted) widen(8);
    return plan;
  }
  const int cols = g.ndim - 1;
  plan.access_bytes = WidestAccess(g, {rows, cols}, plan.element_bytes, src, dst);
  std::rotate(g.dims + rows, g.dims + rows + 1, g.dims + cols);
  for (auto& strides : g.strides) {
    std::rotate(strides + rows, strides + rows + 1, strides + cols);
  }
  return plan;
}

}  // namespace oneflow_lite::cuda
