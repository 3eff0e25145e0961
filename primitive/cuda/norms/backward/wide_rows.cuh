// SPDX-License-Identifier: Apache-2.0
//
// Which rows a unit of the wide norms' backward visits, in which order.
#pragma once

#include "primitive/cuda/chip/pack.cuh"
#include "primitive/cuda/norms/backward/wide_policy.h"

namespace oneflow_lite {
namespace cuda {

// How a launch's blocks share out the work.
template <class T>
struct NormWideGrid {
  using C = ComputeType<T>;
  int slices;        // of a row: blocks
  int packs;         // of a slice
  int stages;        // of the ring
  int ahead;         // rows between that which is added up and that whose dx is computed
  int tensor_bytes;  // of a slice of x or dy in a stage
  int period;        // see NormWideRows
  bool needs_sums;   // else workers have nothing to add up
  C share;           // 1 / cols
  C* parts;          // of the weights' gradients, at PartPitch(cols)
  uint64_t* words;   // of NormSliceExchange, where slices are no cluster; else null
};

// Rows `period` apart start alike between multiples of 16 bytes. Where that divides the number of
// units (period 1 here), unit u visits every units-th row from row u on. Otherwise rows are put in
// an order in which those that start alike follow one another, and each unit takes an equal share
// of that: some rows that start alike, then some that start otherwise.
class NormWideRows {
 public:
  // Rows that start alike, and which of the launch's parts takes what they add to the gradients of
  // weight and bias.
  struct Some {
    int64_t row;
    int step, count, part;
    int kind;  // row % period
    __device__ __forceinline__ bool There() const { return count >= 0; }
  };

  __device__ __forceinline__ NormWideRows(int64_t rows, int unit, int units, int period)
      : rows_(static_cast<int>(rows)),
        begin_(static_cast<int>(rows * unit / units)),
        end_(static_cast<int>(rows * (unit + 1) / units)),
        unit_(unit),
        units_(units),
        period_(period) {}

  __device__ __forceinline__ Some First() const {
    if (period_ == 1) {
      return {unit_, units_, (rows_ - unit_ + units_ - 1) / units_, unit_, 0};
    }
    int kind = 0;
    while (kind + 1 < period_ && Before(kind + 1) <= begin_) ++kind;
    return Of(kind);
  }
  __device__ __forceinline__ void Next(Some& some) const {
    // The parts of all units follow one another: where the next unit begins with other rows, this
    // one has a part for these, too, if an empty one.
    if (some.kind + 1 < period_ && Before(some.kind + 1) <= end_) {
      some = Of(some.kind + 1);
    } else {
      some.count = -1;
    }
  }

 private:
  // Rows of the kinds before.
  __device__ __forceinline__ int Before(int kind) const {
    const int each = rows_ / period_, more = rows_ % period_;
    return kind * each + (kind < more ? kind : more);
  }
  __device__ __forceinline__ Some Of(int kind) const {
    const int first = Before(kind), last = Before(kind + 1);
    const int from = begin_ > first ? begin_ : first, to = end_ < last ? end_ : last;
    return {kind + int64_t{period_} * (from - first), period_, to > from ? to - from : 0,
            unit_ + kind, kind};
  }
  const int rows_, begin_, end_;  // of this unit, in that order
  const int unit_, units_, period_;
};

}  // namespace cuda
}  // namespace oneflow_lite
