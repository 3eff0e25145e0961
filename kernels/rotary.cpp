// SPDX-License-Identifier: Apache-2.0
#include "primitive/rotary.h"

#include <algorithm>

#include "kernels/primitive_kernel.h"
#include "oneflow_lite/core/row_stride.h"

namespace oneflow_lite {
namespace {

class RotaryKernel final : public PrimitiveKernel<Rotary> {
 public:
  using PrimitiveKernel::PrimitiveKernel;
  Status Launch(KernelContext& c) const override {
    const Tensor &x = c.input(0), &cos = c.input(1);
    if (x.numel() == 0) return OkStatus();
    const int64_t features = x.shape()[x.ndim() - 1];
    const RotaryShape shape{.rows = x.numel() / features,
                            .features = features,
                            .half = cos.shape()[1],
                            .rotated = c.attr<int64_t>(0),
                            .length = cos.shape()[0],
                            .cos_stride = RowStrideOf(cos, 1),
                            .sin_stride = RowStrideOf(c.input(2), 1),
                            .inverse = c.attr<bool>(1)};
    return primitive_->Launch(c.stream(), shape, x.data(), cos.data(), c.input(2).data(),
                              c.output(0).data());
  }
  // Tables may be some rows and columns of wider ones.
  bool takes_strides(int, const Tensor& table, const Attrs&) const override {
    return RowStrideOf(table, 1) > 0;
  }
};

OFL_REGISTER_KERNEL({.op = "rotary",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 0b110,
                     .bind = BindByInput<RotaryKernel>});

}  // namespace
}  // namespace oneflow_lite
