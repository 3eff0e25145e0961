// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/scale_mask_softmax_launch.cuh"

namespace oneflow_lite {
namespace cuda {

const ScaleMaskLaunchers kScaleMaskFloat32 = MakeScaleMaskLaunchers<float>();

}  // namespace cuda
}  // namespace oneflow_lite
