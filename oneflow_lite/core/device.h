// SPDX-License-Identifier: Apache-2.0
//
// Where a tensor lives: cpu, cuda:<index>, or meta (shape and dtype without memory).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "oneflow_lite/core/export.h"

namespace oneflow_lite {

enum class DeviceType : uint8_t { kCPU, kCUDA, kMeta };
inline constexpr int kNumDeviceTypes = 3;

// "cuda"
OFL_API const char* Name(DeviceType t);

struct OFL_API Device {
  DeviceType type = DeviceType::kCPU;
  int16_t index = 0;

  bool operator==(const Device&) const = default;

  // "cpu", "cuda:0", "meta"
  std::string ToString() const;
  // Accepts "cpu", "cuda", "cuda:1", "meta"; a ValueError says what is allowed.
  static absl::StatusOr<Device> Parse(absl::string_view text);
};

}  // namespace oneflow_lite
