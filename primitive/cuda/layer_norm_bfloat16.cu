// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/norm_launch.cuh"

namespace oneflow_lite {
namespace cuda {

const NormLaunchers kLayerNormBFloat16 = MakeNormLaunchers<__nv_bfloat16, true>();

}  // namespace cuda
}  // namespace oneflow_lite
