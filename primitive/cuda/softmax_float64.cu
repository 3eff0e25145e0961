// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/softmax_launch.cuh"

namespace oneflow_lite {
namespace cuda {

const SoftmaxLaunchers kSoftmaxFloat64 = MakeSoftmaxLaunchers<double>();

}  // namespace cuda
}  // namespace oneflow_lite
