// SPDX-License-Identifier: Apache-2.0
//
// A tensor seen around the dims that another one has, which is repeated along the rest.
//
//   SplitAround(Shape{8, 3, 5}, Shape{3, 1});  // outer 8, axis 3, inner 5
#pragma once

#include <optional>

#include "oneflow_lite/core/shape.h"

namespace oneflow_lite {

// axis counts the elements of `part`, which broadcasts to `shape` and is repeated along outer and
// inner. Of one element all dims are inner. Absent where part does not broadcast to shape, or has
// dims that are no neighbours.
inline std::optional<AxisSplit> SplitAround(const Shape& shape, const Shape& part) {
  const int extra = shape.ndim() - part.ndim();
  if (extra < 0) return std::nullopt;
  AxisSplit split{.outer = 1, .axis = part.numel(), .inner = 1};
  bool within = split.axis == 1;
  for (int d = 0; d < shape.ndim(); ++d) {
    const int64_t own = d < extra ? 1 : part[d - extra];
    if (own == 1) {
      (within ? split.inner : split.outer) *= shape[d];
    } else {
      if (own != shape[d] || (within && split.inner != 1)) return std::nullopt;
      within = true;
    }
  }
  return split;
}

}  // namespace oneflow_lite
