// SPDX-License-Identifier: Apache-2.0
//
// Reductions of expanded dims, whose elements lie in one place (stride 0): each is read once. One
// that is reduced counts its elements so many times; along one that stays the results are repeated.
#pragma once

#include <algorithm>
#include <cstring>

#include "primitive/cpu/rearrange.h"
#include "primitive/reduce_kinds.h"
#include "primitive/reduce_shape.h"

namespace oneflow_lite {

struct WithoutExpanded {
  ReduceShape shape;     // without the dims that were taken out
  int64_t times = 1;     // how often each element counts
  bool repeats = false;  // whether dims that stay were taken out

  WithoutExpanded(const ReduceShape& whole, ReduceKind op) {
    for (int d = 0; d < whole.ndim; ++d) {
      const int64_t size = whole.sizes[d];
      const bool expanded = size > 1 && whole.strides[d] == 0;
      if (!expanded || (whole.reduced[d] && !(IsCounted(op) || IsIdempotent(op)))) {
        shape.Add(size, whole.strides[d], whole.reduced[d]);
      } else if (!whole.reduced[d]) {
        repeats = true;
      } else if (IsCounted(op)) {
        times *= size;
      }
    }
  }

 private:
  // Whether an element that comes n times counts n times as much.
  static bool IsCounted(ReduceKind op) {
    return op == ReduceKind::kSum || op == ReduceKind::kNanSum || op == ReduceKind::kCount ||
           op == ReduceKind::kNorm;
  }
  // Whether elements that all come n times give what they do once.
  static bool IsIdempotent(ReduceKind op) {
    return op == ReduceKind::kMax || op == ReduceKind::kMin || op == ReduceKind::kMinMax ||
           op == ReduceKind::kAny || op == ReduceKind::kAll || op == ReduceKind::kMean ||
           op == ReduceKind::kNanMean;
  }
};

// Repeats results of `item` bytes along the dims that stay of `whole` and were taken out, in place:
// y holds the others' at its front.
inline void RepeatAlongExpanded(const ReduceShape& whole, size_t item, void* results) {
  char* y = static_cast<char*>(results);
  const auto width = static_cast<int64_t>(item);
  const auto expanded = [&](int d) { return whole.sizes[d] > 1 && whole.strides[d] == 0; };
  int64_t inner = 1;  // results of the dims inside
  for (int d = whole.ndim - 1; d >= 0; --d) {
    if (whole.reduced[d]) continue;
    const int64_t n = whole.sizes[d];
    int64_t outer = 1;
    for (int k = 0; k < d; ++k) outer *= whole.reduced[k] || expanded(k) ? 1 : whole.sizes[k];
    // From the end on, so that nothing is written that is still to be read.
    for (int64_t o = outer - 1; expanded(d) && o >= 0; --o) {
      const char* from = y + o * inner * width;
      char* to = y + o * n * inner * width;
      if (inner == 1) {
        char element[sizeof(int64_t)];
        std::memcpy(element, from, item);
        FindRepeat(item)(n, element, to);
        continue;
      }
      for (int64_t k = o == 0; k < n; ++k) CopyBytes(inner * width, from, to + k * inner * width);
    }
    inner *= n;
  }
}

}  // namespace oneflow_lite
