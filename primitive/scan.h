// SPDX-License-Identifier: Apache-2.0
//
// Running sums along rows: y[i] = x[0] + ... + x[i], or from the end where reversed.
#pragma once

#include "primitive/primitive.h"

namespace oneflow_lite {

class CumSum {
 public:
  static constexpr char kName[] = "cumsum";
  struct Spec {
    DType dtype = DType::kFloat32;  // of x and y, not bool; the 16-bit floats are summed in float32
  };
  virtual ~CumSum() = default;
  // Rows lie one after the other. x and y may be the same pointer.
  virtual Status Launch(Stream& stream, int64_t rows, int64_t cols, bool reverse, const void* x,
                        void* y) const = 0;
};
using CumSumFactory = PrimitiveFactory<CumSum>;

}  // namespace oneflow_lite
