// SPDX-License-Identifier: Apache-2.0
//
// Where the elements of a strided operand lie, for plain references on the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace oneflow_lite {

using Strides = absl::InlinedVector<int64_t, 4>;

// Element offsets of one operand in row-major order of the shape.
inline std::vector<int64_t> Offsets(const Strides& shape, const Strides& strides) {
  std::vector<int64_t> offsets = {0};
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<int64_t> next;
    for (const int64_t o : offsets) {
      for (int64_t i = 0; i < shape[d]; ++i) next.push_back(o + i * strides[d]);
    }
    offsets = std::move(next);
  }
  return offsets;
}
// Elements from the first to the last one of an operand.
inline int64_t Extent(const std::vector<int64_t>& offsets) {
  return offsets.empty() ? 0 : *std::max_element(offsets.begin(), offsets.end()) + 1;
}

}  // namespace oneflow_lite
