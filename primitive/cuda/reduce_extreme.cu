// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/reducers.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, ComputeType<T>>;

template <class In>
cudaError_t LaunchExtremes(const ReduceRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  ExtremesReducer<Accumulator<In>> r;
  r.op = run.op;
  return LaunchReduce<In>(run, r, limits, stream);
}

template <class In>
cudaError_t LaunchPlace(const ReduceRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  PlaceReducer<Accumulator<In>> r;
  r.smallest = run.op == ReduceKind::kArgMin;
  return LaunchReduce<In>(run, r, limits, stream);
}

template <class In>
cudaError_t LaunchCount(const ReduceRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  CountReducer<Accumulator<In>> r;
  r.of = run.op == ReduceKind::kAny   ? CountOf::kAny
         : run.op == ReduceKind::kAll ? CountOf::kAll
                                      : CountOf::kItself;
  return LaunchReduce<In>(run, r, limits, stream);
}

struct ExtremesFinder {
  template <class T>
  ReduceLaunchers operator()(Tag<T>) const {
    return {&ReduceWorkspace<T, ExtremesReducer<Accumulator<T>>>, &LaunchExtremes<T>};
  }
};
struct PlaceFinder {
  template <class T>
  ReduceLaunchers operator()(Tag<T>) const {
    return {&ReduceWorkspace<T, PlaceReducer<Accumulator<T>>>, &LaunchPlace<T>};
  }
};
struct CountFinder {
  template <class T>
  ReduceLaunchers operator()(Tag<T>) const {
    return {&ReduceWorkspace<T, CountReducer<Accumulator<T>>>, &LaunchCount<T>};
  }
};

}  // namespace

ReduceLaunchers FindReduceExtreme(ReduceKind op, DType in) {
  switch (op) {
    case ReduceKind::kMax:
    case ReduceKind::kMin:
    case ReduceKind::kMinMax:
      return VisitDeviceAll<ReduceLaunchers>(in, ExtremesFinder{});
    case ReduceKind::kArgMax:
    case ReduceKind::kArgMin:
      return VisitDeviceAll<ReduceLaunchers>(in, PlaceFinder{});
    case ReduceKind::kAny:
    case ReduceKind::kAll:
    case ReduceKind::kCount:
      return VisitDeviceAll<ReduceLaunchers>(in, CountFinder{});
    default:
      return {};
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
