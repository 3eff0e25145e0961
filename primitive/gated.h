// SPDX-License-Identifier: Apache-2.0
//
// Gated units (Shazeer, 2020, "GLU Variants Improve Transformer"): one half of a row times a
// function of the other.
#pragma once

#include "primitive/gate_kinds.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class GatedUnit {
 public:
  static constexpr char kName[] = "gated_unit";
  struct Spec {
    GateKind kind = GateKind::kGlu;
    DType dtype = DType::kFloat32;  // one of the four floats
  };
  virtual ~GatedUnit() = default;
  // y [rows, half] of x [rows, 2 * half], both contiguous; computed in float (double), rounded
  // once.
  virtual Status Launch(Stream& stream, int64_t rows, int64_t half, const void* x,
                        void* y) const = 0;
  // dx [rows, 2 * half] for dy [rows, half]. dx may be x.
  virtual Status LaunchBackward(Stream& stream, int64_t rows, int64_t half, const void* dy,
                                const void* x, void* dx) const = 0;
};
using GatedUnitFactory = PrimitiveFactory<GatedUnit>;

}  // namespace oneflow_lite
