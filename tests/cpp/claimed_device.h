// SPDX-License-Identifier: Apache-2.0
//
// Launches laid out for another CUDA device than the one that runs them: with OFL_TEST_DEVICE=sm_80
// in the environment the tests' streams claim an A100's limits, so that the kernels which serve
// wide rows where there are no clusters run on a GPU that has them; with sm_120 those of little
// shared memory beside clusters.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>

#include "oneflow_lite/core/stream.h"

namespace oneflow_lite {

// A stream whose device claims less than it can do.
class ClaimingStream final : public Stream {
 public:
  // `properties` must outlive it.
  ClaimingStream(Ref<Stream> stream, const DeviceProperties* properties)
      : Stream(stream->device(), properties), stream_(std::move(stream)) {}
  void* native() const override { return stream_->native(); }
  Status Synchronize() override { return stream_->Synchronize(); }
  bool capturing() const override { return stream_->capturing(); }

 private:
  Ref<Stream> stream_;
};

// The stream, or where the environment names a device one that claims to be of it.
inline Ref<Stream> AsClaimed(Ref<Stream> stream) {
  struct Device {
    const char* name;
    int multiprocessors;
    size_t shared_memory_per_block, shared_memory_per_sm;
    bool clusters = false;
  };
  static constexpr Device kDevices[] = {{"sm_80", 108, 163 << 10, 164 << 10},  // A100
                                        {"sm_86", 84, 99 << 10, 100 << 10},    // RTX 3090, A40
                                        {"sm_89", 128, 99 << 10, 100 << 10},   // RTX 4090
                                        {"sm_120", 170, 99 << 10, 100 << 10, true}};  // RTX 5090
  const char* name = std::getenv("OFL_TEST_DEVICE");
  if (name == nullptr || *name == '\0' || stream->device().type != DeviceType::kCUDA) return stream;
  const auto* device = std::find_if(std::begin(kDevices), std::end(kDevices),
                                    [&](const Device& d) { return std::string(name) == d.name; });
  OFL_CHECK(device != std::end(kDevices));
  static DeviceProperties claimed;
  claimed = stream->properties();
  claimed.supports_clusters = device->clusters;
  claimed.multiprocessors = std::min(claimed.multiprocessors, device->multiprocessors);
  claimed.shared_memory_per_block =
      std::min(claimed.shared_memory_per_block, device->shared_memory_per_block);
  claimed.shared_memory_per_sm =
      std::min(claimed.shared_memory_per_sm, device->shared_memory_per_sm);
  return MakeRef<ClaimingStream>(std::move(stream), &claimed);
}

}  // namespace oneflow_lite
