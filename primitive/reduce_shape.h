// SPDX-License-Identifier: Apache-2.0
//
// The tensor of a reduction. C++17, so that .cu files can include it.
#pragma once

#include <cstdint>

namespace oneflow_lite {

inline constexpr int kMaxReduceDims = 16;

// Dims, outermost first, some of them reduced. The results lie densely in the order of the others.
//
//   ReduceShape shape;                     // the sums over the rows of a dense 3 x 5 matrix
//   shape.Add(3, 5, /*is_reduced=*/false);
//   shape.Add(5, 1, /*is_reduced=*/true);
struct ReduceShape {
  int ndim = 0;
  int64_t sizes[kMaxReduceDims] = {};
  int64_t strides[kMaxReduceDims] = {};  // elements
  bool reduced[kMaxReduceDims] = {};

  void Add(int64_t size, int64_t stride, bool is_reduced) {
    sizes[ndim] = size, strides[ndim] = stride, reduced[ndim] = is_reduced;
    ++ndim;
  }
};

}  // namespace oneflow_lite
