// SPDX-License-Identifier: Apache-2.0
//
// Streams order work on a device; events mark points in them; a graph replays captured work. Each
// thread has one current stream per device; kernels run on it. On the CPU everything is
// synchronous and one default stream stands for the device.
//
//   OFL_ASSIGN_OR_RETURN(Ref<Stream> side, backend->NewStream(0));
//   StreamGuard guard(side);   // this thread's work on that device now goes to `side`
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "oneflow_lite/core/device.h"
#include "oneflow_lite/core/ref.h"
#include "oneflow_lite/core/status.h"

namespace oneflow_lite {

// What kernels ask about a device; read once per device and cached.
struct DeviceProperties {
  std::string name;
  int compute_capability = 0;          // 90 for sm_90; 0 on the CPU
  int multiprocessors = 0;             // SMs; cores on the CPU
  size_t shared_memory_per_block = 0;  // bytes, after opt-in
  size_t shared_memory_per_sm = 0;     // bytes
  size_t l2_bytes = 0;
  size_t total_memory = 0;  // bytes
  bool supports_clusters = false;
  bool supports_cooperative_launch = false;
};

class OFL_API Stream : public RefCounted {
 public:
  explicit Stream(Device device, const DeviceProperties* properties)
      : device_(device), properties_(properties) {}
  Device device() const { return device_; }
  const DeviceProperties& properties() const { return *properties_; }
  // The device API's own handle (cudaStream_t); null on the CPU.
  virtual void* native() const { return nullptr; }
  // Waits until all work enqueued so far has ended; reports an asynchronous error of that work.
  virtual Status Synchronize() { return OkStatus(); }
  // True between the begin and the end of a graph capture on this stream.
  virtual bool capturing() const { return false; }
  // While a Graph captures this stream, where its replays keep two numbers, in the device's memory:
  // what random kernels are to add to their seed and to their offset. Null at other times.
  virtual StatusOr<const uint64_t*> RandomShift() { return nullptr; }

 private:
  Device device_;
  const DeviceProperties* properties_;
};

class OFL_API Event : public RefCounted {
 public:
  virtual Status Record(Stream& stream) = 0;
  // Makes later work on `stream` wait for the recorded point.
  virtual Status Wait(Stream& stream) = 0;
  virtual Status Synchronize() = 0;
  // Whether the recorded point has been reached.
  virtual StatusOr<bool> Query() = 0;
  // Milliseconds from this event to `end`; both must have been recorded with timing.
  virtual StatusOr<float> ElapsedMs(Event& end) = 0;
};

class OFL_API Graph : public RefCounted {
 public:
  // Work enqueued on `stream` between begin and end is recorded instead of run. Memory allocated
  // meanwhile comes from a pool that belongs to this graph. Random numbers of the device's default
  // generator are taken from it by each replay anew, as by the calls that were captured.
  virtual Status CaptureBegin(Stream& stream) = 0;
  virtual Status CaptureEnd() = 0;
  virtual Status Replay(Stream& stream) = 0;
};

// This thread's current stream of the device; the default stream unless a guard says otherwise.
OFL_API StatusOr<Stream*> CurrentStream(Device device);
OFL_API void SetCurrentStream(Ref<Stream> stream);

// This thread's current device index of a device type, what plain "cuda" means.
OFL_API int CurrentDeviceIndex(DeviceType type);
OFL_API void SetCurrentDeviceIndex(DeviceType type, int index);

// Makes `stream` current for this thread until destroyed.
class OFL_API StreamGuard {
 public:
  explicit StreamGuard(Ref<Stream> stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Device device_;
  Ref<Stream> previous_;
};

}  // namespace oneflow_lite
