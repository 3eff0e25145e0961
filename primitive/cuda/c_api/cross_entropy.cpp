// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/c_api/call.h"
#include "primitive/cuda/cross_entropy/launch.h"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr LaunchersByDtype<CrossEntropyLaunchers> kCrossEntropy = {
    &kCrossEntropyFloat16, &kCrossEntropyBFloat16, &kCrossEntropyFloat32, &kCrossEntropyFloat64};
constexpr int64_t kTargetSize = sizeof(int64_t);

// What the three ops share.
template <class Args>
class CrossEntropyOp {
 public:
  static constexpr bool kNeedsWorkspace = false;

  CrossEntropyOp(Call& call, const Args& a, int64_t x_stride)
      : a_(a), launchers_(call.Launchers(a.dtype, kCrossEntropy)) {
    call.Matrix(a.rows, a.classes);
    const int64_t stride = call.Stride("x_stride", x_stride, a.rows, a.classes);
    if (!(a.smoothing >= 0 && a.smoothing <= 1)) {
      call.Fail(OFL_INVALID_VALUE, "smoothing is %g; it lies in [0, 1]", a.smoothing);
    }
    problem_ = {a.rows, a.classes, a.has_ignore_index ? a.ignore_index : -100, a.smoothing, stride};
  }
  bool empty() const { return a_.rows == 0; }

 protected:
  // Rows without classes have losses, too.
  void CheckRows(Call& call) const {
    if (a_.classes > 0) call.Pointer("x", a_.x, SizeOf(a_.dtype));
    call.Pointer("target", a_.target, kTargetSize);
  }
  // Of the compute type.
  void CheckNumber(Call& call, const char* name, const void* p) const {
    call.Pointer(name, p, ComputeSize(a_.dtype));
  }
  void CheckOptionalNumber(Call& call, const char* name, const void* p) const {
    call.OptionalPointer(name, p, ComputeSize(a_.dtype));
  }

  const Args& a_;
  const CrossEntropyLaunchers* const launchers_;
  CrossEntropyProblem problem_;
};

class CrossEntropyForward : public CrossEntropyOp<ofl_cross_entropy_args> {
 public:
  CrossEntropyForward(Call& call, const ofl_cross_entropy_args& a)
      : CrossEntropyOp(call, a, a.x_stride) {}
  void CheckPointers(Call& call) const {
    CheckRows(call);
    CheckNumber(call, "loss", a_.loss);
    CheckNumber(call, "stats", a_.stats);
  }
  size_t WorkspaceBytes(const DeviceLimits& limits) const {
    return launchers_->workspace_bytes(problem_.rows, problem_.classes, limits);
  }
  cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const {
    return launchers_->forward(problem_, a_.x, a_.target, a_.loss, a_.stats,
                               {limits, stream, a_.workspace});
  }
};

class CrossEntropyBackward : public CrossEntropyOp<ofl_cross_entropy_backward_args> {
 public:
  CrossEntropyBackward(Call& call, const ofl_cross_entropy_backward_args& a)
      : CrossEntropyOp(call, a, a.x_stride) {
    if (a.dloss_stride < 0) {
      call.Fail(OFL_INVALID_SIZE, "dloss_stride is %lld; it is not negative",
                static_cast<long long>(a.dloss_stride));
    }
  }
  bool empty() const { return a_.rows == 0 || a_.classes == 0; }
  void CheckPointers(Call& call) const {
    CheckRows(call);
    CheckNumber(call, "stats", a_.stats);
    CheckOptionalNumber(call, "dloss", a_.dloss);
    call.Pointer("dx", a_.dx, SizeOf(a_.dtype));
  }
  cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const {
    return launchers_->backward(problem_, a_.x, a_.target, a_.stats, a_.dloss, a_.dloss_stride,
                                a_.dx, {limits, stream});
  }
};

