// SPDX-License-Identifier: Apache-2.0
#include "primitive/scale_mask_softmax.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/scale_mask/launch.h"

namespace oneflow_lite {
namespace {

constexpr cuda::FloatingLaunchers<cuda::ScaleMaskLaunchers> kLaunchers = {
    &cuda::kScaleMaskFloat16, &cuda::kScaleMaskBFloat16, &cuda::kScaleMaskFloat32,
    &cuda::kScaleMaskFloat64};

cuda::ScaleMaskProblem ProblemOf(const ScaleMaskSoftmaxShape& s) {
  static_assert(MaskGeometry::kDims == 3);
  cuda::ScaleMaskProblem p;
  p.rows = s.rows;
  p.cols = s.cols;
  p.queries = s.queries;
  p.scale = s.scale;
  p.causal = s.causal;
  p.zero_masked_rows = s.zero_masked_rows;
  for (int d = 0; d < MaskGeometry::kDims; ++d) {
    p.mask_dims[d] = s.mask.dims[d];
    p.mask_strides[d] = s.mask.strides[d];
  }
  p.mask_col_stride = s.mask.col_stride;
  return p;
}

class CudaScaleMaskSoftmax final : public ScaleMaskSoftmax {
 public:
  CudaScaleMaskSoftmax(const cuda::ScaleMaskLaunchers& launchers, const Spec& spec)
      : launchers_(launchers), spec_(spec) {}
  size_t WorkspaceBytes(const Stream& stream, const ScaleMaskSoftmaxShape& shape) const override {
    return launchers_.workspace_bytes(shape.rows, shape.cols, cuda::LimitsOf(stream));
  }
  Status Launch(Stream& stream, const ScaleMaskSoftmaxShape& shape, const void* x, const void* mask,
                void* y, void* workspace) const override {
    cuda::ScaleMaskProblem p = ProblemOf(shape);
    p.kind = spec_.mask_dtype == DType::kBool ? cuda::ScaleMaskKind::kBool
                                              : cuda::ScaleMaskKind::kAdditive;
    p.wide_mask = p.kind == cuda::ScaleMaskKind::kAdditive && spec_.mask_dtype != spec_.dtype;
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.forward(p, x, mask, y, workspace, cuda::LimitsOf(stream), s);
    });
  }

 private:
  const cuda::ScaleMaskLaunchers& launchers_;
  Spec spec_;
};

class CudaScaleMaskSoftmaxBackward final : public ScaleMaskSoftmaxBackward {
 public:
  explicit CudaScaleMaskSoftmaxBackward(const cuda::ScaleMaskLaunchers& launchers)
      : launchers_(launchers) {}
  size_t WorkspaceBytes(const Stream& stream, const ScaleMaskSoftmaxShape& shape) const override {
    return launchers_.workspace_bytes(shape.rows, shape.cols, cuda::LimitsOf(stream));
  }
  Status Launch(Stream& stream, const ScaleMaskSoftmaxShape& shape, const void* y, const void* dy,
                void* dx, void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.backward(ProblemOf(shape), y, dy, dx, workspace, cuda::LimitsOf(stream), s);
    });
  }

 private:
  const cuda::ScaleMaskLaunchers& launchers_;
};

StatusOr<std::unique_ptr<ScaleMaskSoftmax>> NewForward(const ScaleMaskSoftmax::Spec& spec) {
  const cuda::ScaleMaskLaunchers* launchers = kLaunchers.Find(spec.dtype);
  if (!launchers || !IsMaskDType(spec.mask_dtype, spec.dtype)) {
    return NoPrimitiveFor(ScaleMaskSoftmax::kName, DeviceType::kCUDA, spec.dtype);
  }
  return std::make_unique<CudaScaleMaskSoftmax>(*launchers, spec);
}
StatusOr<std::unique_ptr<ScaleMaskSoftmaxBackward>> NewBackward(
    const ScaleMaskSoftmaxBackward::Spec& spec) {
  const cuda::ScaleMaskLaunchers* launchers = kLaunchers.Find(spec.dtype);
  if (!launchers) {
    return NoPrimitiveFor(ScaleMaskSoftmaxBackward::kName, DeviceType::kCUDA, spec.dtype);
  }
  return std::make_unique<CudaScaleMaskSoftmaxBackward>(*launchers);
}

const bool registered =
    RegisterPrimitive<ScaleMaskSoftmax>(DeviceType::kCUDA, &NewForward) &&
    RegisterPrimitive<ScaleMaskSoftmaxBackward>(DeviceType::kCUDA, &NewBackward);

}  // namespace
}  // namespace oneflow_lite
