// SPDX-License-Identifier: Apache-2.0
//
// A number given by the caller: bool, 64-bit integer or double, without a tensor around it.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {

class Scalar {
 public:
  enum class Kind : uint8_t { kBool, kInt, kFloat };

  Scalar() : Scalar(int64_t{0}) {}
  Scalar(bool v) : kind_(Kind::kBool), i_(v) {}
  Scalar(int v) : Scalar(int64_t{v}) {}
  Scalar(int64_t v) : kind_(Kind::kInt), i_(v) {}
  Scalar(double v) : kind_(Kind::kFloat), f_(v) {}

  Kind kind() const { return kind_; }
  bool is_float() const { return kind_ == Kind::kFloat; }
  // The value as another type, converted as C++ converts.
  template <class T>
  T to() const {
    if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) {
      return T(is_float() ? static_cast<float>(f_) : static_cast<float>(i_));
    } else {
      return is_float() ? static_cast<T>(f_) : static_cast<T>(i_);
    }
  }
  // The dtype a tensor made of this number alone has: bool, int64 or float32.
  DType default_dtype() const {
    return kind_ == Kind::kBool ? DType::kBool : is_float() ? DType::kFloat32 : DType::kInt64;
  }

 private:
  Kind kind_;
  union {
    int64_t i_;
    double f_;
  };
};

}  // namespace oneflow_lite
