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
struct CrossEntropyCall {
  const CrossEntropyLaunchers* launchers;
  CrossEntropyProblem problem;
  int64_t size, compute_size;

  template <class Args>
  CrossEntropyCall(Call& call, const Args& a, int64_t x_stride)
      : launchers(call.Launchers(a.dtype, kCrossEntropy)),
        size(SizeOf(a.dtype)),
        compute_size(ComputeSize(a.dtype)) {
    call.Matrix(a.rows, a.classes);
    const int64_t stride = call.Stride("x_stride", x_stride, a.rows, a.classes);
    if (!(a.smoothing >= 0 && a.smoothing <= 1)) {
      call.Fail(OFL_INVALID_VALUE, "smoothing is %g; it lies in [0, 1]", a.smoothing);
    }
    problem = {a.rows, a.classes, a.has_ignore_index ? a.ignore_index : -100, a.smoothing, stride};
  }
};

class CrossEntropyForward {
 public:
  static constexpr bool kNeedsWorkspace = false;

  CrossEntropyForward(Call& call, const ofl_cross_entropy_args& a)
      : a_(a), ce_(call, a, a.x_stride) {}
  bool empty() const { return a_.rows == 0; }
  void CheckPointers(Call& call) const {
    if (a_.classes > 0) call.Pointer("x", a_.x, ce_.size);
    call.Pointer("target", a_.target, kTargetSize);
    call.Pointer("loss", a_.loss, ce_.compute_size);
    call.Pointer("stats", a_.stats, ce_.compute_size);
  }
  size_t WorkspaceBytes(const DeviceLimits& limits) const {
    return ce_.launchers->workspace_bytes(ce_.problem, limits);
  }
  cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const {
    return ce_.launchers->forward(ce_.problem, a_.x, a_.target, a_.loss, a_.stats, a_.workspace,
                                  limits, stream);
  }

 private:
  const ofl_cross_entropy_args& a_;
  const CrossEntropyCall ce_;
};

class CrossEntropyBackward {
 public:
  CrossEntropyBackward(Call& call, const ofl_cross_entropy_backward_args& a)
      : a_(a), ce_(call, a, a.x_stride) {
    if (a.dloss_stride < 0) {
      call.Fail(OFL_INVALID_SIZE, "dloss_stride is %lld; it is not negative",
                static_cast<long long>(a.dloss_stride));
    }
  }
  bool empty() const { return a_.rows == 0 || a_.classes == 0; }
  void CheckPointers(Call& call) const {
    call.Pointer("x", a_.x, ce_.size);
    call.Pointer("target", a_.target, kTargetSize);
    call.Pointer("stats", a_.stats, ce_.compute_size);
    call.OptionalPointer("dloss", a_.dloss, ce_.compute_size);
    call.Pointer("dx", a_.dx, ce_.size);
  }
  cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const {
    return ce_.launchers->backward(ce_.problem, a_.x, a_.target, a_.stats, a_.dloss,
                                   a_.dloss_stride, a_.dx, limits, stream);
  }

 private:
  const ofl_cross_entropy_backward_args& a_;
  const CrossEntropyCall ce_;
};

class CrossEntropyInPlace {
 public:
  static constexpr bool kNeedsWorkspace = false;

  CrossEntropyInPlace(Call& call, const ofl_cross_entropy_in_place_args& a)
      : a_(a), ce_(call, a, 0) {}
  bool empty() const { return a_.rows == 0; }
  void CheckPointers(Call& call) const {
    if (a_.classes > 0) call.Pointer("x", a_.x, ce_.size);
    call.Pointer("target", a_.target, kTargetSize);
    call.OptionalPointer("scale", a_.scale, ce_.compute_size);
    call.Pointer("loss", a_.loss, ce_.compute_size);
  }
  size_t WorkspaceBytes(const DeviceLimits& limits) const {
    return ce_.launchers->in_place_workspace_bytes(ce_.problem, limits);
  }
  cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const {
    return ce_.launchers->in_place(ce_.problem, a_.x, a_.target, a_.scale, a_.loss, a_.workspace,
                                   limits, stream);
  }

 private:
  const ofl_cross_entropy_in_place_args& a_;
  const CrossEntropyCall ce_;
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
    call.Cuda(launchers->mean_weight(rows, ignore_index, target, weight, stream));
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
    call.Cuda(launchers->scale_rows(rows, cols, factor, factor_stride, x, limits, stream));
  });
}
