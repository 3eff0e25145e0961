// SPDX-License-Identifier: Apache-2.0
//
// The C structures of DLPack 1.0 (dmlc.github.io/dlpack), by which libraries share tensors without
// knowing each other. A capsule named "dltensor" holds a ManagedTensor, one named
// "dltensor_versioned" a VersionedTensor; the consumer renames it to "used_..." and calls deleter
// when it is done. Layouts are an ABI: fields and their order are not ours to change.
#pragma once

#include <cstdint>
#include <type_traits>

#include "oneflow_lite/core/device.h"
#include "oneflow_lite/core/dtype.h"

namespace oneflow_lite::dlpack {

enum DeviceCode : int32_t { kCPU = 1, kCUDA = 2, kCUDAHost = 3, kCUDAManaged = 13 };
enum TypeCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBFloat = 4, kBool = 6 };
inline constexpr uint64_t kReadOnlyFlag = 1;
inline constexpr uint64_t kCopiedFlag = 2;  // nobody else has the memory
inline constexpr uint32_t kMajorVersion = 1;

struct DeviceId {
  int32_t type;
  int32_t id;
};
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct Array {
  void* data;
  DeviceId device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;      // in elements; null: contiguous
  uint64_t byte_offset;  // from data to the first element
};
struct ManagedTensor {
  Array array;
  void* context;
  void (*deleter)(ManagedTensor* self);
};
struct Version {
  uint32_t major;
  uint32_t minor;
};
struct VersionedTensor {
  Version version;
  void* context;
  void (*deleter)(VersionedTensor* self);
  uint64_t flags;
  Array array;
};

}  // namespace oneflow_lite::dlpack

namespace oneflow_lite::python {

// The names of capsules, by the structure in them.
template <class M>
inline constexpr bool kVersioned = std::is_same_v<M, dlpack::VersionedTensor>;
template <class M>
inline constexpr const char* kCapsuleName = kVersioned<M> ? "dltensor_versioned" : "dltensor";
template <class M>
inline constexpr const char* kUsedCapsuleName =
    kVersioned<M> ? "used_dltensor_versioned" : "used_dltensor";

// As DLPack numbers them.
dlpack::DataType DlpackTypeOf(DType t);
dlpack::DeviceId DlpackDeviceOf(Device d);

}  // namespace oneflow_lite::python
