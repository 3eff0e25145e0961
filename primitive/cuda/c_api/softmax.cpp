// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/c_api/call.h"
#include "primitive/cuda/softmax/launch.h"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr LaunchersByDtype<SoftmaxLaunchers> kLaunchers = {&kSoftmaxFloat16, &kSoftmaxBFloat16,
                                                           &kSoftmaxFloat32, &kSoftmaxFloat64};

// rows = outer * inner, all dense where inner is not 1. Gives inner, of which 0 stands for 1.
int64_t CheckInner(Call& call, int64_t rows, int64_t inner, bool dense) {
  if (inner < 0 || (inner > 0 && rows % inner != 0)) {
    call.Fail(OFL_INVALID_SIZE, "inner is %lld, of which the %lld rows are no multiple",
              static_cast<long long>(inner), static_cast<long long>(rows));
  } else if (inner > 1 && !dense) {
    call.Fail(OFL_UNSERVED, "inner is %lld beside a row stride", static_cast<long long>(inner));
  }
  return inner == 0 ? 1 : inner;
}

class SoftmaxForward {
 public:
  static constexpr bool kNeedsWorkspace = false;

  SoftmaxForward(Call& call, const ofl_softmax_args& a)
      : a_(a), launchers_(call.Launchers(a.dtype, kLaunchers)) {
    call.Matrix(a.rows, a.cols);
    const int64_t stride = call.Stride("x_stride", a.x_stride, a.rows, a.cols);
    const int64_t inner = CheckInner(call, a.rows, a.inner, stride == a.cols);
    const bool widens = a.y_dtype != 0 && a.y_dtype != a.dtype;
    if (widens && (a.y_dtype != OFL_FLOAT32 || SizeOf(a.dtype) != 2 || a.inner > 1)) {
      call.Fail(OFL_UNSERVED, "y_dtype is %d beside dtype %d%s", static_cast<int>(a.y_dtype),
                static_cast<int>(a.dtype), a.inner > 1 ? " and inner > 1" : "");
    }
    problem_ = {a.rows / inner, a.cols, inner, {stride, a.cols}, a.log != 0, widens};
  }
  bool empty() const { return a_.rows == 0 || a_.cols == 0; }
  void CheckPointers(Call& call) const {
    call.Pointer("x", a_.x, SizeOf(a_.dtype));
    call.Pointer("y", a_.y, SizeOf(a_.y_dtype == 0 ? a_.dtype : a_.y_dtype));
  }
  size_t WorkspaceBytes(const DeviceLimits& limits) const {
    return launchers_->workspace_bytes(problem_, limits);
  }
  cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const {
    return launchers_->forward(problem_, a_.x, a_.y, a_.workspace, limits, stream);
  }

 private:
  const ofl_softmax_args& a_;
  const SoftmaxLaunchers* launchers_;
  SoftmaxProblem problem_;
};

class SoftmaxBackward {
 public:
  static constexpr bool kNeedsWorkspace = false;

  SoftmaxBackward(Call& call, const ofl_softmax_backward_args& a)
      : a_(a), launchers_(call.Launchers(a.dtype, kLaunchers)) {
    call.Matrix(a.rows, a.cols);
    const int64_t y = call.Stride("y_stride", a.y_stride, a.rows, a.cols);
    const int64_t dy = call.Stride("dy_stride", a.dy_stride, a.rows, a.cols);
    const int64_t inner = CheckInner(call, a.rows, a.inner, y == a.cols && dy == a.cols);
    problem_ = {a.rows / inner, a.cols, inner, {y, dy}, a.log != 0};
  }
  bool empty() const { return a_.rows == 0 || a_.cols == 0; }
  void CheckPointers(Call& call) const {
    call.Pointer("y", a_.y, SizeOf(a_.dtype));
    call.Pointer("dy", a_.dy, SizeOf(a_.dtype));
    call.Pointer("dx", a_.dx, SizeOf(a_.dtype));
  }
  size_t WorkspaceBytes(const DeviceLimits& limits) const {
    return launchers_->workspace_bytes(problem_, limits);
  }
  cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const {
    return launchers_->backward(problem_, a_.y, a_.dy, a_.dx, a_.workspace, limits, stream);
  }

 private:
  const ofl_softmax_backward_args& a_;
  const SoftmaxLaunchers* launchers_;
  SoftmaxProblem problem_;
};

ofl_softmax_args Dense(ofl_dtype dtype, bool log, int64_t rows, int64_t cols, const void* x,
                       void* y) {
  ofl_softmax_args a = {};
  a.dtype = dtype, a.log = log, a.rows = rows, a.cols = cols, a.x = x, a.y = y;
  return a;
}
ofl_softmax_backward_args DenseBackward(ofl_dtype dtype, bool log, int64_t rows, int64_t cols,
                                        const void* y, const void* dy, void* dx) {
  ofl_softmax_backward_args a = {};
  a.dtype = dtype, a.log = log, a.rows = rows, a.cols = cols, a.y = y, a.dy = dy, a.dx = dx;
  return a;
}

}  // namespace
}  // namespace cuda
}  // namespace oneflow_lite

using namespace oneflow_lite::cuda;

ofl_status ofl_softmax(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols,
                       const void* x, void* y) {
  const auto args = Dense(dtype, false, rows, cols, x, y);
  return RunOp<SoftmaxForward>(__func__, stream, &args);
}
ofl_status ofl_log_softmax(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols,
                           const void* x, void* y) {
  const auto args = Dense(dtype, true, rows, cols, x, y);
  return RunOp<SoftmaxForward>(__func__, stream, &args);
}
ofl_status ofl_softmax_backward(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols,
                                const void* y, const void* dy, void* dx) {
  const auto args = DenseBackward(dtype, false, rows, cols, y, dy, dx);
  return RunOp<SoftmaxBackward>(__func__, stream, &args);
}
ofl_status ofl_log_softmax_backward(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols,
                                    const void* y, const void* dy, void* dx) {
  const auto args = DenseBackward(dtype, true, rows, cols, y, dy, dx);
  return RunOp<SoftmaxBackward>(__func__, stream, &args);
}

ofl_status ofl_softmax_with(ofl_stream stream, const ofl_softmax_args* args) {
  return RunOp<SoftmaxForward>(__func__, stream, args);
}
ofl_status ofl_softmax_workspace(const ofl_softmax_args* args, size_t* bytes) {
  return AskOp<SoftmaxForward>(__func__, args, bytes);
}
ofl_status ofl_softmax_backward_with(ofl_stream stream, const ofl_softmax_backward_args* args) {
  return RunOp<SoftmaxBackward>(__func__, stream, args);
}
ofl_status ofl_softmax_backward_workspace(const ofl_softmax_backward_args* args, size_t* bytes) {
  return AskOp<SoftmaxBackward>(__func__, args, bytes);
}
