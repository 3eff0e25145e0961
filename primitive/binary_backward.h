// SPDX-License-Identifier: Apache-2.0
//
// Both gradients of an elementwise function of two operands, of which the second may be repeated
// along dims of the first: its gradient is summed as it is computed.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/shape.h"
#include "primitive/op_kinds.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class BinaryBackward {
 public:
  static constexpr char kName[] = "binary_backward";
  struct Spec {
    BinaryOp op = BinaryOp::kMul;   // or kPrelu
    DType dtype = DType::kFloat32;  // of all tensors; a float
  };
  // dy, a and da: outer x axis x inner, contiguous; b and db: axis elements.
  struct Pointers {
    const void *dy = nullptr, *a = nullptr, *b = nullptr;
    void *da = nullptr, *db = nullptr;
  };
  virtual ~BinaryBackward() = default;
  // Bytes of device workspace that a launch needs.
  virtual size_t WorkspaceBytes(const Stream& stream, const AxisSplit& shape) const = 0;
  // Computed in the compute type, sums compensated or in double, and rounded once; 0 of none. The
  // order of a sum is fixed by the shape and the device.
  virtual Status Launch(Stream& stream, const AxisSplit& shape, const Pointers& at,
                        void* workspace) const = 0;
};
using BinaryBackwardFactory = PrimitiveFactory<BinaryBackward>;

// Whether there is one for the op.
constexpr bool HasBinaryBackward(BinaryOp op) {
  return op == BinaryOp::kMul || op == BinaryOp::kPrelu;
}

}  // namespace oneflow_lite
