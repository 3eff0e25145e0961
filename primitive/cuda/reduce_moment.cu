// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "primitive/cuda/reducers.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

NormKind KindOf(double p) {
  if (p == 0) return NormKind::kCount;
  if (p == 1) return NormKind::kSum;
  if (p == 2) return NormKind::kSquares;
  if (isinf(p)) return p > 0 ? NormKind::kMax : NormKind::kMin;
  return NormKind::kPowers;
}

template <class In>
cudaError_t LaunchNorm(const ReduceRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  NormReducer<ComputeType<In>> r;
  r.kind = KindOf(run.parameter);
  r.p = run.parameter;
  return LaunchReduce<In>(run, r, limits, stream);
}

template <class In>
cudaError_t LaunchLogSumExp(const ReduceRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  return LaunchReduce<In>(run, LogSumExpReducer<ComputeType<In>>{}, limits, stream);
}

template <class In>
cudaError_t LaunchSpread(const ReduceRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  const SpreadReducer<ComputeType<In>> r{run.parameter, run.op == ReduceKind::kStd};
  return LaunchReduce<In>(run, r, limits, stream);
}

template <class In>
cudaError_t LaunchProdParts(const ReduceRun& run, const DeviceLimits& limits, cudaStream_t stream) {
  return LaunchReduce<In>(run, ProdPartsReducer<ComputeType<In>>{}, limits, stream);
}

struct NormFinder {
  template <class T>
  ReduceLaunchers operator()(Tag<T>) const {
    return {&ReduceWorkspace<T, NormReducer<ComputeType<T>>>, &LaunchNorm<T>};
  }
};
struct LogSumExpFinder {
  template <class T>
  ReduceLaunchers operator()(Tag<T>) const {
    return {&ReduceWorkspace<T, LogSumExpReducer<ComputeType<T>>>, &LaunchLogSumExp<T>};
  }
};
struct SpreadFinder {
  template <class T>
  ReduceLaunchers operator()(Tag<T>) const {
    return {&ReduceWorkspace<T, SpreadReducer<ComputeType<T>>>, &LaunchSpread<T>};
  }
};
struct ProdPartsFinder {
  template <class T>
  ReduceLaunchers operator()(Tag<T>) const {
    return {&ReduceWorkspace<T, ProdPartsReducer<ComputeType<T>>>, &LaunchProdParts<T>};
  }
};

}  // namespace

ReduceLaunchers FindReduceMoment(ReduceKind op, DType in) {
  switch (op) {
    case ReduceKind::kNorm:
      return VisitDeviceFloating<ReduceLaunchers>(in, NormFinder{});
    case ReduceKind::kLogSumExp:
      return VisitDeviceFloating<ReduceLaunchers>(in, LogSumExpFinder{});
    case ReduceKind::kVar:
    case ReduceKind::kStd:
      return VisitDeviceFloating<ReduceLaunchers>(in, SpreadFinder{});
    case ReduceKind::kProdParts:
      return VisitDeviceFloating<ReduceLaunchers>(in, ProdPartsFinder{});
    default:
      return {};
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
