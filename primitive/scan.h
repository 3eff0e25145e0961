// SPDX-License-Identifier: Apache-2.0
//
// Scans along the middle axis of a dense outer x axis x inner block: what each element and all
// before it come to, or all behind it where reversed.
#pragma once

#include "oneflow_lite/core/shape.h"
#include "primitive/primitive.h"
#include "primitive/reduce_kinds.h"

namespace oneflow_lite {

constexpr bool ScanTakes(ScanKind op, DType dtype) {
  if (op == ScanKind::kMax || op == ScanKind::kMin) return true;
  return op == ScanKind::kSum || op == ScanKind::kProd ? dtype != DType::kBool : IsFloating(dtype);
}

class Scan {
 public:
  static constexpr char kName[] = "scan";
  struct Spec {
    ScanKind op = ScanKind::kSum;
    DType dtype = DType::kFloat32;  // of x, other and y
  };
  struct Operands {
    const void* x;
    const void* other;  // of kLinear and kProductBefore
    void* y;
    int64_t* places;  // of kMax and kMin: in the axis
  };
  virtual ~Scan() = default;
  virtual size_t WorkspaceBytes(const Stream& stream, const AxisSplit& shape) const { return 0; }
  // y may be x. `shifted` is for kLinear alone.
  virtual Status Launch(Stream& stream, const AxisSplit& shape, bool reverse, bool shifted,
                        const Operands& operands, void* workspace) const = 0;
};
using ScanFactory = PrimitiveFactory<Scan>;

}  // namespace oneflow_lite
