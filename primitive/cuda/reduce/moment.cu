// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/reduce/moments.cuh"
#include "primitive/cuda/reduce/spread.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class In>
struct Powers {
  using Reducer = PowersReducer<Accumulator<In>>;
  static Reducer Of(const Reduction& run) {
    Reducer r;
    r.p = run.parameter;
    return r;
  }
};
template <class In>
struct LogSumExp {
  using Reducer = LogSumExpReducer<Accumulator<In>, kIsShortFloat<In>>;
  static Reducer Of(const Reduction&) { return {}; }
};
template <class In>
struct Spread {
  using A = Accumulator<In>;
  using Reducer = SpreadReducer<A, kIsShortFloat<In>>;
  static Reducer Of(const Reduction& run) {
    const int64_t n = ElementsOfResult(run.shape);
    const double freedom = static_cast<double>(n) - run.parameter;
    return {n == 0 ? static_cast<A>(NAN) : static_cast<A>(freedom > 0 ? freedom : 0),
            run.op == ReduceKind::kStd};
  }
};

}  // namespace

ReductionLaunchers FindReductionOfMoments(ReduceKind op, DType in) {
  switch (op) {
    case ReduceKind::kNorm:
      return VisitDeviceFloating<ReductionLaunchers>(in, ReduceFinder<Powers>{});
    case ReduceKind::kLogSumExp:
      return VisitDeviceFloating<ReductionLaunchers>(in, ReduceFinder<LogSumExp>{});
    case ReduceKind::kVar:
    case ReduceKind::kStd:
      return VisitDeviceFloating<ReductionLaunchers>(in, ReduceFinder<Spread>{});
    default:
      return {};
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
