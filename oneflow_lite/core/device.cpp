// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "oneflow_lite/core/status.h"
#include "oneflow_lite/core/stream.h"

namespace oneflow_lite {

const char* Name(DeviceType t) {
  static constexpr const char* kNames[kNumDeviceTypes] = {"cpu", "cuda", "meta"};
  return static_cast<int>(t) < kNumDeviceTypes ? kNames[static_cast<int>(t)] : "unknown";
}

std::string Device::ToString() const {
  return type == DeviceType::kCUDA ? absl::StrCat("cuda:", index) : Name(type);
}

StatusOr<Device> Device::Parse(absl::string_view text) {
  if (text == "cpu" || text == "cpu:0") return Device{DeviceType::kCPU, 0};
  if (text == "meta") return Device{DeviceType::kMeta, 0};
  if (text == "cuda") {
    return Device{DeviceType::kCUDA, static_cast<int16_t>(CurrentDeviceIndex(DeviceType::kCUDA))};
  }
  int index = -1;
  if (text.substr(0, 5) == "cuda:" && absl::SimpleAtoi(text.substr(5), &index) && index >= 0 &&
      index < 1024) {
    return Device{DeviceType::kCUDA, static_cast<int16_t>(index)};
  }
  return Error(ErrorKind::kValue, "device(): \"", text,
               "\" is not a device; allowed are \"cpu\", \"cuda\", \"cuda:<index>\" and \"meta\"");
}

}  // namespace oneflow_lite
