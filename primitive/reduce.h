// SPDX-License-Identifier: Apache-2.0
//
// Reduction over the middle axis of a dense outer x axis x inner block.
#pragma once

#include "oneflow_lite/core/shape.h"
#include "primitive/op_kinds.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

// Sums accumulate in float32 for the 16-bit floats and float32 (pairwise or blockwise, so that the
// error stays near the rounding of the result), in float64, or in int64. The maximum of a slice
// with a NaN is NaN. The order of summation depends on the shape alone: same bits twice.

class Reduce {
 public:
  static constexpr char kName[] = "reduce";
  struct Spec {
    ReduceOp op = ReduceOp::kSum;
    DType in = DType::kFloat32;
    // kSum: in, or int64 for bool and integers; kMean: in, a float; kMax: in.
    DType out = DType::kFloat32;
  };
  virtual ~Reduce() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const AxisSplit& shape) const { return 0; }
  // y has outer x inner elements. axis = 0 gives 0 for kSum and NaN for kMean; kMax needs axis > 0.
  virtual Status Launch(Stream& stream, const AxisSplit& shape, const void* x, void* y,
                        void* workspace) const = 0;
};
using ReduceFactory = PrimitiveFactory<Reduce>;

class ArgMax {
 public:
  static constexpr char kName[] = "argmax";
  struct Spec {
    DType dtype = DType::kFloat32;
  };
  virtual ~ArgMax() = default;
  // index (int64) of the first maximum, or of the first NaN; axis > 0.
  virtual Status Launch(Stream& stream, const AxisSplit& shape, const void* x,
                        int64_t* index) const = 0;
};
using ArgMaxFactory = PrimitiveFactory<ArgMax>;

}  // namespace oneflow_lite