class CrossEntropyInPlace : public CrossEntropyOp<ofl_cross_entropy_in_place_args> {
 public:
  CrossEntropyInPlace(Call& call, const ofl_cross_entropy_in_place_args& a)
      : CrossEntropyOp(call, a, 0) {}
  void CheckPointers(Call& call) const {
    CheckRows(call);
    CheckOptionalNumber(call, "scale", a_.scale);
    CheckNumber(call, "loss", a_.loss);
  }
  size_t WorkspaceBytes(const DeviceLimits& limits) const {
    return launchers_->in_place_workspace_bytes(problem_.rows, problem_.classes, limits);
  }
  cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const {
    return launchers_->in_place(problem_, a_.x, a_.target, a_.scale, a_.loss,
                                {limits, stream, a_.workspace});
  }
};

}  // namespace
}  // namespace cuda
}  // namespace oneflow_lite

using namespace oneflow_lite::cuda;

ofl_status ofl_cross_entropy(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t classes,
                             const void* x, const int64_t* target, void* loss, void* stats) {
  ofl_cross_entropy_args args = {};
  args.dtype = dtype, args.rows = rows, args.classes = classes;
  args.x = x, args.target = target, args.loss = loss, args.stats = stats;
  return RunOp<CrossEntropyForward>(__func__, stream, &args);
}
ofl_status ofl_cross_entropy_with(ofl_stream stream, const ofl_cross_entropy_args* args) {
  return RunOp<CrossEntropyForward>(__func__, stream, args);
}
ofl_status ofl_cross_entropy_workspace(const ofl_cross_entropy_args* args, size_t* bytes) {
  return AskOp<CrossEntropyForward>(__func__, args, bytes);
}
ofl_status ofl_cross_entropy_backward_with(ofl_stream stream,
                                           const ofl_cross_entropy_backward_args* args) {
  return RunOp<CrossEntropyBackward>(__func__, stream, args);
}
ofl_status ofl_cross_entropy_in_place_with(ofl_stream stream,
                                           const ofl_cross_entropy_in_place_args* args) {
  return RunOp<CrossEntropyInPlace>(__func__, stream, args);
}
ofl_status ofl_cross_entropy_in_place_workspace(const ofl_cross_entropy_in_place_args* args,
                                                size_t* bytes) {
  return AskOp<CrossEntropyInPlace>(__func__, args, bytes);
}

ofl_status ofl_mean_weight(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t ignore_index,
                           const int64_t* target, void* weight) {
  Call call(__func__);
  const CrossEntropyLaunchers* launchers = call.Launchers(dtype, kCrossEntropy);
  call.Matrix(rows, 1);
  if (rows > 0) call.Pointer("target", target, kTargetSize);
  call.Pointer("weight", weight, ComputeSize(dtype));
  return call.Run([&](const DeviceLimits&) {
    call.Cuda(launchers->reduce(rows, ignore_index, nullptr, target, nullptr, weight, stream));
  });
}
ofl_status ofl_reduce_loss(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t ignore_index,
                           const void* loss, const int64_t* target, void* value, void* weight) {
  Call call(__func__);
  const CrossEntropyLaunchers* launchers = call.Launchers(dtype, kCrossEntropy);
  call.Matrix(rows, 1);
  if (rows > 0) call.Pointer("loss", loss, ComputeSize(dtype));
  call.OptionalPointer("target", target, kTargetSize);
  call.Pointer("value", value, SizeOf(dtype));
  call.Pointer("weight", weight, ComputeSize(dtype));
  return call.Run([&](const DeviceLimits&) {
    call.Cuda(launchers->reduce(rows, ignore_index, loss, target, value, weight, stream));
  });
}
ofl_status ofl_scale_rows(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols,
                          const void* factor, int64_t factor_stride, void* x) {
  Call call(__func__);
  const CrossEntropyLaunchers* launchers = call.Launchers(dtype, kCrossEntropy);
  call.Matrix(rows, cols);
  if (factor_stride < 0) {
    call.Fail(OFL_INVALID_SIZE, "factor_stride is %lld; it is not negative",
              static_cast<long long>(factor_stride));
  }
  if (!call.ok() || rows == 0 || cols == 0) return call.status();
  call.Pointer("factor", factor, ComputeSize(dtype));
  call.Pointer("x", x, SizeOf(dtype));
  return call.Run([&](const DeviceLimits& limits) {
    call.Cuda(launchers->scale_rows(rows, cols, factor, factor_stride, x, {limits, stream}));
  });
}
