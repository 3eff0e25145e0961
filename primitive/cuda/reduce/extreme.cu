// SPDX-License-Identifier: Apache-2.0
#include "primitive/cuda/reduce/short_places.cuh"
#include "primitive/cuda/reduce/truth.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class In>
struct Extremes {
  using Reducer = ExtremesReducer<ExtremeType<In>>;
  static Reducer Of(const Reduction& run) {
    if (run.op != ReduceKind::kNorm) return {run.op, false};
    return {run.parameter > 0 ? ReduceKind::kMax : ReduceKind::kMin, true};
  }
};
template <class In>
struct Place {
  using Reducer = PlaceReducer<ExtremeType<In>>;
  static Reducer Of(const Reduction& run) { return {run.op == ReduceKind::kArgMin}; }
};
template <class In>
struct ShortPlace {
  using Reducer = ShortPlaceReducer<In>;
  static Reducer Of(const Reduction& run) { return Reducer(run.op == ReduceKind::kArgMin); }
};
struct PlaceFinder {
  template <class In>
  ReductionLaunchers operator()(Tag<In> tag) const {
    if constexpr (kIsShortFloat<In>) return ReduceFinder<ShortPlace>{}(tag);
    if constexpr (!kIsShortFloat<In>) return ReduceFinder<Place>{}(tag);
  }
};
template <class In>
struct Count {
  using Reducer = CountReducer<ExtremeType<In>>;
  static Reducer Of(const Reduction&) { return {}; }
};
template <class In>
struct Truth {
  using Reducer = TruthReducer;
  static Reducer Of(const Reduction& run) { return Reducer(run.op == ReduceKind::kAll); }
};
struct TruthFinder {
  template <class In>
  ReductionLaunchers operator()(Tag<In>) const {
    return ReduceFinder<Truth>{}(Tag<typename TruthOf<In>::type>{});
  }
};

}  // namespace

ReductionLaunchers FindReductionOfExtremes(ReduceKind op, DType in) {
  switch (op) {
    case ReduceKind::kMax:
    case ReduceKind::kMin:
    case ReduceKind::kMinMax:
      return VisitDeviceAll<ReductionLaunchers>(in, ReduceFinder<Extremes>{});
    case ReduceKind::kNorm:
      return VisitDeviceFloating<ReductionLaunchers>(in, ReduceFinder<Extremes>{});
    case ReduceKind::kArgMax:
    case ReduceKind::kArgMin:
      return VisitDeviceAll<ReductionLaunchers>(in, PlaceFinder{});
    case ReduceKind::kAny:
    case ReduceKind::kAll:
      return VisitDeviceAll<ReductionLaunchers>(in, TruthFinder{});
    case ReduceKind::kCount:
      return VisitDeviceAll<ReductionLaunchers>(in, ReduceFinder<Count>{});
    default:
      return {};
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
