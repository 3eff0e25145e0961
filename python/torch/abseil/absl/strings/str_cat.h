// SPDX-License-Identifier: Apache-2.0
//
// absl::StrCat; see status/status.h.
#pragma once

#include <sstream>
#include <string>

#include "absl/strings/string_view.h"

namespace absl {

template <class... Parts>
std::string StrCat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace absl
