// SPDX-License-Identifier: Apache-2.0
//
// Leaves out cases under compute-sanitizer, where a module takes seconds to load and a launch up to
// a tenth of one to check: scripts/gpu_sanitize.sh sets OFL_TEST_DTYPE, OFL_TEST_MAX_ELEMENTS and
// OFL_TEST_EVERY.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite {

// Whether the environment names another dtype, or fewer elements as the most of a case, or n to run
// every n-th case only.
inline bool LeftOut(DType dtype, int64_t elements) {
  const char* only = std::getenv("OFL_TEST_DTYPE");
  const char* most = std::getenv("OFL_TEST_MAX_ELEMENTS");
  const char* every = std::getenv("OFL_TEST_EVERY");
  if (only != nullptr && std::string(only) != Name(dtype)) return true;
  if (most != nullptr && elements > std::atoll(most)) return true;
  static int64_t asked = 0;
  return every != nullptr && elements > 0 && asked++ % std::atoll(every) != 0;
}

}  // namespace oneflow_lite
