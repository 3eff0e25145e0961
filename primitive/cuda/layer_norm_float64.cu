// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/norm_launch.cuh"

namespace oneflow_lite {
namespace cuda {

const NormLaunchers kLayerNormFloat64 = MakeNormLaunchers<double, true>();

}  // namespace cuda
}  // namespace oneflow_lite
