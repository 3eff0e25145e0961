// SPDX-License-Identifier: Apache-2.0
//
// softmax(scale * x + mask) over contiguous rows, in one pass over the data, and its gradient. The
// rows are the queries of attention, the columns its keys.
//
//   y  = softmax(scale x),    -inf where a boolean mask is false, or with an additive mask added
//   dx = scale y (dy - sum(y dy))
//
// Scores are formed in the compute type. With `causal`, query q of a matrix of `queries` rows sees
// the first cols - queries + q + 1 columns: the diagonal ends in the lower right corner. What it
// does not see is not read. A row that holds NaN or +inf, or nothing but -inf, becomes NaN.
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

// The mask of row r starts at the sum of c[d] strides[d], with c the coordinates of r in dims; a
// stride of 0 broadcasts. All strides count elements.
struct MaskGeometry {
  static constexpr int kDims = 3;
  int64_t dims[kDims] = {1, 1, 1};  // outermost first; their product is the number of rows
  int64_t strides[kDims] = {0, 0, 0};
  int64_t col_stride = 0;

  int64_t Offset(int64_t row) const {
    const int64_t c2 = row % dims[2], c1 = row / dims[2] % dims[1], c0 = row / dims[2] / dims[1];
    return c0 * strides[0] + c1 * strides[1] + c2 * strides[2];
  }
};

struct ScaleMaskSoftmaxShape {
  int64_t rows = 0, cols = 0;
  int64_t queries = 1;  // rows per matrix
  double scale = 1;
  bool causal = false;
  // A row of nothing but -inf becomes 0 instead of NaN.
  bool zero_masked_rows = false;
  MaskGeometry mask = {};

  // The columns that a row sees, as far as causality goes.
  int64_t Visible(int64_t row) const {
    if (!causal) return cols;
    const int64_t seen = cols - queries + row % queries + 1;
    return seen < 0 ? 0 : seen;
  }
};

class ScaleMaskSoftmax {
 public:
  static constexpr char kName[] = "scale_mask_softmax";
  struct Spec {
    DType dtype = DType::kFloat32;  // of x and y; one of the four floats
    // bool: true keeps; a float, dtype itself or float32 with the 16-bit floats: is added.
    DType mask_dtype = DType::kBool;
  };
  virtual ~ScaleMaskSoftmax() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const ScaleMaskSoftmaxShape& shape) const {
    return 0;
  }
  // mask may be null. x and y may be the same pointer; otherwise nothing may overlap.
  virtual Status Launch(Stream& stream, const ScaleMaskSoftmaxShape& shape, const void* x,
                        const void* mask, void* y, void* workspace) const = 0;
};
using ScaleMaskSoftmaxFactory = PrimitiveFactory<ScaleMaskSoftmax>;

class ScaleMaskSoftmaxBackward {
 public:
  static constexpr char kName[] = "scale_mask_softmax_backward";
  struct Spec {
    DType dtype = DType::kFloat32;
  };
  virtual ~ScaleMaskSoftmaxBackward() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const ScaleMaskSoftmaxShape& shape) const {
    return 0;
  }
  // y is the forward's output; shape's mask plays no part. dx may be dy; otherwise nothing may
  // overlap. With `causal`, dx is 0 where the query does not see.
  virtual Status Launch(Stream& stream, const ScaleMaskSoftmaxShape& shape, const void* y,
                        const void* dy, void* dx, void* workspace) const = 0;
};
using ScaleMaskSoftmaxBackwardFactory = PrimitiveFactory<ScaleMaskSoftmaxBackward>;

// Whether the primitive takes masks of this dtype with x of that.
constexpr bool IsMaskDType(DType mask, DType x) {
  return mask == DType::kBool || mask == x || (mask == DType::kFloat32 && SizeOf(x) == 2);
}

}  // namespace oneflow_lite
