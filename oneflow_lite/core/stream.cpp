// SPDX-License-Identifier: Apache-2.0
//
// Each thread's current streams and devices.
#include "oneflow_lite/core/stream.h"

#include <vector>

#include "oneflow_lite/core/device_backend.h"

namespace oneflow_lite {
namespace {

struct ThreadStreams {
  // By device index; null stands for the default stream.
  std::vector<Ref<Stream>> current[kNumDeviceTypes];
  int device_index[kNumDeviceTypes] = {};
};
thread_local ThreadStreams thread_streams;

Ref<Stream>& CurrentSlot(Device device) {
  auto& list = thread_streams.current[static_cast<int>(device.type)];
  if (list.size() <= static_cast<size_t>(device.index)) list.resize(device.index + 1);
  return list[device.index];
}

}  // namespace

StatusOr<Stream*> CurrentStream(Device device) {
  // The pointer stays valid: default streams live forever, and a current one is held by its slot.
  if (device.type == DeviceType::kCPU) {
    static const Ref<Stream> cpu_stream = (*GetBackend(device.type))->DefaultStream(0);
    return cpu_stream.get();
  }
  OFL_ASSIGN_OR_RETURN(DeviceBackend * backend, GetBackend(device));
  Ref<Stream>& slot = CurrentSlot(device);
  if (!slot) slot = backend->DefaultStream(device.index);
  return slot.get();
}

void SetCurrentStream(Ref<Stream> stream) {
  const Device device = stream->device();
  CurrentSlot(device) = std::move(stream);
}

int CurrentDeviceIndex(DeviceType type) {
  return thread_streams.device_index[static_cast<int>(type)];
}
void SetCurrentDeviceIndex(DeviceType type, int index) {
  thread_streams.device_index[static_cast<int>(type)] = index;
  if (const auto backend = GetBackend(type); backend.ok()) (*backend)->MakeCurrent(index);
}

StreamGuard::StreamGuard(Ref<Stream> stream)
    : device_(stream->device()), previous_(CurrentSlot(device_)) {
  CurrentSlot(device_) = std::move(stream);
}
StreamGuard::~StreamGuard() { CurrentSlot(device_) = std::move(previous_); }

}  // namespace oneflow_lite
