// SPDX-License-Identifier: Apache-2.0
//
// Reductions run on chunks of one of four types (float, double, int64 or truths), to which the
// input is converted on the way. Floating sums: at most 32 terms in float32, then double.
#include "primitive/reduce.h"

#include <algorithm>

#include "primitive/cpu/reducers.h"

namespace oneflow_lite {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The dims around those that are reduced, which are neighbours.
AxisSplit SplitOf(const ReduceShape& shape) {
  AxisSplit split;
  int first = 0, end = shape.ndim;
  while (first < shape.ndim && !shape.reduced[first]) ++first;
  while (end > first && !shape.reduced[end - 1]) --end;
  for (int d = 0; d < shape.ndim; ++d) {
    (d < first ? split.outer : d < end ? split.axis : split.inner) *= shape.sizes[d];
  }
  return split;
}

// One launch: what the reducers are made of.
struct Run {
  const Reduce::Spec& spec;
  const AxisSplit& shape;
  double parameter;
  const void* x;
  void* y;
  void* second;

  template <class R>
  Status operator()(const R& reducer) const {
    ReduceMachine<R>(reducer, spec.in, shape, x).Run();
    return OkStatus();
  }
  template <class C, Fold kFold, class Out = C>
  Status Folded(Result result = Result::kItself, double root = 1) const {
    FoldReducer<C, kFold, Out> reducer{{}, result, root, {y, spec.out}};
    reducer.TakeNarrow(spec.in);
    return (*this)(reducer);
  }
};

template <class C>
bool IsNumber(C x) {
  return x == x;
}
bool IsZero(double x) { return x == 0; }

template <class C>
Status NanMean(const Run& run) {
  using Sum = FoldReducer<C, Fold::kNanSum>;
  using Count = CountReducer<C, &IsNumber<C>>;
  const ReduceOutput<C> y(run.y, run.spec.out);
  const auto output = [y](const auto* totals, int64_t n, int64_t, int64_t index) {
    y.Write(n, index, [&](int64_t i) { return totals[i].a / static_cast<double>(totals[i].b); });
  };
  const Sum sum{{}, Result::kItself, 1, {nullptr, run.spec.out}};
  return run(PairReducer<Sum, Count, decltype(output)>{{}, sum, {}, output});
}

template <class C>
Status MinMax(const Run& run) {
  using Min = FoldReducer<C, Fold::kMin>;
  using Max = FoldReducer<C, Fold::kMax>;
  const ReduceOutput<C> y(run.y, run.spec.in), second(run.second, run.spec.in);
  const auto output = [y, second](const auto* totals, int64_t n, int64_t, int64_t index) {
    y.Write(n, index, [&](int64_t i) { return totals[i].a; });
    second.Write(n, index, [&](int64_t i) { return totals[i].b; });
  };
  const ReduceOutput<C> none(nullptr, run.spec.in);
  PairReducer<Min, Max, decltype(output)> reducer{
      {}, {{}, Result::kItself, 1, none}, {{}, Result::kItself, 1, none}, output};
  reducer.a.TakeNarrow(run.spec.in);
  reducer.b.TakeNarrow(run.spec.in);
  return run(reducer);
}

Status ProdParts(const Run& run) {
  using Zeros = CountReducer<double, &IsZero>;
  const ReduceOutput<double> y(run.y, run.spec.out);
  const ReduceOutput<int64_t> zeros(run.second, DType::kInt64);
  const auto output = [y, zeros](const auto* totals, int64_t n, int64_t, int64_t index) {
    y.Write(n, index, [&](int64_t i) { return totals[i].a; });
    zeros.Write(n, index, [&](int64_t i) { return totals[i].b; });
  };
  return run(PairReducer<NonzeroProduct, Zeros, decltype(output)>{{}, {}, {}, output});
}

template <class C>
Status Norm(const Run& run) {
  const double p = run.parameter;
  if (p == 0) return run.Folded<uint8_t, Fold::kSum, int64_t>();
  if (p == 1) return run.Folded<C, Fold::kAbsSum>();
  if (p == 2) return run.Folded<C, Fold::kSquares>(Result::kRoot, 2);
  if (p == kInfinity) return run.Folded<C, Fold::kAbsMax>();
  if (p == -kInfinity) return run.Folded<C, Fold::kAbsMin>();
  return run(PowerReducer{{}, p, {run.y, run.spec.out}});
}

// Of floats, in C.
template <class C>
Status OfFloats(const Run& run) {
  switch (run.spec.op) {
    case ReduceKind::kSum:
      return run.Folded<C, Fold::kSum>();
    case ReduceKind::kMean:
      return run.Folded<C, Fold::kSum>(Result::kMean);
    case ReduceKind::kNanSum:
      return run.Folded<C, Fold::kNanSum>();
    case ReduceKind::kNanMean:
      return NanMean<C>(run);
    case ReduceKind::kProd:  // in double: a product in float32 would leave its range on the way
      return run.Folded<double, Fold::kProd>();
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
                                  {run.second, run.spec.out}});
  }
}

