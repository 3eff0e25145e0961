// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/dtype.h"

#include <algorithm>

namespace oneflow_lite {

const char* Name(DType t) {
  static constexpr const char* kNames[kNumDTypes] = {"bool",    "uint8",  "int8",    "int16",
                                                     "int32",   "int64",  "float16", "bfloat16",
                                                     "float32", "float64"};
  return IsDType(t) ? kNames[static_cast<int>(t)] : "unknown";
}

DType PromoteTypes(DType a, DType b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);  // the enum is ordered by kind, then width
  if (IsFloating(b)) {
    const bool both_16_bit = a == DType::kFloat16 && b == DType::kBFloat16;
    return both_16_bit ? DType::kFloat32 : b;
  }
  // uint8 with a signed type needs the next wider signed type.
  if (a == DType::kUInt8 && b == DType::kInt8) return DType::kInt16;
  return b;
}

}  // namespace oneflow_lite
