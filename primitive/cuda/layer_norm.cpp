// SPDX-License-Identifier: Apache-2.0
#include "primitive/layer_norm.h"

#include "primitive/cuda/norm_host.h"

namespace oneflow_lite {
namespace {

constexpr cuda::FloatingLaunchers<cuda::NormLaunchers> kLaunchers = {
    &cuda::kLayerNormFloat16, &cuda::kLayerNormBFloat16, &cuda::kLayerNormFloat32,
    &cuda::kLayerNormFloat64};
const bool registered = cuda::RegisterNorm<LayerNorm, LayerNormBackward, kLaunchers>();

}  // namespace
}  // namespace oneflow_lite
