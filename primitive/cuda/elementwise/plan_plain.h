// SPDX-License-Identifier: Apache-2.0
//
// Plans of plain rows and plain tiles (plain_rows.h). Needs no GPU.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "oneflow_lite/core/elementwise.h"
#include "primitive/cuda/elementwise/plain_rows.h"

namespace oneflow_lite::cuda {

// Dims as long as this are worth tiles: a warp's threads lie along them.
inline constexpr int64_t kShortestAcross = 32;
// Rows of so many packs are worth packs that are not whole, at their ends.
inline constexpr int64_t kShortestPlain = 4;
// From so many packs on a thread may have several rows: blocks fill an H200 once then.
inline constexpr int64_t kManyPlainPacks = int64_t{1} << 20;

namespace internal {

inline void SetDivisor(uint32_t divisor, uint32_t* multiplier, uint32_t* shift) {
  *shift = 0;
  while ((uint64_t{1} << *shift) < divisor) ++*shift;
  *multiplier = static_cast<uint32_t>(
      (uint64_t{1} << 32) * ((uint64_t{1} << *shift) - divisor) / divisor + 1);
}

// Appends a dim of the index, in which operand m has the stride of(m), in bytes.
template <int N, class F>
void AppendDim(Pass<N>& p, int64_t size, F of) {
  const int d = p.ndim++;
  p.dims[d] = static_cast<uint32_t>(size);
  if (size > 0) SetDivisor(p.dims[d], &p.multiplier[d], &p.shift[d]);
  for (int m = 0; m <= N; ++m) p.strides[m][d] = static_cast<uint32_t>(of(m));
}

// The dim along which an input is dense that is not dense along the row, or -1.
template <int N>
int FindAcross(const Pass<N>& p, const Elementwise<N + 1>& g) {
  for (int m = 0; m < N; ++m) {
    if (p.form[m] != Form::kStepped) continue;
    for (int d = g.ndim - 2; d >= 0; --d) {
      if (g.strides[m][d] == 1 && g.dims[d] >= kShortestAcross) return d;
    }
  }
  return -1;
}

// Whether rows and whatever lies beside them begin at such boundaries in operand m. `except`: a dim
// that does not matter, or -1.
template <int N>
bool IsAlignedTo(const Pass<N>& p, const Elementwise<N + 1>& g, int m, int64_t bytes,
                 int64_t boundary, int except) {
  bool aligned = reinterpret_cast<intptr_t>(m < N ? p.in[m] : p.out) % boundary == 0;
  for (int d = 0; d < g.ndim; ++d) {
    aligned = aligned && (d == except || g.strides[m][d] * bytes % boundary == 0);
  }
  return aligned;
}

// Threads of packs in rows. Precondition: no input is kStepped.
template <int N>
void DivideIntoPlainRows(Pass<N>& p, const Elementwise<N + 1>& g,
                         const std::array<int64_t, N + 1>& bytes, bool whole) {
  const int last = g.ndim - 1;
  const auto stride = [&](int m, int d) { return d < 0 ? 0 : g.strides[m][d] * bytes[m]; };
  const int64_t packs = whole ? p.length / kPlainPack : MostPlainPacks(p.length);
  const int64_t all = p.numel / p.length * packs;
  p.walk = Walk::kPlainRows;
  p.whole = whole;
  p.rows = last < 1 ? 1 : static_cast<int>(g.dims[last - 1]);
  bool small = whole && all >= kManyPlainPacks;  // all inputs beside the output
  for (int m = 0; m <= N; ++m) {
    p.across[m] = static_cast<uint32_t>(stride(m, last - 1));
    if (m < N && p.form[m] == Form::kPacked) small = small && p.across[m] == 0;
  }
  p.taken = static_cast<uint32_t>(small ? std::min(p.rows, kPlainRows) : 1);
  const int64_t groups = (p.rows + p.taken - 1) / p.taken;
  AppendDim<N>(p, packs, [&](int m) { return p.step[m] * kPlainPack; });
  AppendDim<N>(p, groups, [&](int m) { return stride(m, last - 1) * p.taken; });
  for (int d = last - 2; d >= 0; --d) {
    AppendDim<N>(p, g.dims[d], [&](int m) { return stride(m, d); });
  }
  p.units = static_cast<uint32_t>(all / p.rows * groups);
  p.blocks = (p.units + kPlainThreads - 1) / kPlainThreads;
}

// Tiles where packs along rows, and of crossed inputs along the dim `across`, are all whole and
// begin at boundaries. False where they do not.
template <int N>
bool DivideIntoPlainTiles(Pass<N>& p, const Elementwise<N + 1>& g,
                          const std::array<int64_t, N + 1>& bytes, int across) {
  const int last = g.ndim - 1;
  const int64_t rows = g.dims[across];
  if (p.length < kShortestAcross || p.length % kPlainPack != 0 || rows % kPlainPack != 0) {
    return false;
  }
  uint32_t crossed = 0;
  for (int m = 0; m <= N; ++m) {
    if (m < N && p.form[m] == Form::kValue) continue;
    const bool down = m < N && p.form[m] == Form::kStepped && g.strides[m][across] == 1;
    if (m < N && p.form[m] != Form::kPacked && !down) return false;
    if (!IsAlignedTo<N>(p, g, m, bytes[m], bytes[m] * kPlainPack, down ? across : last))
      return false;
    crossed |= down ? 1u << m : 0;
  }
  p.walk = Walk::kPlainTiles;
  p.crossed = crossed;
  p.rows = static_cast<int>(rows);
  for (int m = 0; m <= N; ++m) {
    p.across[m] = static_cast<uint32_t>(g.strides[m][across] * bytes[m]);
  }
  AppendDim<N>(p, (p.length + PlainTile::kCols - 1) / PlainTile::kCols,
               [&](int m) { return p.step[m] * PlainTile::kCols; });
  AppendDim<N>(p, (rows + PlainTile::kRows - 1) / PlainTile::kRows,
               [&](int m) { return p.across[m] * PlainTile::kRows; });
  p.blocks = p.dims[0] * p.dims[1];
  for (int d = last - 1; d >= 0; --d) {
    if (d == across) continue;
    AppendDim<N>(p, g.dims[d], [&](int m) { return g.strides[m][d] * bytes[m]; });
    p.blocks *= static_cast<uint32_t>(g.dims[d]);
  }
  return true;
}

// Rows or tiles of a pass whose operands are one 16-bit float, or where those are bool its results.
// False of what other walks serve: one dense run of operands that are aligned alike, narrow rows
// that are not whole packs, and all the rest.
template <int N>
bool DividePlain(Pass<N>& p, const Elementwise<N + 1>& g, const std::array<int64_t, N + 1>& bytes) {
  const int last = g.ndim - 1;
  if (int64_t{p.step[N]} != bytes[N]) return false;
  const int across = FindAcross<N>(p, g);
  if (across >= 0) return DivideIntoPlainTiles<N>(p, g, bytes, across);
  const auto past = [&](int m) {
    return reinterpret_cast<uintptr_t>(m < N ? p.in[m] : p.out) / bytes[m] % kPlainPack;
  };
  bool whole = p.length % kPlainPack == 0, alike = g.ndim <= 1;
  for (int m = 0; m <= N; ++m) {
    if (m < N && p.form[m] == Form::kStepped) return false;
    const bool packed = m == N || p.form[m] == Form::kPacked;
    alike = alike && (packed ? past(m) == past(N) : p.form[m] == Form::kValue);
    if (packed) whole = whole && IsAlignedTo<N>(p, g, m, bytes[m], bytes[m] * kPlainPack, last);
  }
  if (alike || (!whole && p.length < kShortestPlain * kPlainPack)) return false;
  DivideIntoPlainRows<N>(p, g, bytes, whole);
  return true;
}

}  // namespace internal
}  // namespace oneflow_lite::cuda
