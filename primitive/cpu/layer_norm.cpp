// SPDX-License-Identifier: Apache-2.0
#include "primitive/layer_norm.h"

#include "primitive/cpu/norm.h"

namespace oneflow_lite {
namespace {

const bool forward =
    RegisterPrimitive<LayerNorm>(DeviceType::kCPU, &CpuNorm<LayerNorm, NormForward, true>::New);
const bool backward = RegisterPrimitive<LayerNormBackward>(
    DeviceType::kCPU, &CpuNorm<LayerNormBackward, NormBackward, true>::New);

}  // namespace
}  // namespace oneflow_lite
