// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/reduce.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <bool kMean>
struct SumFinder {
  template <class T>
  ReduceLaunchers operator()(Tag<T>) const {
    if constexpr (std::is_integral_v<T>) {
      return {&ReduceWorkspace<T, int64_t>, &LaunchReduce<T, int64_t, int64_t, SumOp, false>};
    } else {
      using A = ComputeType<T>;
      return {&ReduceWorkspace<T, A>, &LaunchReduce<T, T, A, SumOp, kMean>};
    }
  }
};

}  // namespace

ReduceLaunchers FindSum(DType in) {
  return VisitDeviceAll<ReduceLaunchers>(in, SumFinder<false>{});
}
ReduceLaunchers FindMean(DType in) {
  return VisitDeviceFloating<ReduceLaunchers>(in, SumFinder<true>{});
}

}  // namespace cuda
}  // namespace oneflow_lite
