// SPDX-License-Identifier: Apache-2.0
#include "primitive/primitive.h"

#include <cstring>
#include <mutex>
#include <vector>

#include "oneflow_lite/core/device_backend.h"

namespace oneflow_lite {
namespace {

struct Entry {
  DeviceType device;
  const char* name;
  internal::AnyFactory factory;
};
struct Table {
  std::mutex mutex;
  std::vector<Entry> entries;
};
Table& GetTable() {
  static auto* table = new Table;
  return *table;
}

}  // namespace

namespace internal {

bool AddFactory(DeviceType device, const char* name, AnyFactory factory) {
  Table& table = GetTable();
  std::lock_guard lock(table.mutex);
  table.entries.push_back({device, name, factory});
  return true;
}

StatusOr<AnyFactory> FindFactory(DeviceType device, const char* name) {
  OFL_RETURN_IF_ERROR(GetBackend(device).status());  // opens the CUDA half at first use
  Table& table = GetTable();
  std::lock_guard lock(table.mutex);
  AnyFactory found = nullptr;
  for (const Entry& e : table.entries) {
    if (e.device != device || std::strcmp(e.name, name) != 0) continue;
    if (found) {
      return Error(ErrorKind::kRuntime, "primitive ", name, " is registered twice for ",
                   Name(device));
    }
    found = e.factory;
  }
  if (!found) {
    return Error(ErrorKind::kNotImplemented, "primitive ", name, " is not built for ",
                 Name(device));
  }
  return found;
}

}  // namespace internal

Status NoPrimitiveFor(const char* primitive, DeviceType device, DType dtype) {
  return Error(ErrorKind::kNotImplemented, "primitive ", primitive, " on ", Name(device),
               " has no code for ", Name(dtype));
}

}  // namespace oneflow_lite
