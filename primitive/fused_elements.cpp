// SPDX-License-Identifier: Apache-2.0
#include "primitive/fused_elements.h"

#include <algorithm>

namespace oneflow_lite {

FusedGeometry MergeFusedDims(absl::Span<const int64_t> shape,
                             absl::Span<const FusedElements::Input> inputs,
                             absl::Span<const FusedElements::Output> outputs) {
  std::vector<absl::Span<const int64_t>> given;
  const std::vector<int64_t> repeated(shape.size(), 0);
  for (const auto& in : inputs) given.push_back(in.data ? in.strides : absl::MakeSpan(repeated));
  for (const auto& out : outputs) given.push_back(out.strides);
  FusedGeometry g;
  g.strides.resize(given.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    g.numel *= shape[d];
    if (shape[d] == 1) continue;
    bool merge = !g.dims.empty();
    for (size_t i = 0; merge && i < given.size(); ++i) {
      merge = g.strides[i].back() == given[i][d] * shape[d];
    }
    if (merge) {
      g.dims.back() *= shape[d];
      for (size_t i = 0; i < given.size(); ++i) g.strides[i].back() = given[i][d];
    } else {
      g.dims.push_back(shape[d]);
      for (size_t i = 0; i < given.size(); ++i) g.strides[i].push_back(given[i][d]);
    }
  }
  return g;
}

}  // namespace oneflow_lite
