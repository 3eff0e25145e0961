// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/reduce/reducers.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class In, ReduceKind kOf>
struct SumOf {
  using Reducer = SumReducer<Accumulator<In>, kOf>;
  static Reducer Of(const Reduction& run) {
    Reducer r;
    r.terms = run.parameter == 0   ? Terms::kNonzero
              : run.parameter == 1 ? Terms::kSizes
                                   : Terms::kSquares;
    r.divisor = 1;
    if (run.op == ReduceKind::kMean) {
      const int64_t n = ElementsOfResult(run.shape);
      r.divisor = n > 0 ? static_cast<double>(n) : NAN;
    }
    return r;
  }
};
template <class In>
using Sum = SumOf<In, ReduceKind::kSum>;
template <class In>
using NanSum = SumOf<In, ReduceKind::kNanSum>;
template <class In>
using Norm = SumOf<In, ReduceKind::kNorm>;
template <class In>
struct NanMean {
  using Reducer = NanMeanReducer<Accumulator<In>>;
  static Reducer Of(const Reduction&) { return {}; }
};
template <class In>
struct Prod {
  using Reducer = ProdReducer<Accumulator<In>>;
  static Reducer Of(const Reduction&) { return {}; }
};
template <class In>
struct ProdParts {
  using Reducer = ProdPartsReducer<Accumulator<In>>;
  static Reducer Of(const Reduction&) { return {}; }
};

}  // namespace

ReductionLaunchers FindReductionOfSums(ReduceKind op, DType in) {
  switch (op) {
    case ReduceKind::kSum:
      return VisitDeviceAll<ReductionLaunchers>(in, ReduceFinder<Sum>{});
    case ReduceKind::kMean:
      return VisitDeviceFloating<ReductionLaunchers>(in, ReduceFinder<Sum>{});
    case ReduceKind::kNanSum:
      return VisitDeviceFloating<ReductionLaunchers>(in, ReduceFinder<NanSum>{});
    case ReduceKind::kNorm:
      return VisitDeviceFloating<ReductionLaunchers>(in, ReduceFinder<Norm>{});
    case ReduceKind::kNanMean:
      return VisitDeviceFloating<ReductionLaunchers>(in, ReduceFinder<NanMean>{});
    case ReduceKind::kProd:
      return VisitDeviceAll<ReductionLaunchers>(in, ReduceFinder<Prod>{});
    case ReduceKind::kProdParts:
      return VisitDeviceFloating<ReductionLaunchers>(in, ReduceFinder<ProdParts>{});
    default:
      return {};
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
