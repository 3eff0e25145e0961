// SPDX-License-Identifier: Apache-2.0
//
// CUDA graphs: capture a stream's work once, replay it with one call.
#pragma once

#include "oneflow_lite/core/stream.h"

namespace oneflow_lite {

StatusOr<Ref<Graph>> NewCudaGraph(Device device);

}  // namespace oneflow_lite
