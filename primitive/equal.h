// SPDX-License-Identifier: Apache-2.0
//
// Whether two tensors have the same elements: a reduction that stops at the first that differ.
#pragma once

#include "oneflow_lite/core/elementwise.h"
#include "primitive/primitive.h"

namespace oneflow_lite {

class Equal {
 public:
  static constexpr char kName[] = "equal";
  struct Spec {
    DType dtype = DType::kFloat32;  // of both
  };
  virtual ~Equal() = default;
  // y[0] = whether a == b everywhere; of nothing that is so. A NaN equals nothing, -0 equals 0, and
  // of bool all that are not 0 are the same.
  virtual Status Launch(Stream& stream, const Elementwise<2>& g, const void* a, const void* b,
                        bool* y) const = 0;
};
using EqualFactory = PrimitiveFactory<Equal>;

}  // namespace oneflow_lite
