// SPDX-License-Identifier: Apache-2.0
//
// Reductions run on chunks of one of a few types (float, double, int64 or truths; extremes of short
// integers in their own), to which the input is converted on the way. Floating sums: at most
// 32 terms in float32, then double.
#include "primitive/reduce.h"

#include <algorithm>

#include "primitive/cpu/arg_extreme.h"
#include "primitive/cpu/reduce_expanded.h"
#include "primitive/cpu/reduce_moments.h"
#include "primitive/cpu/reduce_runs.h"
#include "primitive/cpu/reducer_pairs.h"

namespace oneflow_lite {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One launch: what the reducers are made of.
struct Run {
  const Reduce::Spec& spec;
  const ReduceSplit& shape;
  const std::optional<ReduceRuns>& runs;  // in place of the shape
  int64_t times;                          // that each element counts
  double parameter;
  const void* x;
  void* y;
  void* second;

  template <class R>
  Status operator()(const R& reducer) const {
    if (runs) {
      ReduceRunsMachine<R>(reducer, spec.in, *runs, x).Run();
    } else {
      ReduceMachine<R>(reducer, spec.in, shape, x).Run();
    }
    return OkStatus();
  }
  template <class C, Join kJoin, class Out = C>
  Status Folded(Fold fold, Result result = Result::kItself, double root = 1) const {
    FoldReducer<C, kJoin, Out> reducer{{}, fold, result, root, {y, spec.out}};
    if (kJoin != Join::kExtreme) reducer.times = times;
    TakeAsIs(reducer);
    return (*this)(reducer);
  }
  // Lets extremes read what they can without a conversion: bytes are those of uint8 and bool.
  template <class C, Join kJoin, class Out>
  void TakeAsIs(FoldReducer<C, kJoin, Out>& reducer) const {
    if (std::is_same_v<C, uint8_t> && kJoin == Join::kExtreme) {
      reducer.takes = spec.in;
    } else {
      reducer.TakeNarrow(spec.in);
    }
  }
};

template <class C>
bool IsNumber(C x) {
  return x == x;
}
bool IsZero(double x) { return x == 0; }

template <class C>
Status NanMean(const Run& run) {
  using Sum = FoldReducer<C, Join::kSum>;
  using Count = CountReducer<C, &IsNumber<C>>;
  const ReduceOutput<C> y(run.y, run.spec.out);
  const auto output = [y](const auto* totals, int64_t n, int64_t, int64_t index) {
    y.Write(n, index, [&](int64_t i) { return totals[i].a / static_cast<double>(totals[i].b); });
  };
  const Sum sum{{}, Fold::kNanSum, Result::kItself, 1, {nullptr, run.spec.out}};
  return run(PairReducer<Sum, Count, decltype(output)>{{}, sum, {}, output});
}

template <class C>
Status MinMax(const Run& run) {
  const ReduceOutput<C> y(run.y, run.spec.in), second(run.second, run.spec.in);
  const auto output = [y, second](const auto* totals, int64_t n, int64_t, int64_t index) {
    y.Write(n, index, [&](int64_t i) { return totals[i].a; });
    second.Write(n, index, [&](int64_t i) { return totals[i].b; });
  };
  const ReduceOutput<C> none(nullptr, run.spec.in);
  FoldReducer<C, Join::kExtreme> least{{}, Fold::kMin, Result::kItself, 1, none};
  FoldReducer<C, Join::kExtreme> most{{}, Fold::kMax, Result::kItself, 1, none};
  run.TakeAsIs(least);
  run.TakeAsIs(most);
  return run(ExtremesReducer<C, decltype(output)>{{{}, least, most, output}});
}

Status ProdParts(const Run& run) {
  const ReduceOutput<double> y(run.y, run.spec.out);
  const ReduceOutput<int64_t> zeros(run.second, DType::kInt64);
  const auto output = [y, zeros](const auto* totals, int64_t n, int64_t, int64_t index) {
    y.Write(n, index, [&](int64_t i) { return totals[i].a; });
    zeros.Write(n, index, [&](int64_t i) { return totals[i].b; });
  };
  return run(ProductPartsReducer<&IsZero, decltype(output)>{{{}, {}, {}, output}});
}

// Of truths.
Status Counted(const Run& run, Result result = Result::kItself) {
  return run.Folded<uint8_t, Join::kSum, int64_t>(Fold::kSum, result);
}

template <class C>
Status Norm(const Run& run) {
  const double p = run.parameter;
  if (p == 0) return Counted(run);
  if (p == 1) return run.Folded<C, Join::kSum>(Fold::kAbsSum);
  if (p == 2) return run.Folded<C, Join::kSum>(Fold::kSquares, Result::kRoot, 2);
  if (p == kInfinity) return run.Folded<C, Join::kExtreme>(Fold::kAbsMax);
  if (p == -kInfinity) return run.Folded<C, Join::kExtreme>(Fold::kAbsMin);
  return run(PowerReducer{{}, p, run.times, {run.y, run.spec.out}});
}

// Of floats, in C.
template <class C>
Status OfFloats(const Run& run) {
  switch (run.spec.op) {
    case ReduceKind::kSum:
      return run.Folded<C, Join::kSum>(Fold::kSum);
    case ReduceKind::kMean:
      return run.Folded<C, Join::kSum>(Fold::kSum, Result::kMean);
    case ReduceKind::kNanSum:
      return run.Folded<C, Join::kSum>(Fold::kNanSum);
    case ReduceKind::kNanMean:
      return NanMean<C>(run);
    case ReduceKind::kProd:  // in double: a product in float32 would leave its range on the way
      return run.Folded<double, Join::kProduct>(Fold::kProd);
    case ReduceKind::kNorm:
      return Norm<C>(run);
    case ReduceKind::kLogSumExp:
      return run(ExpSumReducer<C>{{}, {run.y, run.spec.out}});
    case ReduceKind::kProdParts:
      return ProdParts(run);
    default:  // kVar, kStd
      return run(SpreadReducer<C>{{},
                                  run.parameter,
                                  run.spec.op == ReduceKind::kStd,
                                  {run.y, run.spec.out},
                                  {run.second, run.spec.out},
                                  run.x,
                                  run.spec.in,
                                  run.shape});
  }
}

bool IsExtreme(ReduceKind op) {
  return op == ReduceKind::kMax || op == ReduceKind::kMin || op == ReduceKind::kMinMax;
}
// In C, which holds what the dtype does.
template <class C>
Status OfExtremes(const Run& run) {
  if (run.spec.op == ReduceKind::kMinMax) return MinMax<C>(run);
  return run.Folded<C, Join::kExtreme>(run.spec.op == ReduceKind::kMax ? Fold::kMax : Fold::kMin);
}

// Of any dtype, in C.
template <class C>
Status OfAny(const Run& run) {
  if (IsExtreme(run.spec.op)) return OfExtremes<C>(run);
  switch (run.spec.op) {
    case ReduceKind::kAny:
      return Counted(run, Result::kAny);
    case ReduceKind::kAll:
      return Counted(run, Result::kAll);
    case ReduceKind::kCount:
      return Counted(run);
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<C>) {
    return OfFloats<C>(run);
  } else if (run.spec.op == ReduceKind::kProd) {
    return run.Folded<C, Join::kProduct>(Fold::kProd);
  } else if (run.spec.in == DType::kBool) {
    return Counted(run);
  } else {
    return run.Folded<C, Join::kSum>(Fold::kSum);
  }
}

class CpuReduce final : public Reduce {
 public:
  explicit CpuReduce(const Spec& spec)
      : spec_(spec),
        // Sums that are given in float64 are taken in it.
        in_(spec.out == DType::kFloat64 && IsFloating(spec.in) ? DType::kFloat64
                                                               : AccumulateType(spec.in)) {
    if (IsExtreme(spec.op) && !IsFloating(spec.in) && SizeOf(spec.in) <= 4) {
      in_ = spec.in == DType::kBool ? DType::kUInt8 : spec.in;
    }
  }

