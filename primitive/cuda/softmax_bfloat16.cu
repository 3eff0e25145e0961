// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/softmax_launch.cuh"

namespace oneflow_lite {
namespace cuda {

const SoftmaxLaunchers kSoftmaxBFloat16 = MakeSoftmaxLaunchers<__nv_bfloat16>();

}  // namespace cuda
}  // namespace oneflow_lite
