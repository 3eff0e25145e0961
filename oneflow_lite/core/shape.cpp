// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace oneflow_lite {

std::string ToString(absl::Span<const int64_t> list) {
  return absl::StrCat("[", absl::StrJoin(list, ", "), "]");
}

std::string Shape::ToString() const { return oneflow_lite::ToString(dims_); }

Dims ContiguousStrides(absl::Span<const int64_t> shape) {
  Dims strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i] > 0 ? shape[i] : 1;
  }
  return strides;
}

bool IsContiguous(absl::Span<const int64_t> shape, absl::Span<const int64_t> strides) {
  int64_t step = 1;
  bool contiguous = true;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != step) contiguous = false;
    step *= shape[i];
  }
  return contiguous;
}

int64_t SpannedElements(absl::Span<const int64_t> shape, absl::Span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return 0;
    last += (shape[i] - 1) * strides[i];
  }
  return last + 1;
}

int64_t CheckedNumel(absl::Span<const int64_t> shape) {
  int64_t n = 1;
  bool empty = false;
  for (int64_t d : shape) {
    if (d == 0)
      empty = true;
    else if (__builtin_mul_overflow(n, d, &n))
      return -1;
  }
  int64_t bytes;
  if (__builtin_mul_overflow(n, int64_t{8}, &bytes)) return -1;
  return empty ? 0 : n;
}

bool ViewStrides(absl::Span<const int64_t> shape, absl::Span<const int64_t> strides,
                 absl::Span<const int64_t> new_shape, Dims* new_strides) {
  if (IsContiguous(shape, strides)) {
    *new_strides = ContiguousStrides(new_shape);
    return true;
  }
  // Walk both shapes from the right. A run of old dims that lie densely in each other is one
  // chunk; new dims must tile each chunk exactly.
  new_strides->assign(new_shape.size(), 0);
  int64_t view = static_cast<int64_t>(new_shape.size()) - 1;
  int64_t chunk = 1, chunk_stride = strides.empty() ? 1 : strides.back();
  for (int64_t i = static_cast<int64_t>(shape.size()) - 1; i >= 0; --i) {
    chunk *= shape[i];
    const bool ends = i == 0 || (shape[i - 1] != 1 && strides[i - 1] != chunk * chunk_stride);
    if (!ends) continue;
    int64_t covered = 1;
    while (view >= 0 && (covered < chunk || new_shape[view] == 1)) {
      (*new_strides)[view] = covered * chunk_stride;
      covered *= new_shape[view];
      --view;
    }
    if (covered != chunk) return false;
    if (i > 0) {
      chunk = 1;
      chunk_stride = strides[i - 1];
    }
  }
  return view < 0;
}

AxisSplit SplitAt(const Shape& shape, int64_t dim) {
  AxisSplit split;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (i < dim)
      split.outer *= shape[i];
    else if (i == dim)
      split.axis = shape[i];
    else
      split.inner *= shape[i];
  }
  return split;
}

}  // namespace oneflow_lite
