// SPDX-License-Identifier: Apache-2.0
//
// From an operator to a primitive: the stream, the workspace, and the primitive itself, made once.
//
//   const CurrentStream stream(x.device);
//   const Softmax& softmax = Primitive<Softmax>(x.device.type, {.dtype = x.dtype});
//   const Workspace workspace(x.device, softmax.WorkspaceBytes(stream, shape));
//   Check(softmax.Launch(stream, shape, x.data, y.data, workspace.data()));
#pragma once

#include <atomic>

#include "oneflow_lite/core/stream.h"
#include "primitive/primitive.h"
#include "python/torch/bindings/tensor.h"

namespace oneflow_lite::torch_ops {

// PyTorch's current stream of a device. invariant: its launches are planned by width and dtype, as
// streams without multiprocessors are.
class CurrentStream final : public Stream {
 public:
  explicit CurrentStream(Device device, bool invariant = false);
  void* native() const override { return native_; }

 private:
  void* native_ = nullptr;
};

// Memory for the time of a launch: of PyTorch's allocator, whose streams order its use, or where it
// is little, on the CPU, this object's own.
class Workspace {
 public:
  Workspace(const Device& device, size_t bytes) {
    if (bytes == 0) return;
    if (device.type == DeviceType::kCPU && bytes <= sizeof(little_)) {
      data_ = little_;
      return;
    }
    const auto size = static_cast<int64_t>(bytes);
    tensor_ = Empty(&size, 1, DType::kUInt8, device);
    data_ = tensor_->data();
  }
  Workspace(const Workspace&) = delete;
  void* data() const { return data_; }

 private:
  OptionalTensor tensor_;
  void* data_ = nullptr;
  alignas(64) char little_[8192];  // an allocation costs as much as a small launch
};

// The primitive for a spec, whose variant is a number below kVariants that says all of the spec but
// its dtype. Never freed.
inline constexpr int kVariants = 16;
template <class P>
const P& Primitive(DeviceType device, const typename P::Spec& spec, int variant = 0) {
  static std::atomic<const P*> made[2][kNumDTypes][kVariants];
  auto& slot = made[device == DeviceType::kCUDA][static_cast<int>(spec.dtype)][variant];
  const P* primitive = slot.load(std::memory_order_acquire);
  if (primitive) [[likely]]
    return *primitive;
  auto fresh = NewPrimitive<PrimitiveFactory<P>>(device, spec);
  Check(fresh.status());
  const P* expected = nullptr;
  primitive = fresh->get();
  if (!slot.compare_exchange_strong(expected, primitive)) return *expected;
  return *fresh->release();
}

// What the CUDA half knows of a device. Throws where its kernels cannot run there.
const DeviceProperties& CudaProperties(int index);

}  // namespace oneflow_lite::torch_ops
