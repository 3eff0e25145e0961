// SPDX-License-Identifier: Apache-2.0
//
// Cross entropy of logits whose classes lie in parts, one after another: what a part's logits say
// of a row, what the parts say together, and the gradient of a part's logits. So no part sees the
// logits of another. Formulas, dtypes and corner cases are those of primitive/cross_entropy.h.
//
//   split->Part(stream, shape, x, target, part);             // of each part: reads x once
//   split->Merge(stream, merge, target, parts, loss, stats);  // of all parts together
//   split->Gradient(stream, shape, x, target, stats, dloss, 1, x, stride);  // of each part again
#pragma once

#include "primitive/cross_entropy_split_shape.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class CrossEntropySplit {
 public:
  static constexpr char kName[] = "cross_entropy_split";
  struct Spec {
    DType dtype = DType::kFloat32;  // of the logits; one of the four floats
  };
  virtual ~CrossEntropySplit() = default;
  // part [rows, kPartNumbers], all 0 for ignored rows. Targets count from the first class of all.
  virtual Status Part(Stream& stream, const ClassPartShape& shape, const void* x,
                      const int64_t* target, void* part) const = 0;
  // From parts [parts, rows, kPartNumbers] what CrossEntropy gives: loss [rows], stats [rows, 2].
  virtual Status Merge(Stream& stream, const ClassMergeShape& shape, const int64_t* target,
                       const void* parts, void* loss, void* stats) const = 0;
  // The gradient for dloss, of which row r lies at r * dloss_stride (0: one number for all rows).
  // Rows of dx lie dx_stride apart. dx may be x, with x's stride.
  virtual Status Gradient(Stream& stream, const ClassPartShape& shape, const void* x,
                          const int64_t* target, const void* stats, const void* dloss,
                          int64_t dloss_stride, void* dx, int64_t dx_stride) const = 0;
};
using CrossEntropySplitFactory = PrimitiveFactory<CrossEntropySplit>;

}  // namespace oneflow_lite
