// SPDX-License-Identifier: Apache-2.0
//
// What a kind of device offers to the core: memory, copies, streams. The CPU's lives in the core;
// CUDA's is in liboneflow_lite_cuda.so, which GetBackend opens at the first use of CUDA.
#pragma once

#include <cstddef>

#include "oneflow_lite/core/stream.h"

namespace oneflow_lite {

// Bytes on one device.
struct MemoryStats {
  size_t allocated = 0;       // held by tensors
  size_t reserved = 0;        // taken from the system, cached blocks included
  size_t peak_allocated = 0;  // highest `allocated` since start or ResetPeak
};

class OFL_API DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  virtual int DeviceCount() = 0;
  // Preconditions for all below: 0 <= index < DeviceCount().
  virtual const DeviceProperties& Properties(int index) = 0;

  // Memory of at least nbytes > 0, aligned to 64 bytes (256 on CUDA), for use in the order of
  // `stream`. OutOfMemoryError after cached memory was given back in vain.
  virtual StatusOr<void*> Allocate(size_t nbytes, Stream& stream) = 0;
  virtual void Free(void* data, size_t nbytes, Device device) = 0;
  // The block is also used on `stream`: it is not handed out again before that use has ended.
  virtual Status RecordStream(void* data, Stream& stream) = 0;
  // Gives all cached blocks back to the system.
  virtual void EmptyCache(int index) = 0;
  virtual MemoryStats Stats(int index) = 0;
  virtual void ResetPeak(int index) = 0;

  // Copies nbytes between this device and itself or the host, ordered after the stream's earlier
  // work. A copy to host memory has ended when the call returns.
  virtual Status CopyOnDevice(void* dst, const void* src, size_t nbytes, Stream& stream) = 0;
  virtual Status CopyFromHost(void* dst, const void* src, size_t nbytes, Stream& stream) = 0;
  virtual Status CopyToHost(void* dst, const void* src, size_t nbytes, Stream& stream) = 0;

  virtual Ref<Stream> DefaultStream(int index) = 0;
  virtual StatusOr<Ref<Stream>> NewStream(int index) = 0;
  // Wraps a stream made by someone else (torch's, for DLPack); it must outlive the handle.
  virtual StatusOr<Ref<Stream>> ExternalStream(int index, void* native) = 0;
  virtual StatusOr<Ref<Event>> NewEvent(int index, bool timing) = 0;
  virtual StatusOr<Ref<Graph>> NewGraph(int index) = 0;
  // Waits for all work on the device.
  virtual Status Synchronize(int index) = 0;
  // Makes it the calling thread's own, so that no call for it has to change that and back.
  virtual void MakeCurrent(int /*index*/) {}
};

// The backend of a device type; a RuntimeError says why there is none (CUDA not built, library or
// driver not found). Thread-safe; the answer is cached.
OFL_API StatusOr<DeviceBackend*> GetBackend(DeviceType type);
// GetBackend, and a RuntimeError where the index is beyond the devices there are.
OFL_API StatusOr<DeviceBackend*> GetBackend(Device device);
// Whether this build has a CUDA half at all.
OFL_API bool BuiltWithCuda();
// Called once by each backend's library.
OFL_API void RegisterBackend(DeviceType type, DeviceBackend* backend);

}  // namespace oneflow_lite
