// SPDX-License-Identifier: Apache-2.0
//
// absl::string_view; see status/status.h.
#pragma once

#include <string_view>

namespace absl {
using std::string_view;
}  // namespace absl
