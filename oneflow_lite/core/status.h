// SPDX-License-Identifier: Apache-2.0
//
// Errors travel as absl::Status; the kind decides which Python exception the bindings raise.
//
//   Status Check(int64_t n) {
//     if (n < 0) return Error(ErrorKind::kValue, "rand(): n is ", n, ", but must not be negative");
//     return OkStatus();
//   }
//   OFL_RETURN_IF_ERROR(Check(n));
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::Softmax(x, 1));
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "oneflow_lite/core/export.h"
#if __has_include("oneflow_lite/core/abseil_check.h")  // written when the package is installed
#include "oneflow_lite/core/abseil_check.h"
#endif

namespace oneflow_lite {

using absl::OkStatus;
using absl::Status;
using absl::StatusOr;

// The kinds of errors: what went wrong, and which exception Python sees.
enum class ErrorKind : char {
  kRuntime,         // RuntimeError
  kIndex,           // IndexError
  kDType,           // DTypeError: TypeError and RuntimeError
  kType,            // TypeError
  kShape,           // ShapeError: ValueError and RuntimeError
  kValue,           // ValueError
  kOverflow,        // OverflowError
  kNotImplemented,  // NotImplementedError
  kOutOfMemory,     // OutOfMemoryError: RuntimeError
  kPython,          // an exception raised inside a Python op; it comes back as itself
};

OFL_API Status MakeError(ErrorKind kind, absl::string_view message);
// Precondition: !s.ok().
OFL_API ErrorKind KindOf(const Status& s);

template <class... Parts>
Status Error(ErrorKind kind, const Parts&... parts) {
  return MakeError(kind, absl::StrCat(parts...));
}

// Ends the process with file, line and message; reached through OFL_CHECK only.
[[noreturn]] OFL_API void CheckFailed(const char* file, int line, const char* what);

}  // namespace oneflow_lite

#define OFL_RETURN_IF_ERROR(expr)                                                \
  do {                                                                           \
    if (::absl::Status ofl_status = (expr); !ofl_status.ok()) return ofl_status; \
  } while (0)

#define OFL_ASSIGN_OR_RETURN(lhs, expr) \
  OFL_ASSIGN_OR_RETURN_INNER(OFL_CONCAT(ofl_result_, __LINE__), lhs, expr)
#define OFL_ASSIGN_OR_RETURN_INNER(result, lhs, expr)  \
  auto result = (expr);                                \
  if (!result.ok()) return std::move(result).status(); \
  lhs = std::move(result).value()

// For our own bugs alone: no input from outside may reach a failing check.
#define OFL_CHECK(condition) \
  ((condition) ? (void)0 : ::oneflow_lite::CheckFailed(__FILE__, __LINE__, #condition))
