// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/c_api/call.h"
#include "primitive/cuda/scale_mask/launch.h"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr LaunchersByDtype<ScaleMaskLaunchers> kScaleMask = {
    &kScaleMaskFloat16, &kScaleMaskBFloat16, &kScaleMaskFloat32, &kScaleMaskFloat64};

// The part of the problem that forward and backward share.
template <class Args>
ScaleMaskProblem CheckRows(Call& call, const Args& a) {
  ScaleMaskProblem p;
  call.Matrix(a.rows, a.cols);
  p.rows = a.rows, p.cols = a.cols, p.scale = a.scale, p.causal = a.causal != 0;
  p.queries = a.queries != 0 ? a.queries : a.rows > 0 ? a.rows : 1;
  if (p.queries < 0 || a.rows % p.queries != 0) {
    call.Fail(OFL_INVALID_SIZE, "queries is %lld, of which the %lld rows are no multiple",
              static_cast<long long>(p.queries), static_cast<long long>(a.rows));
  }
  return p;
}

class ScaleMaskForward {
 public:
  static constexpr bool kNeedsWorkspace = false;

  ScaleMaskForward(Call& call, const ofl_scale_mask_softmax_args& a)
      : a_(a), launchers_(call.Launchers(a.dtype, kScaleMask)), problem_(CheckRows(call, a)) {
    problem_.zero_masked_rows = a.zero_masked_rows != 0;
    if (a.mask && call.ok()) CheckMask(call);
  }
  bool empty() const { return a_.rows == 0 || a_.cols == 0; }
  void CheckPointers(Call& call) const {
    call.Pointer("x", a_.x, SizeOf(a_.dtype));
    if (a_.mask) call.OptionalPointer("mask", a_.mask, SizeOf(a_.mask_dtype));
    call.Pointer("y", a_.y, SizeOf(a_.dtype));
  }
  size_t WorkspaceBytes(const DeviceLimits& limits) const {
    return launchers_->workspace_bytes(a_.rows, a_.cols, limits);
  }
  cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const {
    return launchers_->forward(problem_, a_.x, a_.mask, a_.y, a_.workspace, limits, stream);
  }

 private:
  void CheckMask(Call& call) {
    const ofl_dtype mask = a_.mask_dtype;
    const bool wide = mask == OFL_FLOAT32 && SizeOf(a_.dtype) == 2;
    if (mask < OFL_FLOAT16 || mask > OFL_BOOL) {
      call.Fail(OFL_UNKNOWN_DTYPE, "mask_dtype is %d", static_cast<int>(mask));
    } else if (mask != OFL_BOOL && mask != a_.dtype && !wide) {
      call.Fail(OFL_UNSERVED, "mask_dtype is %d beside dtype %d", static_cast<int>(mask),
                static_cast<int>(a_.dtype));
    }
    problem_.kind = mask == OFL_BOOL ? ScaleMaskKind::kBool : ScaleMaskKind::kAdditive;
    problem_.wide_mask = wide;
    const int64_t* const dims = a_.mask_dims;
    if (dims[0] == 0 && dims[1] == 0 && dims[2] == 0) {
      problem_.mask_dims[2] = a_.rows;
      problem_.mask_strides[2] = a_.cols;
      return;
    }
    int64_t left = a_.rows;
    for (int d = 0; d < 3; ++d) {
      if (dims[d] > 0 && left % dims[d] == 0)
        left /= dims[d];
      else
        left = -1;
      problem_.mask_dims[d] = dims[d];
      problem_.mask_strides[d] = a_.mask_strides[d];
    }
    problem_.mask_col_stride = a_.mask_col_stride;
    if (left == 1 || (left == 0 && a_.rows == 0)) return;
    call.Fail(OFL_INVALID_SIZE,
              "mask_dims are %lld, %lld, %lld; their product is not the %lld rows",
              static_cast<long long>(dims[0]), static_cast<long long>(dims[1]),
              static_cast<long long>(dims[2]), static_cast<long long>(a_.rows));
  }

  const ofl_scale_mask_softmax_args& a_;
  const ScaleMaskLaunchers* launchers_;
  ScaleMaskProblem problem_;
};

class ScaleMaskBackward {
 public:
  static constexpr bool kNeedsWorkspace = false;

  ScaleMaskBackward(Call& call, const ofl_scale_mask_softmax_backward_args& a)
      : a_(a), launchers_(call.Launchers(a.dtype, kScaleMask)), problem_(CheckRows(call, a)) {}
  bool empty() const { return a_.rows == 0 || a_.cols == 0; }
  void CheckPointers(Call& call) const {
    call.Pointer("y", a_.y, SizeOf(a_.dtype));
    call.Pointer("dy", a_.dy, SizeOf(a_.dtype));
    call.Pointer("dx", a_.dx, SizeOf(a_.dtype));
  }
  size_t WorkspaceBytes(const DeviceLimits& limits) const {
    return launchers_->workspace_bytes(a_.rows, a_.cols, limits);
  }
  cudaError_t Launch(const DeviceLimits& limits, cudaStream_t stream) const {
    return launchers_->backward(problem_, a_.y, a_.dy, a_.dx, a_.workspace, limits, stream);
  }

 private:
  const ofl_scale_mask_softmax_backward_args& a_;
  const ScaleMaskLaunchers* launchers_;
  const ScaleMaskProblem problem_;
};

}  // namespace
}  // namespace cuda
}  // namespace oneflow_lite

using namespace oneflow_lite::cuda;

ofl_status ofl_scale_mask_softmax_with(ofl_stream stream, const ofl_scale_mask_softmax_args* args) {
  return RunOp<ScaleMaskForward>(__func__, stream, args);
}
ofl_status ofl_scale_mask_softmax_workspace(const ofl_scale_mask_softmax_args* args,
                                            size_t* bytes) {
  return AskOp<ScaleMaskForward>(__func__, args, bytes);
}
ofl_status ofl_scale_mask_softmax_backward_with(ofl_stream stream,
                                                const ofl_scale_mask_softmax_backward_args* args) {
  return RunOp<ScaleMaskBackward>(__func__, stream, args);
}
ofl_status ofl_scale_mask_softmax_backward_workspace(
    const ofl_scale_mask_softmax_backward_args* args, size_t* bytes) {
  return AskOp<ScaleMaskBackward>(__func__, args, bytes);
}
