// SPDX-License-Identifier: Apache-2.0
//
// Products and extremes of a line's elements by their places.
#include "primitive/cuda/moves/index_launch.h"
#include "primitive/cuda/moves/index_sorted.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// The 16-bit floats are joined in float32 by the caller.
template <class Join>
IndexSumLauncher FindJoin(DType dtype) {
  return VisitDeviceNumeric<IndexSumLauncher>(dtype, [](auto tag) -> IndexSumLauncher {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<ComputeType<T>, T>)
      return nullptr;
    else
      return &LaunchSorted<T, Join, 1>;
  });
}

}  // namespace

IndexSumLauncher FindLineJoin(DType dtype, ScatterStore store) {
  switch (store) {
    case ScatterStore::kPut:
      return nullptr;
    case ScatterStore::kAdd:
      return FindIndexSum(dtype);
    case ScatterStore::kMul:
      return FindJoin<MultiplyBy>(dtype);
    case ScatterStore::kMax:
      return FindJoin<Keep<true>>(dtype);
    case ScatterStore::kMin:
      return FindJoin<Keep<false>>(dtype);
  }
  return nullptr;
}

}  // namespace cuda
}  // namespace oneflow_lite
