// SPDX-License-Identifier: Apache-2.0
//
// What the functions of ofl_rows.h share: the check of arguments, one after the other, and the way
// to the launchers. The first thing wrong decides the status, and nothing is launched then.
//
// An op has a type that is made of a call and its struct of arguments:
//
//   struct SoftmaxForward {
//     SoftmaxForward(Call& call, const ofl_softmax_args& args);   // checks sizes and dtypes
//     bool empty() const;                                         // nothing to do, pointers unseen
//     void CheckPointers(Call& call) const;
//     size_t WorkspaceBytes(const DeviceLimits& limits) const;    // where args has workspace
//     cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const;
//   };
//   ofl_status ofl_softmax_with(ofl_stream stream, const ofl_softmax_args* args) {
//     return RunOp<SoftmaxForward>(__func__, stream, args);
//   }
#pragma once

#include "primitive/cuda/c_api/device.h"
#include "primitive/cuda/c_api/ofl_rows.h"

namespace oneflow_lite {
namespace cuda {

// One kind of launchers of the four floats.
template <class L>
struct LaunchersByDtype {
  const L *float16, *bfloat16, *float32, *float64;

  const L* Find(ofl_dtype dtype) const {
    switch (dtype) {
      case OFL_FLOAT16:
        return float16;
      case OFL_BFLOAT16:
        return bfloat16;
      case OFL_FLOAT32:
        return float32;
      case OFL_FLOAT64:
        return float64;
      default:
        return nullptr;
    }
  }
};

constexpr int64_t SizeOf(ofl_dtype dtype) {
  return dtype == OFL_FLOAT64 ? 8 : dtype == OFL_FLOAT32 ? 4 : dtype == OFL_BOOL ? 1 : 2;
}
constexpr ofl_dtype ComputeDtype(ofl_dtype dtype) {
  return dtype == OFL_FLOAT64 ? OFL_FLOAT64 : OFL_FLOAT32;
}
// Statistics, losses, factors.
constexpr int64_t ComputeSize(ofl_dtype dtype) { return SizeOf(ComputeDtype(dtype)); }

class Call {
 public:
  explicit Call(const char* function) : function_(function) {}

  bool ok() const { return status_ == OFL_OK; }
  ofl_status status() const { return status_; }

  // The first failure is kept, and its message for ofl_rows_last_error.
  __attribute__((format(printf, 3, 4))) void Fail(ofl_status status, const char* format, ...);

  // Whether `args` is there.
  bool Args(const void* args) {
    if (!args) Fail(OFL_NULL_POINTER, "args is null");
    return ok();
  }
  // Null, and a failure, where `dtype` has no kernels.
  template <class L>
  const L* Launchers(ofl_dtype dtype, const LaunchersByDtype<L>& all) {
    const L* found = all.Find(dtype);
    if (!found) FailOfDtype(dtype);
    return found;
  }
  // rows x cols elements that can be addressed.
  void Matrix(int64_t rows, int64_t cols);
  // A distance of rows of so many columns; 0: dense. Gives it.
  int64_t Stride(const char* name, int64_t stride, int64_t rows, int64_t cols);
  // A pointer that is needed, or one that may be null.
  void Pointer(const char* name, const void* p, int64_t alignment) {
    if (!p) Fail(OFL_NULL_POINTER, "%s is null", name);
    OptionalPointer(name, p, alignment);
  }
  void OptionalPointer(const char* name, const void* p, int64_t alignment) {
    if (reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(alignment) == 0) return;
    Fail(OFL_MISALIGNED, "%s is not aligned to its element, %d bytes", name,
         static_cast<int>(alignment));
  }
  // Workspace that, where it is given, must have what the op needs; `required`: where it needs
  // some, it must be given.
  template <class Op>
  void Workspace(const void* workspace, size_t bytes, bool required, const Op& op) {
    if ((workspace || required) && HasLimits()) {
      CheckWorkspace(workspace, bytes, op.WorkspaceBytes(limits_));
    }
  }

  // f(limits) if nothing is wrong.
  template <class F>
  ofl_status Run(const F& f) {
    if (HasLimits()) f(limits_);
    return status_;
  }
  void Cuda(cudaError_t error) {
    if (error != cudaSuccess) FailOfCuda(error);
  }

 private:
  // Whether nothing is wrong and the device is known.
  bool HasLimits() {
    if (ok() && !has_limits_) {
      Cuda(LimitsOfCurrentDevice(&limits_));
      has_limits_ = ok();
    }
    return ok();
  }
  void CheckWorkspace(const void* workspace, size_t bytes, size_t needed);
  void FailOfDtype(ofl_dtype dtype);
  void FailOfCuda(cudaError_t error);

  const char* function_;
  ofl_status status_ = OFL_OK;
  bool has_limits_ = false;
  DeviceLimits limits_;
};

template <class Op, class Args, class... More>
ofl_status RunOp(const char* function, ofl_stream stream, const Args* args, More... more) {
  Call call(function);
  if (!call.Args(args)) return call.status();
  const Op op(call, *args, more...);
  if (!call.ok() || op.empty()) return call.status();
  op.CheckPointers(call);
  if constexpr (requires { args->workspace; }) {
    call.Workspace(args->workspace, args->workspace_bytes, Op::kNeedsWorkspace, op);
  }
  return call.Run([&](const DeviceLimits& limits) { call.Cuda(op.Launch(limits, stream)); });
}

// Answers ofl_..._workspace.
template <class Op, class Args, class... More>
ofl_status AskOp(const char* function, const Args* args, size_t* bytes, More... more) {
  Call call(function);
  if (!call.Args(args)) return call.status();
  if (!bytes) call.Fail(OFL_NULL_POINTER, "bytes is null");
  const Op op(call, *args, more...);
  return call.Run(
      [&](const DeviceLimits& limits) { *bytes = op.empty() ? 0 : op.WorkspaceBytes(limits); });
}

}  // namespace cuda
}  // namespace oneflow_lite
