// SPDX-License-Identifier: Apache-2.0
//
// Autocast: mixed precision as a mode of the dispatch chain (framework/dispatch.h). Before an op
// runs, its inputs become what its policy says; the casts are recorded by autograd like any other.
// The policies are a table, ops/autocast.cpp. All state is a thread's own.
//
//   AutocastGuard mixed(DeviceType::kCUDA, {.dtype = DType::kBFloat16});
//   OFL_ASSIGN_OR_RETURN(Tensor y, functional::Matmul(x, weight));   // of bfloat16
//
// Gradients are computed as their forward was: the mode rests while a pass of backward runs.
#pragma once

#include "oneflow_lite/core/tensor.h"
#include "oneflow_lite/framework/dispatch.h"

namespace oneflow_lite {

enum class AutocastPolicy : uint8_t {
  kAsIs,     // takes what it is given
  kLower,    // floating inputs in the dtype of autocast: products of matrices
  kFloat32,  // 16-bit inputs in float32, or, where the op chooses its result's dtype, that
  kWidest,   // floating inputs in the widest dtype among them
};

struct AutocastOptions {
  bool enabled = true;
  DType dtype = DType::kBFloat16;  // or float16
  bool cache = true;               // keep the casts of leaves that require grad until the end
  bool torch = false;              // PyTorch's policies, whose rows give float32
};

// The policies of one op; float64 and tensors of other devices are left as they are.
struct AutocastRow {
  const char* op;
  AutocastPolicy own;
  AutocastPolicy torch_cuda, torch_cpu;  // where `torch` is set
};
// Adds rows to the table, before the first op runs under autocast.
OFL_API bool AddAutocastRows(absl::Span<const AutocastRow> rows);
OFL_API absl::Span<const AutocastRow> AutocastRows();
// The row of an op; null where it has none, which is kAsIs.
OFL_API const AutocastRow* AutocastRowOf(const OpDef& op);

// Puts options in force on this thread for the tensors of a device type, which may be kCPU or
// kCUDA, until PopAutocast; they nest. The last of them drops the cached casts.
OFL_API void PushAutocast(DeviceType type, const AutocastOptions& options);
// False where there is none on this thread.
OFL_API bool PopAutocast();
// What is in force; `enabled` is false where nothing is.
OFL_API AutocastOptions CurrentAutocast(DeviceType type);
// Drops the cached casts of this thread; a capture begins and ends with it.
OFL_API void DropAutocastCache();

class AutocastGuard {
 public:
  AutocastGuard(DeviceType type, const AutocastOptions& options) { PushAutocast(type, options); }
  ~AutocastGuard() { PopAutocast(); }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;
};

// Lets the mode rest: for a pass of backward. What is pushed meanwhile is in force again.
class OFL_API AutocastPause {
 public:
  AutocastPause();
  ~AutocastPause();
  AutocastPause(const AutocastPause&) = delete;
  AutocastPause& operator=(const AutocastPause&) = delete;

 private:
  bool before_;
};

// For functors. A loss of inputs like x: float32 where x has 16 bits and autocast is on.
OFL_API DType AutocastLossDType(const Tensor& x);
// t as an op of the policy kLower takes it; t itself where autocast is off, or it is undefined.
OFL_API StatusOr<Tensor> AutocastLowered(const Tensor& t);

}  // namespace oneflow_lite
