// SPDX-License-Identifier: Apache-2.0
#include "primitive/rms_norm.h"

#include "primitive/cuda/norm_host.h"

namespace oneflow_lite {
namespace {

constexpr cuda::FloatingLaunchers<cuda::NormLaunchers> kLaunchers = {
    &cuda::kRmsNormFloat16, &cuda::kRmsNormBFloat16, &cuda::kRmsNormFloat32,
    &cuda::kRmsNormFloat64};
const bool registered = cuda::RegisterNorm<RmsNorm, RmsNormBackward, kLaunchers>();

}  // namespace
}  // namespace oneflow_lite
