// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/reducers.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, ComputeType<T>>;

template <class In>
cudaError_t LaunchSum(const ReduceRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  using R = SumReducer<Accumulator<In>>;
  double divisor = 1;
  if (run.op == ReduceKind::kMean) {
    divisor = run.problem.axis > 0 ? static_cast<double>(run.problem.axis) : NAN;
  }
  return LaunchReduce<In>(run, R{divisor}, limits, stream);
}

template <class In>
cudaError_t LaunchNanSum(const ReduceRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  NanSumReducer<ComputeType<In>> r;
  r.mean = run.op == ReduceKind::kNanMean;
  return LaunchReduce<In>(run, r, limits, stream);
}

template <class In>
cudaError_t LaunchProd(const ReduceRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  return LaunchReduce<In>(run, ProdReducer<Accumulator<In>>{}, limits, stream);
}

struct SumFinder {
  template <class T>
  ReduceLaunchers operator()(Tag<T>) const {
    return {&ReduceWorkspace<T, SumReducer<Accumulator<T>>>, &LaunchSum<T>};
  }
};
struct NanSumFinder {
  template <class T>
  ReduceLaunchers operator()(Tag<T>) const {
    return {&ReduceWorkspace<T, NanSumReducer<ComputeType<T>>>, &LaunchNanSum<T>};
  }
};
struct ProdFinder {
  template <class T>
  ReduceLaunchers operator()(Tag<T>) const {
    return {&ReduceWorkspace<T, ProdReducer<Accumulator<T>>>, &LaunchProd<T>};
  }
};

}  // namespace

ReduceLaunchers FindReduceSum(ReduceKind op, DType in) {
  switch (op) {
    case ReduceKind::kSum:
    case ReduceKind::kMean:
      return VisitDeviceAll<ReduceLaunchers>(in, SumFinder{});
    case ReduceKind::kNanSum:
    case ReduceKind::kNanMean:
      return VisitDeviceFloating<ReduceLaunchers>(in, NanSumFinder{});
    case ReduceKind::kProd:
      return VisitDeviceAll<ReduceLaunchers>(in, ProdFinder{});
    default:
      return {};
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
