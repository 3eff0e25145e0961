// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework_testing.h"
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite {

// Something for an argument that has no default, for tests that call every function.
inline Value Plausible(const ArgSchema& arg) {
  switch (arg.type) {
    case ArgType::kTensor:
    case ArgType::kOperand:
      return FromList({2, 2}, {1, 2, 3, 4});
    case ArgType::kTensorList:
      return TensorList{FromList({2, 2}, {1, 2, 3, 4})};
    case ArgType::kInt:
      return int64_t{0};
    case ArgType::kInts:
      return Dims{0};
    case ArgType::kFloat:
      return 0.5;
    case ArgType::kBool:
      return false;
    case ArgType::kScalar:
      return Scalar(1);
    case ArgType::kDType:
      return DType::kFloat64;
    case ArgType::kDevice:
      return Device{};
    default:
      return std::string();
  }
}

}  // namespace oneflow_lite
