// SPDX-License-Identifier: Apache-2.0
//
// layer_norm and rms_norm, forward and backward.
#include <initializer_list>

#include "primitive/cuda/c_api/call.h"
#include "primitive/cuda/norms/launch.h"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr LaunchersByDtype<NormLaunchers> kLayerNorm = {&kLayerNormFloat16, &kLayerNormBFloat16,
                                                        &kLayerNormFloat32, &kLayerNormFloat64};
constexpr LaunchersByDtype<NormLaunchers> kRmsNorm = {&kRmsNormFloat16, &kRmsNormBFloat16,
                                                      &kRmsNormFloat32, &kRmsNormFloat64};

// What forward and backward share.
struct NormCall {
  bool centred;  // layer_norm
  const NormLaunchers* launchers;
  NormProblem problem;
  ofl_dtype dtype, weight_dtype;

  template <class Args>
  NormCall(Call& call, const Args& a, bool centred, double eps)
      : centred(centred),
        launchers(call.Launchers(a.dtype, centred ? kLayerNorm : kRmsNorm)),
        dtype(a.dtype),
        weight_dtype(a.weight_dtype == 0 ? a.dtype : a.weight_dtype) {
    if (weight_dtype != dtype && (weight_dtype != OFL_FLOAT32 || dtype == OFL_FLOAT64)) {
      call.Fail(OFL_UNSERVED, "weight_dtype is %d beside dtype %d", static_cast<int>(weight_dtype),
                static_cast<int>(dtype));
    }
    call.Matrix(a.rows, a.cols);
    const int64_t stride = call.Stride("x_stride", a.x_stride, a.rows, a.cols);
    problem = {a.rows, a.cols, stride, eps, weight_dtype != dtype};
  }
  int64_t size() const { return SizeOf(dtype); }
  int64_t weight_size() const { return SizeOf(weight_dtype); }
  int64_t statistic_size() const { return ComputeSize(dtype); }
  void RefuseOfRmsNorm(Call& call, const char* name, const void* p) const {
    if (!centred && p) call.Fail(OFL_UNSERVED, "%s is given; rms_norm has none", name);
  }
};

class NormForwardOp {
 public:
  static constexpr bool kNeedsWorkspace = false;

  NormForwardOp(Call& call, const ofl_norm_args& a, bool centred)
      : a_(a), norm_(call, a, centred, a.eps) {}
  bool empty() const { return a_.rows == 0; }
  void CheckPointers(Call& call) const {
    if (a_.cols > 0) {
      call.Pointer("x", a_.x, norm_.size());
      call.Pointer("y", a_.y, norm_.size());
    }
    if (a_.sum && !a_.residual) call.Fail(OFL_NULL_POINTER, "residual is null, and sum is not");
    call.OptionalPointer("residual", a_.residual, norm_.size());
    call.OptionalPointer("sum", a_.sum, norm_.size());
    call.OptionalPointer("weight", a_.weight, norm_.weight_size());
    call.OptionalPointer("bias", a_.bias, norm_.weight_size());
    call.OptionalPointer("mean", a_.mean, norm_.statistic_size());
    call.OptionalPointer("rstd", a_.rstd, norm_.statistic_size());
    norm_.RefuseOfRmsNorm(call, "bias", a_.bias);
    norm_.RefuseOfRmsNorm(call, "mean", a_.mean);
  }
  size_t WorkspaceBytes(const DeviceLimits& limits) const {
    return norm_.launchers->forward_bytes(a_.rows, a_.cols, limits);
  }
  cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const {
    if (a_.cols == 0) return LaunchOfNothing(stream);
    NormForwardPointers to;
    to.x = a_.x, to.residual = a_.residual, to.weight = a_.weight, to.bias = a_.bias;
    to.y = a_.y, to.sum = a_.sum, to.mean = a_.mean, to.rstd = a_.rstd;
    return norm_.launchers->forward(norm_.problem, to, a_.workspace, limits, stream);
  }

 private:
  // The statistics of nothing are NaN, as which a number of set bits reads.
  cudaError_t LaunchOfNothing(cudaStream_t stream) const {
    const size_t bytes = a_.rows * norm_.statistic_size();
    cudaError_t error = cudaSuccess;
    if (a_.mean) error = cudaMemsetAsync(a_.mean, 0xff, bytes, stream);
    if (a_.rstd && error == cudaSuccess) error = cudaMemsetAsync(a_.rstd, 0xff, bytes, stream);
    return error;
  }

  const ofl_norm_args& a_;
  const NormCall norm_;
};

class NormBackwardOp {
 public:
  static constexpr bool kNeedsWorkspace = true;

