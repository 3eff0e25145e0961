// SPDX-License-Identifier: Apache-2.0
#include "primitive/rms_norm.h"

#include "primitive/cuda/norm_host.h"

namespace oneflow_lite {
namespace {

constexpr cuda::NormLauncherTable kTable = {&cuda::kRmsNormFloat16, &cuda::kRmsNormBFloat16,
                                            &cuda::kRmsNormFloat32, &cuda::kRmsNormFloat64};
const bool registered = cuda::RegisterNorm<RmsNorm, RmsNormBackward, kTable>();

}  // namespace
}  // namespace oneflow_lite
