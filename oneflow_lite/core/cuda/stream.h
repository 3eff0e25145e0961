// SPDX-License-Identifier: Apache-2.0
//
// CUDA streams and events behind the core's interfaces.
#pragma once

#include <cuda_runtime_api.h>

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

 private:
  ~CudaStream() override;

  cudaStream_t stream_;
  Ownership ownership_;
};

StatusOr<Ref<Event>> NewCudaEvent(Device device, bool timing);

}  // namespace oneflow_lite
