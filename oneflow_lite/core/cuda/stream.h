// SPDX-License-Identifier: Apache-2.0
//
// CUDA streams and events behind the core's interfaces.
#pragma once

#include <cuda_runtime_api.h>

#include <mutex>

#include "oneflow_lite/core/stream.h"

namespace oneflow_lite {

// The default stream is CUDA's legacy stream (null), which other libraries use too. A stream made
// by New goes back to a pool instead of being destroyed, so that its handle never comes to mean
// another stream: the allocator orders reuse by it.
class CudaStream final : public Stream {
 public:
  enum class Ownership { kDefault, kPooled, kExternal };

  CudaStream(Device device, const DeviceProperties* properties, cudaStream_t stream,
             Ownership ownership)
      : Stream(device, properties), stream_(stream), ownership_(ownership) {}
  static StatusOr<Ref<Stream>> New(Device device, const DeviceProperties* properties);

  void* native() const override { return stream_; }
  Status Synchronize() override;
  bool capturing() const override;
  StatusOr<const uint64_t*> RandomShift() override;
  // kCounters zeros in the device's memory, for one kernel after the other that leaves them as
  // zeros. Null during a capture, whose replays may run beside this stream, and without memory.
  static constexpr int kCounters = 4096;
  uint32_t* Counters();

 private:
  ~CudaStream() override;

  cudaStream_t stream_;
  Ownership ownership_;
  std::mutex counters_mutex_;
  uint32_t* counters_ = nullptr;
};

// Counters() of a stream that is of a CUDA device.
inline uint32_t* CountersOf(Stream& stream) { return static_cast<CudaStream&>(stream).Counters(); }

StatusOr<Ref<Event>> NewCudaEvent(Device device, bool timing);

}  // namespace oneflow_lite
