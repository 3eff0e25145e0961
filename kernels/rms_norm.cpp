// SPDX-License-Identifier: Apache-2.0
#include "primitive/rms_norm.h"

#include "kernels/norm.h"

namespace oneflow_lite {
namespace {

template <bool kResidual>
StatusOr<std::unique_ptr<BoundKernel>> Bind(const BindContext& c) {
  return BindNorm<NormKernel<RmsNorm, kResidual>, RmsNorm>(c, {kResidual ? 2 : 1},
                                                           ComputeType(c.inputs[0]));
}

StatusOr<std::unique_ptr<BoundKernel>> BindBackward(const BindContext& c) {
  return BindNorm<NormBackwardKernel<RmsNormBackward>, RmsNormBackward>(c, {4}, c.outputs[1]);
}

OFL_REGISTER_KERNEL(
    {.op = "rms_norm", .dtypes = kFloatingSet, .strided_inputs = 1 << 0, .bind = Bind<false>});
OFL_REGISTER_KERNEL(
    {.op = "add_rms_norm", .dtypes = kFloatingSet, .strided_inputs = 1 << 0, .bind = Bind<true>});
OFL_REGISTER_KERNEL({.op = "rms_norm_backward",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 1 << 2,
                     .bind = BindBackward});

}  // namespace
}  // namespace oneflow_lite
