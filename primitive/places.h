// SPDX-License-Identifier: Apache-2.0
//
// What a place along a dim means, for host and device.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/philox.h"  // OFL_HOST_DEVICE

namespace oneflow_lite {

// The place in [0, size) that is meant, -1 where there is none. Negative ones count from the end,
// if so asked.
OFL_HOST_DEVICE int64_t FindPlace(int64_t place, int64_t size, bool from_end) {
  if (from_end && place < 0) place += size;
  return static_cast<uint64_t>(place) < static_cast<uint64_t>(size) ? place : -1;
}

}  // namespace oneflow_lite
