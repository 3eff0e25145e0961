// SPDX-License-Identifier: Apache-2.0
//
// A number given by the caller: bool, integer or double, without a tensor around it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {

class Scalar {
 public:
  // kLargeInt: an integer beyond int64, which only Python has.
  enum class Kind : uint8_t { kBool, kInt, kLargeInt, kFloat };

  Scalar() : Scalar(int64_t{0}) {}
  Scalar(bool v) : kind_(Kind::kBool), i_(v) {}
  Scalar(int v) : Scalar(int64_t{v}) {}
  Scalar(int64_t v) : kind_(Kind::kInt), i_(v) {}
  Scalar(double v) : kind_(Kind::kFloat), f_(v) {}
  // An integer beyond int64, by the nearest double: infinite where no double is near. Beside an
  // integer dtype it is an integer that does not fit, though the double may be -2^63, which does;
  // beside a floating one it is the double.
  static Scalar LargeInt(double nearest) {
    Scalar s(nearest);
    s.kind_ = Kind::kLargeInt;
    return s;
  }

  Kind kind() const { return kind_; }
  // Whether the value is held as a double.
  bool is_float() const { return kind_ >= Kind::kLargeInt; }
  // The value as another type, converted as C++ converts. Precondition for integers: fits<T>().
  template <class T>
  T to() const {
    if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) {
      return T(is_float() ? static_cast<float>(f_) : static_cast<float>(i_));
    } else {
      return is_float() ? static_cast<T>(f_) : static_cast<T>(i_);
    }
  }
  // Whether the value, without its fraction, is in T's range. Floating numbers round to any
  // floating type, be it to infinity.
  template <class T>
  bool fits() const {
    if constexpr (std::is_same_v<T, bool>) {
      return true;
    } else if constexpr (std::is_integral_v<T>) {
      constexpr int64_t kLeast = std::numeric_limits<T>::min();
      constexpr int64_t kMost = std::numeric_limits<T>::max();
      if (kind_ == Kind::kLargeInt) return false;
      if (!is_float()) return i_ >= kLeast && i_ <= kMost;
      // The limits as doubles: the least is one, the most is one less than one.
      constexpr double kEnd = static_cast<double>(kMost / 2 + 1) * 2;
      const double whole = std::trunc(f_);
      return whole >= static_cast<double>(kLeast) && whole < kEnd;
    } else {
      return kind_ != Kind::kLargeInt || std::isfinite(f_);
    }
  }
  bool Fits(DType dtype) const {
    return VisitAll(dtype, [&]<class T>(Tag<T>) { return fits<T>(); });
  }
  // The dtype a tensor made of this number alone has: bool, int64 or float32.
  DType default_dtype() const {
    return kind_ == Kind::kBool    ? DType::kBool
           : kind_ == Kind::kFloat ? DType::kFloat32
                                   : DType::kInt64;
  }

 private:
  Kind kind_;
  union {
    int64_t i_;
    double f_;
  };
};

}  // namespace oneflow_lite
