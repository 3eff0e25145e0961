// SPDX-License-Identifier: Apache-2.0
//
// One function per family of user errors, so that the wording is the same in every op. `op` is the
// op's name without parentheses; a tensor is described by Describe().
//
//   return DimOutOfRange("softmax", dim, x);
//   // softmax(): dim 3 is out of range [-2, 1] for a tensor of shape [4, 5] (float32, cuda:0)
#pragma once

#include <string>

#include "oneflow_lite/core/dtype.h"
#include "oneflow_lite/core/scalar.h"
#include "oneflow_lite/core/shape.h"
#include "oneflow_lite/core/status.h"
#include "oneflow_lite/core/tensor.h"

namespace oneflow_lite {

// "a tensor of shape [4, 5] (float32, cuda:0)"
OFL_API std::string Describe(const Tensor& t);

// TypeError: the argument is an undefined tensor, but may not be absent.
OFL_API Status NotDefined(absl::string_view op, absl::string_view argument);
// IndexError.
OFL_API Status DimOutOfRange(absl::string_view op, int64_t dim, const Tensor& t);
OFL_API Status IndexOutOfRange(absl::string_view op, int64_t index, int64_t dim, int64_t size);
// DTypeError; `allowed` lists what there is, e.g. "float16, bfloat16, float32 or float64".
OFL_API Status UnsupportedDType(absl::string_view op, absl::string_view argument, DType given,
                                absl::string_view allowed);
// DTypeError where the result of an op has a dtype that is none: softmax(x, 0, DType(99)).
inline Status CheckDType(absl::string_view op, DType result) {
  if (IsDType(result)) return OkStatus();
  return UnsupportedDType(op, "the result", result, "one of those of DType");
}
OFL_API Status DTypeMismatch(absl::string_view op, absl::string_view argument, DType given,
                             absl::string_view expected);
// ShapeError.
OFL_API Status ShapeMismatch(absl::string_view op, absl::string_view argument,
                             absl::Span<const int64_t> given, absl::string_view expected);
// ValueError.
OFL_API Status BadValue(absl::string_view op, absl::string_view argument, absl::string_view given,
                        absl::string_view allowed);
// OverflowError: add(): the number 300 is out of range [-128, 127] of int8
OFL_API Status NumberOutOfRange(absl::string_view op, const Scalar& number, DType dtype);
// RuntimeError.
OFL_API Status DeviceMismatch(absl::string_view op, absl::string_view first_argument, Device first,
                              absl::string_view second_argument, Device second);

// The error under the name of the function that the user called, in place of the inner op's, or
// before a message that names none. An exception of Python stays as it is.
OFL_API Status Renamed(absl::string_view op, const Status& s);

// NumberOutOfRange where an element of the dtype cannot be the number.
OFL_API Status CheckFits(absl::string_view op, const Scalar& number, DType dtype);

// ValueError where an integer is raised to a negative whole power.
OFL_API Status CheckExponent(absl::string_view op, const Scalar& exponent, DType base);

// dim counted from the end where negative; a 0-dim tensor has the dims 0 and -1.
OFL_API StatusOr<int64_t> WrapDim(absl::string_view op, int64_t dim, const Tensor& t);

// The text that names the four floating dtypes in error messages.
inline constexpr char kFloatingDTypes[] = "float16, bfloat16, float32 or float64";

}  // namespace oneflow_lite
