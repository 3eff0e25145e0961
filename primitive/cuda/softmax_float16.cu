// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/softmax_launch.cuh"

namespace oneflow_lite {
namespace cuda {

const SoftmaxLaunchers kSoftmaxFloat16 = MakeSoftmaxLaunchers<__half>();

}  // namespace cuda
}  // namespace oneflow_lite
