// SPDX-License-Identifier: Apache-2.0
#include "primitive/gated.h"

#include "kernels/primitive_kernel.h"

namespace oneflow_lite {
namespace {

// y [outer..., half, inner...] as rows; the halves of x along the attribute `dim`.
struct GatedRows {
  int64_t rows = 1, half = 1;
};
GatedRows RowsOf(const Tensor& y, int64_t dim) {
  GatedRows out;
  for (int d = 0; d < y.ndim(); ++d) (d < dim ? out.rows : out.half) *= y.shape()[d];
  return out;
}

class GatedUnitKernel final : public PrimitiveKernel<GatedUnit> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const GatedRows r = RowsOf(c.output(0), c.attr<int64_t>(0));
    if (c.output(0).numel() == 0) return OkStatus();
    return primitive_->Launch(c.stream(), r.rows, r.half, c.input(0).data(), c.output(0).data());
  }
};

class GatedUnitBackwardKernel final : public PrimitiveKernel<GatedUnit> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const GatedRows r = RowsOf(c.input(0), c.attr<int64_t>(0));
    if (c.output(0).numel() == 0) return OkStatus();
    return primitive_->LaunchBackward(c.stream(), r.rows, r.half, c.input(0).data(),
                                      c.input(1).data(), c.output(0).data());
  }
};

template <GateKind kKind, class Kernel>
StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& c) {
  return BindKernel<Kernel>(c, {.kind = kKind, .dtype = c.inputs[0]});
}

OFL_REGISTER_KERNEL({.op = "glu",
                     .dtypes = kFloatingSet,
                     .bind = Bind<GateKind::kGlu, GatedUnitKernel>});
OFL_REGISTER_KERNEL({.op = "glu_backward",
                     .dtypes = kFloatingSet,
                     .bind = Bind<GateKind::kGlu, GatedUnitBackwardKernel>});
OFL_REGISTER_KERNEL({.op = "swiglu",
                     .dtypes = kFloatingSet,
                     .bind = Bind<GateKind::kSwiglu, GatedUnitKernel>});
OFL_REGISTER_KERNEL({.op = "swiglu_backward",
                     .dtypes = kFloatingSet,
                     .bind = Bind<GateKind::kSwiglu, GatedUnitBackwardKernel>});

}  // namespace
}  // namespace oneflow_lite
