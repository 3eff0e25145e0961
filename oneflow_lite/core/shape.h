// SPDX-License-Identifier: Apache-2.0
//
// Shapes, strides and the geometry of strided memory. All counts are in elements and 64-bit.
//
//   Shape s{4, 5};
//   s.numel();            // 20
//   ContiguousStrides(s); // {5, 1}
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

// Short lists of 64-bit integers without heap use: dims, strides, permutations.
using Dims = absl::InlinedVector<int64_t, 5>;

class OFL_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(absl::Span<const int64_t> dims) : dims_(dims.begin(), dims.end()) {}

  int ndim() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int i) const { return dims_[i]; }
  int64_t& operator[](int i) { return dims_[i]; }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t d : dims_) n *= d;
    return n;
  }
  const Dims& dims() const { return dims_; }
  Dims& dims() { return dims_; }
  operator absl::Span<const int64_t>() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  bool operator==(const Shape& o) const { return dims_ == o.dims_; }

  // "[4, 5]"
  std::string ToString() const;

 private:
  Dims dims_;
};

OFL_API std::string ToString(absl::Span<const int64_t> list);

OFL_API Dims ContiguousStrides(absl::Span<const int64_t> shape);
// Row-major without gaps; dims of size 1 may have any stride, an empty tensor is contiguous.
OFL_API bool IsContiguous(absl::Span<const int64_t> shape, absl::Span<const int64_t> strides);
// The number of elements of storage that the geometry spans from its offset on: 0 where empty.
OFL_API int64_t SpannedElements(absl::Span<const int64_t> shape, absl::Span<const int64_t> strides);
// Product of the dims, or -1 where it (times 8 bytes) does not fit in 63 bits.
OFL_API int64_t CheckedNumel(absl::Span<const int64_t> shape);

// Strides that show memory of (shape, strides) as new_shape without a copy; false where none do.
OFL_API bool ViewStrides(absl::Span<const int64_t> shape, absl::Span<const int64_t> strides,
                         absl::Span<const int64_t> new_shape, Dims* new_strides);

// The dims around one axis: a contiguous tensor seen as outer x axis x inner.
struct AxisSplit {
  int64_t outer = 1, axis = 1, inner = 1;
};
// A 0-dim shape splits as 1 x 1 x 1. Precondition: 0 <= dim < max(1, ndim).
OFL_API AxisSplit SplitAt(const Shape& shape, int64_t dim);

}  // namespace oneflow_lite
