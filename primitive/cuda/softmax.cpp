// SPDX-License-Identifier: Apache-2.0
#include "primitive/softmax.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/softmax/launch.h"

namespace oneflow_lite {
namespace {

constexpr cuda::FloatingLaunchers<cuda::SoftmaxLaunchers> kLaunchers = {
    &cuda::kSoftmaxFloat16, &cuda::kSoftmaxBFloat16, &cuda::kSoftmaxFloat32,
    &cuda::kSoftmaxFloat64};

// What both directions share: P is Softmax or SoftmaxBackward.
template <class P>
class CudaRowOp : public P {
 public:
  CudaRowOp(const cuda::SoftmaxLaunchers& launchers, const Softmax::Spec& spec)
      : launchers_(launchers), spec_(spec) {}
  size_t WorkspaceBytes(const Stream& stream, const SoftmaxShape& shape) const override {
    return launchers_.workspace_bytes(ProblemOf(shape), cuda::LimitsOf(stream));
  }

 protected:
  cuda::SoftmaxProblem ProblemOf(const SoftmaxShape& s) const {
    return {s.rows, s.cols, s.inner, {s.stride(0), s.stride(1)}, spec_.log, spec_.to_float32};
  }
  const cuda::SoftmaxLaunchers& launchers_;

 private:
  const Softmax::Spec spec_;
};

class CudaSoftmax final : public CudaRowOp<Softmax> {
 public:
  using CudaRowOp::CudaRowOp;
  Status Launch(Stream& stream, const SoftmaxShape& shape, const void* x, void* y,
                void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.forward(ProblemOf(shape), x, y, workspace, cuda::LimitsOf(stream), s);
    });
  }
};

class CudaSoftmaxBackward final : public CudaRowOp<SoftmaxBackward> {
 public:
  using CudaRowOp::CudaRowOp;
  Status Launch(Stream& stream, const SoftmaxShape& shape, const void* y, const void* dy, void* dx,
                void* workspace) const override {
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.backward(ProblemOf(shape), y, dy, dx, workspace, cuda::LimitsOf(stream), s);
    });
  }
};

template <class P, class CudaP>
StatusOr<std::unique_ptr<P>> New(const Softmax::Spec& spec) {
  const cuda::SoftmaxLaunchers* launchers = kLaunchers.Find(spec.dtype);
  const bool widens = std::is_same_v<P, Softmax> && SizeOf(spec.dtype) == 2;
  if (!launchers || (spec.to_float32 && !widens)) {
    return NoPrimitiveFor(P::kName, DeviceType::kCUDA, spec.dtype);
  }
  return std::make_unique<CudaP>(*launchers, spec);
}

const bool registered = RegisterPrimitive<Softmax>(DeviceType::kCUDA, &New<Softmax, CudaSoftmax>) &&
                        RegisterPrimitive<SoftmaxBackward>(
                            DeviceType::kCUDA, &New<SoftmaxBackward, CudaSoftmaxBackward>);

}  // namespace
}  // namespace oneflow_lite