// Of any dtype, in C.
template <class C>
Status OfAny(const Run& run) {
  switch (run.spec.op) {
    case ReduceKind::kMax:
      return run.Folded<C, Fold::kMax>();
    case ReduceKind::kMin:
      return run.Folded<C, Fold::kMin>();
    case ReduceKind::kMinMax:
      return MinMax<C>(run);
    case ReduceKind::kAny:
      return run.Folded<uint8_t, Fold::kSum, int64_t>(Result::kAny);
    case ReduceKind::kAll:
      return run.Folded<uint8_t, Fold::kSum, int64_t>(Result::kAll);
    case ReduceKind::kCount:
      return run.Folded<uint8_t, Fold::kSum, int64_t>();
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<C>) {
    return OfFloats<C>(run);
  } else if (run.spec.op == ReduceKind::kProd) {
    return run.Folded<C, Fold::kProd>();
  } else {
    return run.Folded<C, Fold::kSum>();
  }
}

class CpuReduce final : public Reduce {
 public:
  explicit CpuReduce(const Spec& spec)
      : spec_(spec),
        // Sums that are given in float64 are taken in it.
        in_(spec.out == DType::kFloat64 && IsFloating(spec.in) ? DType::kFloat64
                                                               : AccumulateType(spec.in)) {}

  Status Launch(Stream&, const ReduceShape& shape, double parameter, const void* x, void* y,
                void* second, void*) const override {
    const AxisSplit split = SplitOf(shape);
    const Run run{spec_, split, parameter, x, y, second};
    switch (in_) {
      case DType::kFloat32:
        return OfAny<float>(run);
      case DType::kFloat64:
        return OfAny<double>(run);
      default:
        return OfAny<int64_t>(run);
    }
  }

 private:
  Spec spec_;
  DType in_;
};

// Whether x comes before `best`: beyond it, or the first NaN.
template <bool kMin, class C>
bool Beats(C x, C best) {
  return (kMin ? x < best : x > best) | ((x != x) & (best == best));
}

template <class C, bool kMin>
class CpuArgExtreme final : public Reduce {
 public:
  explicit CpuArgExtreme(const Spec& spec)
      : source_(spec.in, kDTypeOfChunks<C>), item_(SizeOf(spec.in)) {}

