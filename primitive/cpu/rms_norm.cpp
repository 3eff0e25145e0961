// SPDX-License-Identifier: Apache-2.0
#include "primitive/rms_norm.h"

#include "primitive/cpu/norm.h"

namespace oneflow_lite {
namespace {

const bool forward =
    RegisterPrimitive<RmsNorm>(DeviceType::kCPU, &CpuNorm<RmsNorm, NormForward, false>::New);
const bool backward = RegisterPrimitive<RmsNormBackward>(
    DeviceType::kCPU, &CpuNorm<RmsNormBackward, NormBackward, false>::New);

}  // namespace
}  // namespace oneflow_lite
