// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/cross_entropy_launch.cuh"

namespace oneflow_lite {
namespace cuda {

const CrossEntropyLaunchers kCrossEntropyFloat64 = CrossEntropyOf<double>::kLaunchers;

}  // namespace cuda
}  // namespace oneflow_lite
