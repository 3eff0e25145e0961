// SPDX-License-Identifier: Apache-2.0
//
// Reductions over dims of a tensor, and the gradients of those that need more than their own kind,
// over the middle axis of a dense outer x axis x inner block.
#pragma once

#include <optional>

#include "oneflow_lite/core/shape.h"
#include "primitive/primitive.h"
#include "primitive/reduce_kinds.h"
#include "primitive/reduce_shape.h"

namespace oneflow_lite {

// Sums accumulate in float32 for the 16-bit floats and float32 (pairwise or blockwise, so that the
// error stays near the rounding of the result), in float64, or in int64. An extreme of a slice with
// a NaN is NaN. The order of summation depends on the shape and the device alone: same bits twice.

// The dtype of the first output, absent where the op does not take the input's. Some ops may give
// any float of a float instead.
constexpr std::optional<DType> ReduceOut(ReduceKind op, DType in) {
  switch (op) {
    case ReduceKind::kSum:
    case ReduceKind::kNanSum:
    case ReduceKind::kProd:
      return IsFloating(in) ? in : DType::kInt64;
    case ReduceKind::kMax:
    case ReduceKind::kMin:
    case ReduceKind::kMinMax:
    case ReduceKind::kArgMax:
    case ReduceKind::kArgMin:
      return in;
    case ReduceKind::kAny:
    case ReduceKind::kAll:
      return DType::kBool;
    case ReduceKind::kCount:
      return DType::kInt64;
    default:
      break;
  }
  if (!IsFloating(in)) return std::nullopt;
  return op == ReduceKind::kProdParts ? ComputeType(in) : in;
}
constexpr bool TakesAnyFloat(ReduceKind op) {
  return op == ReduceKind::kSum || op == ReduceKind::kMean || op == ReduceKind::kNanSum ||
         op == ReduceKind::kNanMean || op == ReduceKind::kProd || op == ReduceKind::kNorm ||
         op == ReduceKind::kLogSumExp;
}

// The middle axis of a dense block.
inline ReduceShape DenseShape(const AxisSplit& split) {
  ReduceShape shape;
  shape.Add(split.outer, split.axis * split.inner, false);
  shape.Add(split.axis, split.inner, true);
  shape.Add(split.inner, 1, false);
  return shape;
}

class Reduce {
 public:
  static constexpr char kName[] = "reduce";
  struct Spec {
    ReduceKind op = ReduceKind::kSum;
    DType in = DType::kFloat32;
    // Of the first output: see ReduceKind for what there is.
    DType out = DType::kFloat32;
  };
  virtual ~Reduce() = default;
  // Whether Launch takes a tensor that is not dense. One that is dense may have any dims reduced on
  // CUDA, a run of neighbours on the CPU, and for kArgMax and kArgMin everywhere.
  virtual bool TakesStrides(const ReduceShape& shape) const { return false; }
  virtual size_t WorkspaceBytes(const Stream& stream, const ReduceShape& shape) const { return 0; }
  // y and `second`, for the ops that have two results, are dense; `second` may be null but for
  // kProdParts, y may be for kArgMax and kArgMin. `parameter` is the p of kNorm and
  // the correction of kVar and kStd. No elements give what ReduceKind says; the extremes need some.
  virtual Status Launch(Stream& stream, const ReduceShape& shape, double parameter, const void* x,
                        void* y, void* second, void* workspace) const = 0;
};
using ReduceFactory = PrimitiveFactory<Reduce>;

// dx[o, a, i] of dy[o, i], x[o, a, i] and what the kind names; all floats of one dtype but `extra`,
// which has the compute type. dx may not overlap the others.
class ReduceGrad {
 public:
  static constexpr char kName[] = "reduce_grad";
  struct Spec {
    ReduceGradKind op = ReduceGradKind::kVar;
    DType dtype = DType::kFloat32;
  };
  struct Operands {
    const void* dy;
    const void* x;
    const void* y;         // null where the kind does without
    const void* extra;     // null likewise
    const int64_t* zeros;  // of kProd
  };
  virtual ~ReduceGrad() = default;
  virtual Status Launch(Stream& stream, const AxisSplit& shape, double parameter,
                        const Operands& operands, void* dx) const = 0;
};
using ReduceGradFactory = PrimitiveFactory<ReduceGrad>;

}  // namespace oneflow_lite
