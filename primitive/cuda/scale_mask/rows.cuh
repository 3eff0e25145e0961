// SPDX-License-Identifier: Apache-2.0
//
// Scores, masks and results in memory, as the row algorithms of scale_mask/scale_mask_softmax.cuh
// see them.
#pragma once

#include "primitive/cuda/rows/masks.cuh"
#include "primitive/cuda/softmax/math.cuh"

namespace oneflow_lite::cuda {

enum class MaskType { kNone, kBool, kOwn, kWide };  // of x's own type; of the compute type

// The order in which matrices of `queries` rows are visited that share one mask: so many rows of
// each before the next rows of any. In the order of memory a mask of many megabytes has left the L2
// before the next matrix asks for it.
struct MatrixTiles {
  Divisor<uint32_t> group;       // rows of the matrices that share a mask
  Divisor<uint32_t> turn;        // ... in a turn
  Divisor<uint32_t> rows, last;  // of one matrix in a turn, and in the last one
  uint32_t queries = 1;
  bool on = false;  // else rows are visited in the order of memory

  OFL_DEVICE int64_t RowOf(int64_t place) const {
    if (!on) return place;
    const auto p = static_cast<uint32_t>(place);
    const uint32_t in_group = group.Remainder(p), at = turn.Quotient(in_group);
    const uint32_t first = at * rows.value, in_turn = in_group - at * turn.value;
    const Divisor<uint32_t> each = first + last.value == queries ? last : rows;
    const uint32_t matrix = each.Quotient(in_turn), in_matrix = in_turn - matrix * each.value;
    return (p - in_group) + matrix * queries + first + in_matrix;
  }
};
// `matrices` of `queries` rows share a mask; there are fewer than 2^31 rows in all.
inline MatrixTiles MakeMatrixTiles(int64_t matrices, int64_t queries, int64_t rows) {
  MatrixTiles tiles;
  if (rows >= queries) return tiles;
  tiles.group = MakeDivisor<uint32_t>(matrices * queries);
  tiles.turn = MakeDivisor<uint32_t>(matrices * rows);
  tiles.rows = MakeDivisor<uint32_t>(rows);
  tiles.last = MakeDivisor<uint32_t>(queries % rows ? queries % rows : rows);
  tiles.queries = static_cast<uint32_t>(queries);
  tiles.on = true;
  return tiles;
}

template <class T, class Index>
struct MaskedRows {
  using Column = std::conditional_t<sizeof(Index) == 4, int32_t, int64_t>;  // how far columns reach
  const T* x;
  int64_t cols;  // of a row of x, y; the next one follows
  DirectStore<T> y;
  const char* mask;  // may be null
  int mask_item;     // bytes of an element
  MaskType type;
  bool mask_is_aligned;  // to packs of x, or to 16 bytes, in every row
  bool zero_masked_rows;
  ComputeType<T> scale;
  CausalRows<Index> causal;
  RowBroadcast<Index> where;
  MatrixTiles tiles;

  // The same for one row alone, with its addresses worked out.
  OFL_DEVICE MaskedRows At(int64_t place) const {
    const int64_t row = tiles.RowOf(place);
    MaskedRows here = *this;
    here.x += row * cols;
    here.y = y.At(row);
    here.causal = causal.At(row);
    if (mask) here.mask += where.Offset(row) * mask_item;
    here.where = where.Begun();
    here.tiles.on = false;
    return here;
  }
  // Of the row at hand.
  OFL_DEVICE Column Visible() const { return static_cast<Column>(causal.Visible(0)); }
  OFL_DEVICE bool IsAligned(int64_t head) const {
    // Where masks are aligned to x's packs, heads are 0.
    return IsAlignedFor<uint4>(x + head) && (!mask || (mask_is_aligned && head == 0));
  }
  // The score of x under the mask's m: -inf, whatever x is, where a boolean mask hides it.
  template <class M>
  OFL_DEVICE ComputeType<T> Score(ComputeType<T> x, M m) const {
    using C = ComputeType<T>;
    if constexpr (std::is_same_v<M, bool>) {
      return m ? x * scale : MinusInfinity<C>();
    } else {
      return x * scale + ConvertTo<C>(m);
    }
  }
  // What exponentials that sum up to this are multiplied by; NaN times the 0 of a masked row.
  OFL_DEVICE ComputeType<T> GainOf(ComputeType<T> sum) const {
    using C = ComputeType<T>;
    return zero_masked_rows && sum == C(0) ? C(0) : C(1) / sum;
  }
  template <Access kAccess, int N>
  OFL_DEVICE Pack<T, N> Load(int64_t col) const {
    return LoadFrom<kAccess, N>(DirectLoad<T>{x, 0}, 0, col);
  }
};

}  // namespace oneflow_lite::cuda
