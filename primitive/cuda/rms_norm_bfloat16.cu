// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/norm_launch.cuh"

namespace oneflow_lite {
namespace cuda {

const NormLaunchers kRmsNormBFloat16 = MakeNormLaunchers<__nv_bfloat16, false>();

}  // namespace cuda
}  // namespace oneflow_lite
