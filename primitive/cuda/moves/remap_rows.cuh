// SPDX-License-Identifier: Apache-2.0
//
// The rows of a remap that are read in runs: columns that are neighbours in what is read, in order,
// or backwards. Places and indices have 32 bits.
#pragma once

#include "primitive/cuda/chip/pack.cuh"
#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/remap_kinds.h"

namespace oneflow_lite {
namespace cuda {

// Columns [from, to), which show the places from + by, from + by + 1, ...; turned round, all
// columns and places.
struct ColumnRun {
  int32_t from, to, by;
  OFL_HOST_DEVICE int32_t length() const { return to - from; }
};

struct RemapRows {
  // The dims that a kernel reads for each element are no array's, so that where they are in its
  // arguments is known when it is compiled: flip(1) of 64 M float16 on an H200 took 65 us with
  // them, and 72 with an array for all.
  Divisor width_by, near_by, far_by[RemapShape::kMost];
  RemapDim last, near;              // the columns, and the innermost dim of the rows
  RemapDim far[RemapShape::kMost];  // the other dims of the rows, outermost last
  int fars = 0;
  uint32_t numel;
  int32_t width;  // columns
  // The runs that are worth packs, and which columns are in none: those before `from`, and from
  // `to` on.
  static constexpr int kMostRuns = 3;
  ColumnRun runs[kMostRuns];
  int count = 0;
  int32_t from, to;

  // Runs of fewer columns than `least` are none.
  RemapRows(const RemapShape& s, int64_t least)
      : width_by(s.dims[s.ndim - 1].out),
        last(s.dims[s.ndim - 1]),
        numel(static_cast<uint32_t>(s.numel)),
        width(static_cast<int32_t>(last.out)) {
    if (s.ndim > 1) near = s.dims[s.ndim - 2];
    near_by = Divisor(near.out);
    for (int d = s.ndim - 3; d >= 0; --d) {
      far[fars] = s.dims[d];
      far_by[fars++] = Divisor(s.dims[d].out);
    }
    const auto within = [&](int64_t i) {
      return static_cast<int32_t>(i < 0 ? 0 : i > last.out ? last.out : i);
    };
    const auto shift = static_cast<int32_t>(last.shift), size = static_cast<int32_t>(last.size);
    // Where the places themselves begin and end, and what wraps round lies before and behind.
    const bool flip = last.mode == RemapMode::kFlip, wraps = last.mode == RemapMode::kWrap;
    const int32_t begin = flip ? 0 : within(-last.shift);
    const int32_t end = flip ? width : within(last.size - last.shift);
    from = begin, to = begin;
    const auto add = [&](const ColumnRun& run) {
      if (run.length() < least) return false;
      runs[count++] = run;
      return true;
    };
    if (wraps && add({0, begin, shift + size})) from = 0;
    if (add({begin, end, shift})) to = end;
    if (count == 0) from = to = end;
    if (wraps && to == end && add({end, width, shift - size})) to = width;
  }
  int64_t beside() const { return from + width - to; }  // columns in no run

  // The row of an index, and the column in it.
  __device__ __forceinline__ uint32_t RowOf(uint32_t i, int32_t* column) const {
    const uint32_t row = width_by.Quotient(i);
    *column = static_cast<int32_t>(i - row * static_cast<uint32_t>(width));
    return row;
  }
  // Where a row begins in what is read; -1: nowhere.
  __device__ __forceinline__ int32_t OffsetOf(uint32_t row) const {
    uint32_t i = row, rest = 0;
    if (fars > 0) {
      rest = near_by.Quotient(row);
      i = row - rest * static_cast<uint32_t>(near.out);
    }
    int32_t place = near.PlaceAs(static_cast<int32_t>(i)), all = place;
    int32_t offset = place * static_cast<int32_t>(near.stride);
#pragma unroll 1
    for (int d = 0; d < fars; ++d) {
      uint32_t next = 0;
      if (d + 1 < fars) next = far_by[d].Quotient(rest);
      place = far[d].PlaceAs(static_cast<int32_t>(rest - next * static_cast<uint32_t>(far[d].out)));
      all |= place, offset += place * static_cast<int32_t>(far[d].stride), rest = next;
    }
    return all < 0 ? -1 : offset;
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
