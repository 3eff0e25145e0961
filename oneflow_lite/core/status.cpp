// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/status.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/cord.h"

namespace oneflow_lite {
namespace {

constexpr char kKindUrl[] = "oneflow_lite/error_kind";

absl::StatusCode CodeOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kIndex:
    case ErrorKind::kOverflow:
      return absl::StatusCode::kOutOfRange;
    case ErrorKind::kDType:
    case ErrorKind::kType:
    case ErrorKind::kShape:
    case ErrorKind::kValue:
      return absl::StatusCode::kInvalidArgument;
    case ErrorKind::kNotImplemented:
      return absl::StatusCode::kUnimplemented;
    case ErrorKind::kOutOfMemory:
      return absl::StatusCode::kResourceExhausted;
    case ErrorKind::kPython:
      return absl::StatusCode::kUnknown;
    default:
      return absl::StatusCode::kFailedPrecondition;
  }
}

}  // namespace

Status MakeError(ErrorKind kind, absl::string_view message) {
  Status s(CodeOf(kind), message);
  const char byte = static_cast<char>(kind);
  s.SetPayload(kKindUrl, absl::Cord(absl::string_view(&byte, 1)));
  return s;
}

ErrorKind KindOf(const Status& s) {
  if (auto payload = s.GetPayload(kKindUrl); payload && payload->size() == 1) {
    return static_cast<ErrorKind>((*payload)[0]);
  }
  return ErrorKind::kRuntime;
}

void CheckFailed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "oneflow_lite bug: %s:%d: check failed: %s\n", file, line, what);
  std::abort();
}

}  // namespace oneflow_lite
