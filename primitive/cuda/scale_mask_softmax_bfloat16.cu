// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/scale_mask_softmax_launch.cuh"

namespace oneflow_lite {
namespace cuda {

const ScaleMaskLaunchers kScaleMaskBFloat16 = MakeScaleMaskLaunchers<__nv_bfloat16>();

}  // namespace cuda
}  // namespace oneflow_lite
