// SPDX-License-Identifier: Apache-2.0
#include "primitive/layer_norm.h"

#include "kernels/norm.h"

namespace oneflow_lite {
namespace {

template <bool kResidual>
StatusOr<std::unique_ptr<BoundKernel>> BindLayerNorm(const BindContext& c) {
  const int weight = kResidual ? 2 : 1;
  return BindNorm<NormKernel<LayerNorm, kResidual>, LayerNorm>(c, {weight, weight + 1},
                                                               ComputeType(c.inputs[0]));
}

StatusOr<std::unique_ptr<BoundKernel>> BindLayerNormBackward(const BindContext& c) {
  return BindNorm<NormBackwardKernel<LayerNormBackward>, LayerNormBackward>(c, {4, 6},
                                                                            c.outputs[1]);
}

OFL_REGISTER_KERNEL({.op = "layer_norm",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 1 << 0,
                     .bind = BindLayerNorm<false>});
OFL_REGISTER_KERNEL({.op = "add_layer_norm",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 1 << 0,
                     .bind = BindLayerNorm<true>});
OFL_REGISTER_KERNEL({.op = "layer_norm_backward",
                     .dtypes = kFloatingSet,
                     .strided_inputs = 1 << 2,
                     .bind = BindLayerNormBackward});

}  // namespace
}  // namespace oneflow_lite
