// SPDX-License-Identifier: Apache-2.0
//
// Reductions of more results than one launch takes, as several: a block of columns (plan.h) has one
// task, which may be one result, and a grid has fewer than 2^31 blocks.
//
//   for (const ReducePart& part : CutReduction(shape, kMostResults)) ...  // one launch each
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "primitive/reduce_shape.h"

namespace oneflow_lite {
namespace cuda {

inline constexpr int64_t kMostResults = (int64_t{1} << 31) - 1;  // of a launch

// Of a reduction, and where it begins: elements of x, and its first result.
struct ReducePart {
  ReduceShape shape;
  int64_t x = 0, y = 0;
};

inline int64_t ResultsOf(const ReduceShape& shape) {
  int64_t n = 1;
  for (int d = 0; d < shape.ndim; ++d) n *= shape.reduced[d] ? 1 : shape.sizes[d];
  return n;
}

// Parts of about equal size with at most `most` results each; cut along the outermost dims that are
// kept, so that the results of each lie densely.
inline std::vector<ReducePart> CutReduction(const ReduceShape& shape, int64_t most) {
  std::vector<ReducePart> parts = {{shape}};
  int64_t results = ResultsOf(shape);  // of a part
  for (int d = 0; d < shape.ndim && results > most; ++d) {
    if (shape.reduced[d]) continue;
    const int64_t size = shape.sizes[d], each = results / size;  // results of one index
    const int64_t pieces = each >= most ? size : (size + most / each - 1) / (most / each);
    const int64_t step = (size + pieces - 1) / pieces;
    std::vector<ReducePart> cut;
    for (const ReducePart& whole : parts) {
      for (int64_t first = 0; first < size; first += step) {
        ReducePart part = whole;
        part.shape.sizes[d] = std::min(step, size - first);
        part.x += first * shape.strides[d];
        part.y += first * each;
        cut.push_back(part);
      }
    }
    parts = std::move(cut);
    results = step * each;
  }
  return parts;
}

}  // namespace cuda
}  // namespace oneflow_lite
