// SPDX-License-Identifier: Apache-2.0
#include "python/torch/invariant/launchers.cuh"

namespace oneflow_lite {
namespace cuda {

const InvariantLaunchers kInvariantFloat32 = InvariantOf<float>::kLaunchers;

}  // namespace cuda
}  // namespace oneflow_lite
