// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/cord.h"

namespace oneflow_lite {

std::string Describe(const Tensor& t) {
  if (!t.defined()) return "an undefined tensor";
  return absl::StrCat("a tensor of shape ", t.shape().ToString(), " (", Name(t.dtype()), ", ",
                      t.device().ToString(), ")");
}

Status NotDefined(absl::string_view op, absl::string_view argument) {
  return Error(ErrorKind::kType, op, "(): ", argument, " is not defined");
}

Status DimOutOfRange(absl::string_view op, int64_t dim, const Tensor& t) {
  const int64_t ndim = std::max(1, t.ndim());
  return Error(ErrorKind::kIndex, op, "(): dim ", dim, " is out of range [", -ndim, ", ", ndim - 1,
               "] for ", Describe(t));
}

Status IndexOutOfRange(absl::string_view op, int64_t index, int64_t dim, int64_t size) {
  return Error(ErrorKind::kIndex, op, "(): index ", index, " is out of range [", -size, ", ",
               size - 1, "] for dim ", dim, " of size ", size);
}

Status UnsupportedDType(absl::string_view op, absl::string_view argument, DType given,
                        absl::string_view allowed) {
  return Error(ErrorKind::kDType, op, "(): ", argument, " has dtype ", Name(given),
               ", but it must be ", allowed);
}

Status DTypeMismatch(absl::string_view op, absl::string_view argument, DType given,
                     absl::string_view expected) {
  return Error(ErrorKind::kDType, op, "(): ", argument, " has dtype ", Name(given), ", expected ",
               expected);
}

Status ShapeMismatch(absl::string_view op, absl::string_view argument,
                     absl::Span<const int64_t> given, absl::string_view expected) {
  // What an undefined tensor reads as has no shape to speak of.
  if (given.data() == Tensor().shape().begin()) return NotDefined(op, argument);
  return Error(ErrorKind::kShape, op, "(): ", argument, " has shape ", ToString(given),
               ", expected ", expected);
}

Status BadValue(absl::string_view op, absl::string_view argument, absl::string_view given,
                absl::string_view allowed) {
  return Error(ErrorKind::kValue, op, "(): ", argument, " is ", given, ", but it must be ",
               allowed);
}

Status NumberOutOfRange(absl::string_view op, const Scalar& number, DType dtype) {
  const double d = number.to<double>();
  std::string given = number.is_float() ? absl::StrCat(d) : absl::StrCat(number.to<int64_t>());
  if (number.kind() == Scalar::Kind::kLargeInt && std::isinf(d)) {
    given = d > 0 ? "beyond 1e308" : "below -1e308";
  }
  const std::string range = VisitAll(dtype, []<class T>(Tag<T>) -> std::string {
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      return absl::StrCat(" [", int64_t{Limits::min()}, ", ", int64_t{Limits::max()}, "]");
    } else {
      return "";
    }
  });
  return Error(ErrorKind::kOverflow, op, "(): the number ", given, " is out of range", range,
               " of ", Name(dtype));
}

Status CheckFits(absl::string_view op, const Scalar& number, DType dtype) {
  return number.Fits(dtype) ? OkStatus() : NumberOutOfRange(op, number, dtype);
}

Status CheckExponent(absl::string_view op, const Scalar& exponent, DType base) {
  const bool integers = !IsFloating(base) && base != DType::kBool;
  if (!integers || exponent.kind() == Scalar::Kind::kFloat || exponent.to<double>() >= 0) {
    return OkStatus();
  }
  return Error(ErrorKind::kValue, op, "(): exponent is ", exponent.to<double>(),
               ", but integers have no negative powers; convert input to a floating dtype");
}

Status DeviceMismatch(absl::string_view op, absl::string_view first_argument, Device first,
                      absl::string_view second_argument, Device second) {
  return Error(ErrorKind::kRuntime, op, "(): all tensors must be on one device, but ",
               first_argument, " is on ", first.ToString(), " and ", second_argument, " on ",
               second.ToString());
}

Status Renamed(absl::string_view op, const Status& s) {
  if (s.ok() || KindOf(s) == ErrorKind::kPython) return s;
  const absl::string_view message = s.message();
  const size_t end = message.find("(): ");
  const bool names_none = end > message.find(' ');
  Status renamed = names_none ? Error(KindOf(s), op, "(): ", message)
                              : Error(KindOf(s), op, message.substr(end));
  s.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { renamed.SetPayload(url, payload); });
  return renamed;
}

StatusOr<int64_t> WrapDim(absl::string_view op, int64_t dim, const Tensor& t) {
  if (!t.defined()) return NotDefined(op, "input");
  const int64_t ndim = std::max(1, t.ndim());
  if (dim < -ndim || dim >= ndim) return DimOutOfRange(op, dim, t);
  return dim < 0 ? dim + ndim : dim;
}

}  // namespace oneflow_lite