  NormBackwardOp(Call& call, const ofl_norm_backward_args& a, bool centred)
      : a_(a), norm_(call, a, centred, 0) {}
  bool empty() const { return a_.cols == 0; }
  void CheckPointers(Call& call) const {
    if (a_.rows > 0) CheckInputs(call);
    for (const Named& p :
         {Named{"dy", a_.dy}, {"x", a_.x}, {"y", a_.y}, {"dsum", a_.dsum}, {"dx", a_.dx}}) {
      call.OptionalPointer(p.name, p.pointer, norm_.size());
    }
    for (const Named& p : {Named{"weight", a_.weight},
                           {"bias", a_.bias},
                           {"dweight", a_.dweight},
                           {"dbias", a_.dbias}}) {
      call.OptionalPointer(p.name, p.pointer, norm_.weight_size());
    }
    call.OptionalPointer("mean", a_.mean, norm_.statistic_size());
    call.OptionalPointer("rstd", a_.rstd, norm_.statistic_size());
    norm_.RefuseOfRmsNorm(call, "bias", a_.bias);
    norm_.RefuseOfRmsNorm(call, "mean", a_.mean);
    norm_.RefuseOfRmsNorm(call, "dbias", a_.dbias);
  }
  size_t WorkspaceBytes(const DeviceLimits& limits) const {
    return norm_.launchers->backward_bytes(a_.rows, a_.cols, limits);
  }
  cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const {
    if (a_.rows == 0) return LaunchOfNothing(stream);
    NormBackwardPointers to;
    to.x = a_.x, to.y = a_.y, to.dy = a_.dy, to.weight = a_.weight, to.bias = a_.bias;
    to.mean = a_.mean, to.rstd = a_.rstd, to.dsum = a_.dsum;
    to.dx = a_.dx, to.dweight = a_.dweight, to.dbias = a_.dbias;
    return norm_.launchers->backward(norm_.problem, to, a_.workspace, limits, stream);
  }

 private:
  struct Named {
    const char* name;
    const void* pointer;
  };
  // dbias is a sum of dy; the others need x, or the output, and the statistics.
  void CheckInputs(Call& call) const {
    if (!a_.dy) call.Fail(OFL_NULL_POINTER, "dy is null");
    if (a_.x && a_.y) call.Fail(OFL_UNSERVED, "x and y are both given");
    if (!a_.dx && !a_.dweight) return;
    if (!a_.x && !a_.y) call.Fail(OFL_NULL_POINTER, "x and y are both null");
    if (!a_.rstd && (a_.dx || a_.x)) call.Fail(OFL_NULL_POINTER, "rstd is null");
    if (!a_.mean && a_.x && norm_.centred) call.Fail(OFL_NULL_POINTER, "mean is null");
  }
  // The sums over no rows.
  cudaError_t LaunchOfNothing(cudaStream_t stream) const {
    const size_t bytes = a_.cols * norm_.weight_size();
    cudaError_t error = cudaSuccess;
    if (a_.dweight) error = cudaMemsetAsync(a_.dweight, 0, bytes, stream);
    if (a_.dbias && error == cudaSuccess) error = cudaMemsetAsync(a_.dbias, 0, bytes, stream);
    return error;
  }

  const ofl_norm_backward_args& a_;
  const NormCall norm_;
};

ofl_norm_args Dense(ofl_dtype dtype, int64_t rows, int64_t cols, double eps, const void* x,
                    const void* weight, const void* bias, void* y) {
  ofl_norm_args a = {};
  a.dtype = dtype, a.rows = rows, a.cols = cols, a.eps = eps;
  a.x = x, a.weight = weight, a.bias = bias, a.y = y;
  return a;
}

}  // namespace
}  // namespace cuda
}  // namespace oneflow_lite

using namespace oneflow_lite::cuda;

ofl_status ofl_layer_norm(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols,
                          double eps, const void* x, const void* weight, const void* bias,
                          void* y) {
  const auto args = Dense(dtype, rows, cols, eps, x, weight, bias, y);
  return RunOp<NormForwardOp>(__func__, stream, &args, true);
}
ofl_status ofl_rms_norm(ofl_stream stream, ofl_dtype dtype, int64_t rows, int64_t cols, double eps,
                        const void* x, const void* weight, void* y) {
  const auto args = Dense(dtype, rows, cols, eps, x, weight, nullptr, y);
  return RunOp<NormForwardOp>(__func__, stream, &args, false);
}

ofl_status ofl_layer_norm_with(ofl_stream stream, const ofl_norm_args* args) {
  return RunOp<NormForwardOp>(__func__, stream, args, true);
}
ofl_status ofl_rms_norm_with(ofl_stream stream, const ofl_norm_args* args) {
  return RunOp<NormForwardOp>(__func__, stream, args, false);
}
ofl_status ofl_layer_norm_workspace(const ofl_norm_args* args, size_t* bytes) {
  return AskOp<NormForwardOp>(__func__, args, bytes, true);
}
ofl_status ofl_rms_norm_workspace(const ofl_norm_args* args, size_t* bytes) {
  return AskOp<NormForwardOp>(__func__, args, bytes, false);
}

ofl_status ofl_layer_norm_backward_with(ofl_stream stream, const ofl_norm_backward_args* args) {
  return RunOp<NormBackwardOp>(__func__, stream, args, true);
}
ofl_status ofl_rms_norm_backward_with(ofl_stream stream, const ofl_norm_backward_args* args) {
  return RunOp<NormBackwardOp>(__func__, stream, args, false);
}
ofl_status ofl_layer_norm_backward_workspace(const ofl_norm_backward_args* args, size_t* bytes) {
  return AskOp<NormBackwardOp>(__func__, args, bytes, true);
}
ofl_status ofl_rms_norm_backward_workspace(const ofl_norm_backward_args* args, size_t* bytes) {
  return AskOp<NormBackwardOp>(__func__, args, bytes, false);
}
