// SPDX-License-Identifier: Apache-2.0
//
// The table of primitives and the errors, for a library without devices to open: what primitive.cpp
// and status.cpp are to the framework.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "primitive/primitive.h"

namespace oneflow_lite {
namespace {

struct Entry {
  DeviceType device;
  const char* name;
  internal::AnyFactory factory;
};
constexpr int kMost = 64;
Entry entries[kMost];  // filled by static initialisers, in no order among files
int count = 0;

}  // namespace

// The part of device.cpp that messages need.
const char* Name(DeviceType t) {
  static constexpr const char* kNames[kNumDeviceTypes] = {"cpu", "cuda", "meta"};
  return kNames[static_cast<int>(t)];
}

Status MakeError(ErrorKind kind, absl::string_view message) {
  return Status(static_cast<int>(kind) + 1, message);
}

void CheckFailed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "oneflow_lite_torch bug: %s:%d: check failed: %s\n", file, line, what);
  std::abort();
}

namespace internal {

bool AddFactory(DeviceType device, const char* name, AnyFactory factory) {
  OFL_CHECK(count < kMost);
  entries[count++] = {device, name, factory};
  return true;
}

StatusOr<AnyFactory> FindFactory(DeviceType device, const char* name) {
  for (int i = 0; i < count; ++i) {
    if (entries[i].device == device && std::strcmp(entries[i].name, name) == 0) {
      return entries[i].factory;
    }
  }
  return Error(ErrorKind::kNotImplemented, name, "(): this build of oneflow_lite_torch has no ",
               Name(device), " kernels");
}

}  // namespace internal

Status NoPrimitiveFor(const char* primitive, DeviceType device, DType dtype) {
  return Error(ErrorKind::kNotImplemented, primitive, "() on ", Name(device), " has no code for ",
               Name(dtype));
}

}  // namespace oneflow_lite
