// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/norm_launch.cuh"

namespace oneflow_lite {
namespace cuda {

const NormLaunchers kLayerNormFloat16 = MakeNormLaunchers<__half, true>();

}  // namespace cuda
}  // namespace oneflow_lite