  bool TakesStrides(const ReduceShape& whole) const override {
    const ReduceShape shape = WithoutExpanded(whole, spec_.op).shape;
    return StridedSplit(shape).has_value() || RunsOf(shape).has_value();
  }
  Status Launch(Stream&, const ReduceShape& whole, double parameter, const void* x, void* y,
                void* second, void*) const override {
    const WithoutExpanded taken(whole, spec_.op);
    const std::optional<ReduceSplit> strided = StridedSplit(taken.shape);
    const ReduceSplit split = strided.value_or(ReduceSplit(SplitOf(taken.shape)));
    const std::optional<ReduceRuns> runs = strided ? std::nullopt : RunsOf(taken.shape);
    OFL_RETURN_IF_ERROR(Dispatch({spec_, split, runs, taken.times, parameter, x, y, second}));
    if (!taken.repeats) return OkStatus();
    RepeatAlongExpanded(whole, SizeOf(spec_.out), y);
    if (second) RepeatAlongExpanded(whole, SizeOf(SecondType()), second);
    return OkStatus();
  }

 private:
  DType SecondType() const {
    return spec_.op == ReduceKind::kProdParts ? DType::kInt64 : spec_.out;
  }
  Status Dispatch(const Run& run) const {
    switch (in_) {
      case DType::kFloat32:
        return OfAny<float>(run);
      case DType::kFloat64:
        return OfAny<double>(run);
      case DType::kInt32:
        return OfExtremes<int32_t>(run);
      case DType::kInt16:
        return OfExtremes<int16_t>(run);
      case DType::kInt8:
        return OfExtremes<int8_t>(run);
      case DType::kUInt8:
        return OfExtremes<uint8_t>(run);
      default:
        return OfAny<int64_t>(run);
    }
  }
  std::optional<ReduceRuns> RunsOf(const ReduceShape& shape) const {
    switch (spec_.op) {
      case ReduceKind::kVar:
      case ReduceKind::kStd:  // may look at their elements a second time, by the shape
        return std::nullopt;
      case ReduceKind::kSum:
      case ReduceKind::kMean:
      case ReduceKind::kNanSum:
      case ReduceKind::kMax:
      case ReduceKind::kMin:
      case ReduceKind::kProd:
        return FindRuns(shape, /*takes_rows=*/IsFloating(spec_.in) || IsExtreme(spec_.op));
      default:
        return FindRuns(shape, /*takes_rows=*/false);
    }
  }

  Spec spec_;
  DType in_;
};

StatusOr<std::unique_ptr<Reduce>> NewReduce(const Reduce::Spec& spec) {
  const std::optional<DType> out = ReduceOut(spec.op, spec.in);
  const bool any_float = TakesAnyFloat(spec.op) && IsFloating(spec.in) && IsFloating(spec.out);
  if (!out || (spec.out != *out && !any_float)) {
    return NoPrimitiveFor(Reduce::kName, DeviceType::kCPU, spec.in);
  }
  if (spec.op == ReduceKind::kArgMax || spec.op == ReduceKind::kArgMin) return NewArgExtreme(spec);
  return std::make_unique<CpuReduce>(spec);
}

const bool registered = RegisterPrimitive<Reduce>(DeviceType::kCPU, &NewReduce);

}  // namespace
}  // namespace oneflow_lite