  Status Launch(Stream&, const ReduceShape& given, double, const void* x, void* y, void* second,
                void*) const override {
    const AxisSplit shape = SplitOf(given);
    if (shape.axis <= 0 || shape.inner <= 0) return OkStatus();
    auto* index = static_cast<int64_t*>(second);
    const ColumnBlocks blocks(shape.inner);
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / (shape.axis * blocks.width));
    ParallelFor(shape.outer * blocks.count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t outer = task / blocks.count, column = task % blocks.count * blocks.width;
        const int64_t width = std::min(blocks.width, shape.inner - column);
        const int64_t from = outer * shape.axis * shape.inner + column;
        const int64_t to = outer * shape.inner + column;
        if (shape.inner == 1) {
          index[to] = Row(x, from, shape.axis);
        } else {
          Columns(x, from, shape, width, index + to);
        }
        if (y) Pick(x, from, shape.inner, width, index + to, y, to);
      }
    });
    return OkStatus();
  }

 private:
  const C* Load(const void* x, int64_t offset, int64_t n, C* buffer) const {
    return static_cast<const C*>(source_.Load(x, offset, n, buffer));
  }

  // Finds the first chunk that holds the extreme, then the element in it.
  int64_t Row(const void* x, int64_t offset, int64_t axis) const {
    C buffer[kChunk];
    C best{};
    int64_t first = -1;
    for (int64_t a = 0; a < axis; a += kChunk) {
      const int64_t n = std::min(kChunk, axis - a);
      const C top = static_cast<C>(loops_.row(n, Load(x, offset + a, n, buffer)));
      if (first < 0 || Beats<kMin>(top, best)) {
        best = top;
        first = a;
      }
    }
    const int64_t n = std::min(kChunk, axis - first);
    const C* chunk = Load(x, offset + first, n, buffer);
    int64_t i = 0;
    while (i + 1 < n && chunk[i] != best && !(chunk[i] != chunk[i])) ++i;
    return first + i;
  }

  void Columns(const void* x, int64_t offset, const AxisSplit& shape, int64_t width,
               int64_t* index) const {
    C buffer[kChunk], best[kChunk];
    std::copy_n(Load(x, offset, width, buffer), width, best);
    std::fill_n(index, width, 0);
    for (int64_t a = 1; a < shape.axis; ++a) {
      const C* row = Load(x, offset + a * shape.inner, width, buffer);
      bool any = false;
      for (int64_t j = 0; j < width; ++j) any |= Beats<kMin>(row[j], best[j]);
      if (!any) continue;
      for (int64_t j = 0; j < width; ++j) {
        const bool beats = Beats<kMin>(row[j], best[j]);
        best[j] = beats ? row[j] : best[j];
        index[j] = beats ? a : index[j];
      }
    }
  }

  // The elements at the places found.
  void Pick(const void* x, int64_t from, int64_t inner, int64_t width, const int64_t* index,
            void* y, int64_t to) const {
    const auto* source = static_cast<const char*>(x);
    auto* values = static_cast<char*>(y);
    for (int64_t j = 0; j < width; ++j) {
      std::memcpy(values + (to + j) * item_, source + (from + index[j] * inner + j) * item_,
                  static_cast<size_t>(item_));
    }
  }

  ChunkSource source_;
  int64_t item_;
  ReduceLoops<C> loops_ = FindReduceLoops<C>(kMin ? Fold::kMin : Fold::kMax);
};

template <bool kMin>
std::unique_ptr<Reduce> NewArgExtreme(const Reduce::Spec& spec) {
  switch (AccumulateType(spec.in)) {
    case DType::kFloat32:
      return std::make_unique<CpuArgExtreme<float, kMin>>(spec);
    case DType::kFloat64:
      return std::make_unique<CpuArgExtreme<double, kMin>>(spec);
    default:
      return std::make_unique<CpuArgExtreme<int64_t, kMin>>(spec);
  }
}

StatusOr<std::unique_ptr<Reduce>> NewReduce(const Reduce::Spec& spec) {
  const std::optional<DType> out = ReduceOut(spec.op, spec.in);
  const bool any_float = TakesAnyFloat(spec.op) && IsFloating(spec.in) && IsFloating(spec.out);
  if (!out || (spec.out != *out && !any_float)) {
    return NoPrimitiveFor(Reduce::kName, DeviceType::kCPU, spec.in);
  }
  if (spec.op == ReduceKind::kArgMax) return NewArgExtreme<false>(spec);
  if (spec.op == ReduceKind::kArgMin) return NewArgExtreme<true>(spec);
  return std::make_unique<CpuReduce>(spec);
}

const bool registered = RegisterPrimitive<Reduce>(DeviceType::kCPU, &NewReduce);

}  // namespace
}  // namespace oneflow_lite
