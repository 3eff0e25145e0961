// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding (Su et al., 2021): pairs of features of each head turned by angles
// that depend on the row.
#pragma once

#include "primitive/primitive.h"
#include "primitive/rotary_shape.h"

namespace oneflow_lite {

class Rotary {
 public:
  static constexpr char kName[] = "rotary";
  struct Spec {
    DType dtype = DType::kFloat32;  // of x and y, one of the four floats; tables: its compute type
  };
  virtual ~Rotary() = default;
  // Of a head's features a = x[i] and b = x[half + i]: y[i] = a cos[i] - b sin[i] and
  // y[half + i] = b cos[i] + a sin[i], computed in float (double) and rounded once. x and y are
  // contiguous; y may be x.
  virtual Status Launch(Stream& stream, const RotaryShape& shape, const void* x, const void* cos,
                        const void* sin, void* y) const = 0;
};
using RotaryFactory = PrimitiveFactory<Rotary>;

}  // namespace oneflow_lite
