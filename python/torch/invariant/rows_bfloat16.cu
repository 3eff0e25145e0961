// SPDX-License-Identifier: Apache-2.0
#include "python/torch/invariant/launchers.cuh"

namespace oneflow_lite {
namespace cuda {

const InvariantLaunchers kInvariantBFloat16 = InvariantOf<__nv_bfloat16>::kLaunchers;

}  // namespace cuda
}  // namespace oneflow_lite
