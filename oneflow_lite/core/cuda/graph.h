// SPDX-License-Identifier: Apache-2.0
//
// CUDA graphs: capture a stream's work once, replay it with one call.
#pragma once

#include <cstdint>

#include "oneflow_lite/core/stream.h"

namespace oneflow_lite {

StatusOr<Ref<Graph>> NewCudaGraph(Device device);

// Stream::RandomShift of the graph whose capture has this id; null where it is no Graph's.
StatusOr<const uint64_t*> RandomShiftOfCapture(uint64_t capture_id);

}  // namespace oneflow_lite
