// SPDX-License-Identifier: Apache-2.0
#include "primitive/unary_backward.h"

#include "primitive/cuda/elementwise/host.h"

namespace oneflow_lite {
namespace {

class CudaUnaryBackward final : public UnaryBackward {
 public:
  CudaUnaryBackward(DType dtype, cuda::UnaryBackwardLauncher launcher)
      : pass_({{dtype, dtype}, dtype, dtype}, launcher) {}

  Status Launch(Stream& stream, const Elementwise<3>& g, const void* dy, const void* s, void* dx,
                const UnaryParams& params) const override {
    return pass_.Run(stream, kName, g, {{{dy}, {s}}}, dx, params);
  }

 private:
  cuda::CudaPass<2, UnaryParams> pass_;
};

StatusOr<std::unique_ptr<UnaryBackward>> NewUnaryBackward(const UnaryBackward::Spec& spec) {
  const cuda::UnaryBackwardLauncher launcher = cuda::FindUnaryBackward(spec.op, spec.dtype);
  if (!launcher) return NoPrimitiveFor(UnaryBackward::kName, DeviceType::kCUDA, spec.dtype);
  return std::make_unique<CudaUnaryBackward>(spec.dtype, launcher);
}

const bool registered = RegisterPrimitive<UnaryBackward>(DeviceType::kCUDA, &NewUnaryBackward);

}  // namespace
}  // namespace oneflow_lite
