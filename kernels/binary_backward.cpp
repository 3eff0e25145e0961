// SPDX-License-Identifier: Apache-2.0
#include "primitive/binary_backward.h"

#include "kernels/primitive_kernel.h"
#include "oneflow_lite/core/split_around.h"

namespace oneflow_lite {
namespace {

class BinaryBackwardKernel final : public PrimitiveKernel<BinaryBackward> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const AxisSplit split = *SplitAround(c.input(1).shape(), c.input(2).shape());
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), split)));
    return primitive_->Launch(c.stream(), split,
                              {.dy = c.input(0).data(),
                               .a = c.input(1).data(),
                               .b = c.input(2).data(),
                               .da = c.output(0).data(),
                               .db = c.output(1).data()},
                              workspace);
  }
};

template <BinaryOp kOp>
StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& c) {
  return BindKernel<BinaryBackwardKernel>(c, {.op = kOp, .dtype = c.inputs[0]});
}
OFL_REGISTER_KERNEL({.op = "mul_backward", .dtypes = kFloatingSet, .bind = Bind<BinaryOp::kMul>});
OFL_REGISTER_KERNEL({.op = "prelu_backward",
                     .dtypes = kFloatingSet,
                     .bind = Bind<BinaryOp::kPrelu>});

}  // namespace
}  // namespace oneflow_lite
