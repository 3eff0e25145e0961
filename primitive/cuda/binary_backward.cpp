// SPDX-License-Identifier: Apache-2.0
#include "primitive/binary_backward.h"

#include "primitive/cuda/host.h"
#include "primitive/cuda/reduce/binary_backward_launch.h"

namespace oneflow_lite {
namespace {

class CudaBinaryBackward final : public BinaryBackward {
 public:
  explicit CudaBinaryBackward(cuda::BinaryBackwardLaunchers launchers) : launchers_(launchers) {}
  size_t WorkspaceBytes(const Stream& stream, const AxisSplit& shape) const override {
    return launchers_.workspace_bytes(shape.outer, shape.axis, shape.inner, cuda::LimitsOf(stream));
  }
  Status Launch(Stream& stream, const AxisSplit& shape, const Pointers& at,
                void* workspace) const override {
    const cuda::BinaryBackwardRun run{shape.outer, shape.axis, shape.inner, at.dy,    at.a,
                                      at.b,        at.da,      at.db,       workspace};
    return cuda::RunOn(stream, kName, [&](cudaStream_t s) {
      return launchers_.launch(run, cuda::LimitsOf(stream), s);
    });
  }

 private:
  cuda::BinaryBackwardLaunchers launchers_;
};

StatusOr<std::unique_ptr<BinaryBackward>> New(const BinaryBackward::Spec& spec) {
  const cuda::BinaryBackwardLaunchers launchers = cuda::FindBinaryBackward(spec.op, spec.dtype);
  if (!launchers.launch)
    return NoPrimitiveFor(BinaryBackward::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaBinaryBackward>(launchers);
}

const bool registered = RegisterPrimitive<BinaryBackward>(DeviceType::kCUDA, &New);

}  // namespace
}  // namespace oneflow_lite
