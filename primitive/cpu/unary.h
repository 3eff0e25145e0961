// SPDX-License-Identifier: Apache-2.0
//
// The loops of the elementwise functions of one operand, a file per family. A Find function gives
// the code for an op and dtype, or none.
#pragma once

#include "primitive/unary.h"

namespace oneflow_lite {

struct UnaryCode {
  // y = f(x) for n elements.
  using Loop = void (*)(int64_t n, const void* x, void* y, const UnaryParams& params);
  Loop loop = nullptr;
  bool wide = false;  // x and y are of the dtype's compute type; whoever calls converts
};
UnaryCode FindElementary(UnaryOp op, DType dtype);  // unary_elementary.cpp
UnaryCode FindGamma(UnaryOp op, DType dtype);       // unary_gamma.cpp
UnaryCode FindSpecial(UnaryOp op, DType dtype);     // unary_special.cpp
UnaryCode FindTruth(UnaryOp op, DType dtype);       // unary_truth.cpp

// One that takes n elements of the compute type, by the dtype; of floats alone.
inline UnaryCode WideCode(DType dtype, UnaryCode::Loop float32, UnaryCode::Loop float64) {
  if (!IsFloating(dtype)) return {};
  return {dtype == DType::kFloat64 ? float64 : float32, true};
}

}  // namespace oneflow_lite
