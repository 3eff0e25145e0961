// SPDX-License-Identifier: Apache-2.0
#include "primitive/rms_norm.h"

#include "kernels/norm.h"

namespace oneflow_lite {
namespace {

template <bool kResidual>
StatusOr<std::unique_ptr<BoundKernel>> BindRmsNorm(const BindContext& c) {
  return BindNorm<NormKernel<RmsNorm, kResidual>, RmsNorm>(c, {kResidual ? 2 : 1},
                                                           ComputeType(c.inputs[0]));
}

StatusOr<std::unique_ptr<BoundKernel>> BindRmsNormBackward(const BindContext& c) {
  return BindNorm<NormBackwardKernel<RmsNormBackward>, RmsNormBackward>(c, {4}, c.outputs[1]);
}

OFL_REGISTER_KERNEL({.op = "rms_norm",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 1 << 0,
                     .bind = BindRmsNorm<false>});
OFL_REGISTER_KERNEL({.op = "add_rms_norm",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 1 << 0,
                     .bind = BindRmsNorm<true>});
OFL_REGISTER_KERNEL({.op = "rms_norm_backward",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 1 << 2,
                     .bind = BindRmsNormBackward});

}  // namespace
}  // namespace oneflow_lite
