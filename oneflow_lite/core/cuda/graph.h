// SPDX-License-Identifier: Apache-2.0
//
// CUDA graphs: capture a stream's work once, replay it with one call. What is copied from the host
// meanwhile is copied once, then. Random numbers of the device's default generator are those of the
// replays; what other threads draw during a capture is theirs. Replays with random numbers on two
// streams follow each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "oneflow_lite/core/stream.h"

namespace oneflow_lite {

StatusOr<Ref<Graph>> NewCudaGraph(Device device);

// Stream::RandomShift of the graph whose capture has this id; null where it is no Graph's.
StatusOr<const uint64_t*> RandomShiftOfCapture(uint64_t capture_id);

// While a Graph captures the stream: the bytes, in memory of the graph's own on its device, where
// they stay as they are now for all replays. RuntimeError where another library's graph does.
StatusOr<const void*> KeptByCapture(const Stream& stream, const void* bytes, size_t nbytes);

// Lets `after` run behind each replay of the graph that captures the stream now, with the stream of
// the replay; of those given for one key the last does. Does nothing where no Graph captures it.
Status AfterReplays(const Stream& stream, const void* key, std::function<Status(Stream&)> after);

}  // namespace oneflow_lite
