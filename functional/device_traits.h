// SPDX-License-Identifier: Apache-2.0
//
// What a functor may ask of the device that a tensor is on. Which kernel runs is the registry's
// choice; where the composition itself differs from device to device, a predicate here says why.
// Of values that are read, functional/host_value.h says as much.
#pragma once

#include "oneflow_lite/core/held_columns.h"
#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/global.h"
#include "oneflow_lite/framework/kernel_registry.h"

namespace oneflow_lite::functional {

// The devices and dtypes that an op has kernels for, asked of the registry once. A functor calls
// the op where there is one, and composes others elsewhere. The kernels name their devices.
//
//   static const KernelSet kernels("bin_counts");
//   if (kernels.Has(x)) return Call(op, {x}, attrs);
class KernelSet {
 public:
  explicit KernelSet(absl::string_view op) {
    for (const KernelDef* k : ListKernels(op)) {
      if (k->device) dtypes_[static_cast<int>(*k->device)] |= k->dtypes;
    }
  }
  bool Has(DeviceType device, DType dtype) const {
    const int type = static_cast<int>(device);
    return type < kNumDeviceTypes && dtypes_[type] & SetOf(dtype);
  }
  // For an op of local tensors.
  bool Has(const Tensor& x) const { return !GlobalOf(x) && Has(x.device().type, x.dtype()); }

 private:
  DTypeSet dtypes_[kNumDeviceTypes] = {};
};

// Whether a call costs little beside its work, so that more calls of less work are quicker: on CUDA
// each is a launch, and of a global tensor each may be a collective.
inline bool CallsAreCheap(const Tensor& x) {
  return x.device().type == DeviceType::kCPU && !GlobalOf(x);
}
// Whether CumSum adds one element after the other, so that sums of what is not negative never fall.
// A scan in parallel rounds its sums apart from each other.
inline bool SumsNeverFall(const Tensor& sums) {
  return sums.device().type == DeviceType::kCPU && !GlobalOf(sums);
}
// Whether the ops that reduce take dims that are no neighbours (primitive/reduce.h).
inline bool ReducesDimsApart(const Tensor& x) { return x.device().type == DeviceType::kCUDA; }
// Whether scatter_add widens src to a wide sum's dtype at no cost: bfloat16 by a shift, on the CPU.
inline bool WidensAsItAdds(const Tensor& src) {
  return src.device().type == DeviceType::kCPU && src.dtype() == DType::kBFloat16;
}
// Whether scatter_add of `count` elements along a dim of `size` sums 16-bit floats in float32 by
// itself.
inline bool AddsInFloat32(const Tensor& self, int64_t count, int64_t size) {
  return self.device().type == DeviceType::kCUDA && HoldsColumns(count, size);
}
// Whether a sum of losses is quicker than their values and the sum of those: on the CPU a loss
// widens 16-bit floats in passes of its own.
inline bool SumsLossesAtOnce(const Tensor& x) {
  return x.device().type == DeviceType::kCUDA || ComputeType(x.dtype()) == x.dtype();
}
// Whether an op that gives both gradients, and sums one over what a is split around, is quicker
// than two ops and a sum. On the CPU it widens 16-bit floats in passes of its own, has no loop for
// many short runs, and spreads b, which is long beside few rows.
inline bool SumsGradientsAtOnce(const Tensor& a, const AxisSplit& split) {
  if (a.device().type == DeviceType::kCUDA) return true;
  if (ComputeType(a.dtype()) != a.dtype() || split.axis == a.numel()) return false;
  constexpr int64_t kShortRun = 64, kFewRows = 16, kLittle = 1024;
  const int64_t run = split.inner == 1 ? split.axis : split.inner;
  return a.numel() <= kLittle || (run >= kShortRun && a.numel() >= kFewRows * split.axis);
}
// Whether a chain of products of 16-bit matrices casts them to float32 first. A GPU multiplies
// 16 bits much faster than float32.
inline bool MultipliesInFloat32(const Tensor& a) {
  return a.device().type == DeviceType::kCPU && ComputeType(a.dtype()) != a.dtype();
}
// Whether work goes to a stream, which may be captured in a graph.
inline bool MayBeCaptured(Device device) { return device.type == DeviceType::kCUDA; }

}  // namespace oneflow_lite::functional
