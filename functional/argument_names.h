// SPDX-License-Identifier: Apache-2.0
//
// Errors of a function that another one calls, in the words of the other's arguments.
//
//   StatusOr<Tensor> y = Matmul(a, vec);
//   if (!y.ok()) return WithArgument(Renamed("mv", y.status()), "other", "vec");
//   // mv(): vec has shape [2], expected [3] to go with [2, 3]
#pragma once

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite::functional {

// The error with the name `to` where it speaks of the argument `from`: "f(): from has ..." or "f():
// a has dtype x and from y"; else as it is.
inline Status WithArgument(const Status& s, absl::string_view from, absl::string_view to) {
  const absl::string_view message = s.message();
  const std::string before = absl::StrCat("(): ", from, " ");
  const size_t at = message.find("(): ");
  if (at == absl::string_view::npos) return s;
  if (!absl::StartsWith(message.substr(at), before)) {
    const std::string second = absl::StrCat(" and ", from, " ");
    const size_t there = message.find(second, at);
    if (there == absl::string_view::npos) return s;
    return MakeError(KindOf(s), absl::StrCat(message.substr(0, there), " and ", to, " ",
                                             message.substr(there + second.size())));
  }
  return MakeError(KindOf(s), absl::StrCat(message.substr(0, at), "(): ", to, " ",
                                           message.substr(at + before.size())));
}

}  // namespace oneflow_lite::functional
