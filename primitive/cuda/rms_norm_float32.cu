// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/norm_launch.cuh"

namespace oneflow_lite {
namespace cuda {

const NormLaunchers kRmsNormFloat32 = MakeNormLaunchers<float, false>();

}  // namespace cuda
}  // namespace oneflow_lite
