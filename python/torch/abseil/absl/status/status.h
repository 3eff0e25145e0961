// SPDX-License-Identifier: Apache-2.0
//
// absl::Status as the kernels' host code uses it, over the standard library: this library must load
// beside any Abseil, or none. Found before the real one (CMakeLists.txt). The code is an ErrorKind
// of oneflow_lite/core/status.h, plus one; 0 is success.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace absl {

class Status {
 public:
  Status() = default;
  Status(int code, string_view message)
      : code_(code), message_(std::make_shared<const std::string>(message)) {}

  bool ok() const { return code_ == 0; }
  int raw_code() const { return code_; }
  string_view message() const { return message_ ? string_view(*message_) : string_view(); }

 private:
  int code_ = 0;
  std::shared_ptr<const std::string> message_;
};

inline Status OkStatus() { return Status(); }

}  // namespace absl
