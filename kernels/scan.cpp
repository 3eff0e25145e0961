// SPDX-License-Identifier: Apache-2.0
#include "primitive/scan.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

// Attributes: dim, reverse, and of a linear scan whether it is shifted.
template <ScanKind kOp>
class ScanKernel final : public PrimitiveKernel<Scan> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    constexpr bool kPlaces = kOp == ScanKind::kMax || kOp == ScanKind::kMin;
    const AxisSplit split = SplitAt(c.input(0).shape(), c.attr<int64_t>(0));
    OFL_ASSIGN_OR_RETURN(void* workspace,
                         c.Workspace(primitive_->WorkspaceBytes(c.stream(), split)));
    const Scan::Operands operands{
        c.input(0).data(), c.num_inputs() > 1 ? c.input(1).data() : nullptr, c.output(0).data(),
        kPlaces ? c.output(1).data<int64_t>() : nullptr};
    const bool shifted = kOp == ScanKind::kLinear && c.attr<bool>(2);
    return primitive_->Launch(c.stream(), split, c.attr<bool>(1), shifted, operands, workspace);
  }
};

template <ScanKind kOp>
StatusOr<std::unique_ptr<BoundKernel>> BindScan(const BindContext& c) {
  return BindKernel<ScanKernel<kOp>>(c, {.op = kOp, .dtype = c.inputs[0]});
}

OFL_REGISTER_KERNEL({.op = "cumsum", .dtypes = kNumericSet, .bind = BindScan<ScanKind::kSum>});
OFL_REGISTER_KERNEL({.op = "cumprod", .dtypes = kNumericSet, .bind = BindScan<ScanKind::kProd>});
OFL_REGISTER_KERNEL({.op = "cummax", .bind = BindScan<ScanKind::kMax>});
OFL_REGISTER_KERNEL({.op = "cummin", .bind = BindScan<ScanKind::kMin>});
OFL_REGISTER_KERNEL({.op = "logcumsumexp",
                     .dtypes = kFloatingSet,
                     .bind = BindScan<ScanKind::kLogSumExp>});
OFL_REGISTER_KERNEL({.op = "linear_scan",
                     .dtypes = kFloatingSet,
                     .bind = BindScan<ScanKind::kLinear>});
OFL_REGISTER_KERNEL({.op = "products_before",
                     .dtypes = kFloatingSet,
                     .bind = BindScan<ScanKind::kProductBefore>});

}  // namespace
}  // namespace oneflow_lite
