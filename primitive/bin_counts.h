// SPDX-License-Identifier: Apache-2.0
//
// How many elements are in each of some bins of one width, or the sum of their weights, without a
// search: histc and histogram; and how often each integer occurs: bincount.
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

class BinCounts {
 public:
  static constexpr char kName[] = "bin_counts";
  struct Spec {
    DType dtype = DType::kFloat32;  // or float64 or int64
  };
  virtual ~BinCounts() = default;
  // Of the n elements of x within [low, high] the number in each bin (int64), or, if there are
  // weights, their sum (both of the dtype); the last bin has both ends, NaN is in none. Without
  // edges an element's bin is (x - low) * bins / (high - low), computed in the dtype step by step
  // (of integers in float64) and cut off. With bins + 1 edges that never fall, whose first is low
  // and whose last is high, it is the last bin that begins at x or before. Edges and weights are
  // for the CPU alone.
  virtual Status Launch(Stream& stream, int64_t n, const void* x, int64_t bins, double low,
                        double high, const void* edges, const void* weights, void* sums) const = 0;
};
using BinCountsFactory = PrimitiveFactory<BinCounts>;

}  // namespace oneflow_lite
