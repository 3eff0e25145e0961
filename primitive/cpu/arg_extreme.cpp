// SPDX-License-Identifier: Apache-2.0
//
// Where the largest or smallest element of a slice lies. A row's extreme is found first, then the
// first element that reaches it. Columns are gone through side by side, each lane of a vector with
// its best element and the step at which it came.
#include "primitive/cpu/arg_extreme.h"

#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/arg_extreme.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/beyond.h"
#include "primitive/cpu/reduce_loops.h"
#include "primitive/cpu/reduce_parts.h"
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_ARG_EXTREME_ONCE_
#define OFL_PRIMITIVE_CPU_ARG_EXTREME_ONCE_
namespace oneflow_lite {
// What counts the steps of lanes of C.
template <class C>
using StepOf = std::conditional_t<sizeof(C) == 4, int32_t, int64_t>;
// best[i] and at[i] become x[i] and `step` where x[i] comes before best[i].
template <class C>
using ArgLoop = void (*)(int64_t n, const C* x, StepOf<C> step, C* best, StepOf<C>* at);
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <bool kMin, class C>
void Step(int64_t n, const C* x, StepOf<C> step, C* best, StepOf<C>* at) {
  const hn::ScalableTag<C> d;
  const hn::Rebind<StepOf<C>, decltype(d)> places;
  const auto zero = hn::Zero(d);
  const auto here = hn::Set(places, step), none = hn::Zero(places);
  ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto v = LoadUpTo(d, x + i, count, zero), b = LoadUpTo(d, best + i, count, zero);
    auto beats = kMin ? hn::Lt(v, b) : hn::Gt(v, b);
    if constexpr (hwy::IsFloat<C>()) beats = hn::Or(beats, hn::AndNot(hn::IsNaN(b), hn::IsNaN(v)));
    const auto before = LoadUpTo(places, at + i, count, none);
    StoreUpTo(hn::IfThenElse(beats, v, b), d, best + i, count);
    StoreUpTo(hn::IfThenElse(hn::RebindMask(places, beats), here, before), places, at + i, count);
  });
}

}  // namespace

ArgLoop<float> FloatStep(bool min) { return min ? &Step<true, float> : &Step<false, float>; }
ArgLoop<double> DoubleStep(bool min) { return min ? &Step<true, double> : &Step<false, double>; }
ArgLoop<int32_t> Int32Step(bool min) { return min ? &Step<true, int32_t> : &Step<false, int32_t>; }
ArgLoop<int64_t> IntStep(bool min) { return min ? &Step<true, int64_t> : &Step<false, int64_t>; }

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FloatStep);
HWY_EXPORT(DoubleStep);
HWY_EXPORT(Int32Step);
HWY_EXPORT(IntStep);

template <class C>
ArgLoop<C> FindArgLoop(bool min) {
  if constexpr (std::is_same_v<C, float>) return HWY_DYNAMIC_DISPATCH(FloatStep)(min);
  if constexpr (std::is_same_v<C, double>) return HWY_DYNAMIC_DISPATCH(DoubleStep)(min);
  if constexpr (std::is_same_v<C, int32_t>) return HWY_DYNAMIC_DISPATCH(Int32Step)(min);
  if constexpr (std::is_same_v<C, int64_t>) return HWY_DYNAMIC_DISPATCH(IntStep)(min);
}

// An element and its place in the slice; none yet where that is negative.
template <class C>
struct Found {
  C best;
  int64_t place;
};

// C is what elements are compared in.
template <class C, bool kMin>
class CpuArgExtreme final : public Reduce {
 public:
  explicit CpuArgExtreme(const Spec& spec)
      : source_(spec.in, kDTypeOfChunks<C>),
        item_(static_cast<int64_t>(SizeOf(spec.in))),
        narrow_(FindConvert(kDTypeOfChunks<C>, spec.in)),
        reaching_(FindReaching(spec.in, !kMin)) {
    constexpr Fold kFold = kMin ? Fold::kMin : Fold::kMax;
    row_ = FindReduceLoops<C>(kFold);
    if constexpr (std::is_same_v<C, float>) {
      if (const auto loops = FindNarrowReduceLoops<C>(kFold, spec.in); loops.rows) {
        row_ = loops;
        row_source_ = ChunkSource(spec.in, spec.in);
      }
    }
  }

  bool TakesStrides(const ReduceShape& shape) const override {
    return SplitInMemory(shape).has_value();
  }
  Status Launch(Stream&, const ReduceShape& given, double, const void* x, void* y, void* second,
                void*) const override {
    const AxisSplit shape = SplitInMemory(given).value_or(SplitOf(given));
    if (shape.axis <= 0 || shape.inner <= 0) return OkStatus();
    auto* index = static_cast<int64_t*>(second);
    if (shape.inner == 1 && shape.axis <= kShortAxis) {
      ShortRows(shape, x, y, index);
      return OkStatus();
    }
    const ColumnBlocks blocks(shape.inner, shape.axis);
    const AxisParts parts(shape.axis, kPartElements / blocks.width, kMaxColumnParts);
    const int64_t tasks = shape.outer * blocks.count;
    const auto run = [&](int64_t task, bool split) {
      const int64_t outer = task / blocks.count, column = task % blocks.count * blocks.width;
      const int64_t width = std::min(blocks.width, shape.inner - column);
      const Block block{x, outer * shape.axis * shape.inner + column, shape.inner, width,
                        blocks.group};
      const int64_t to = outer * shape.inner + column;
      InParts(block, parts, split, index + to);
      if (y) Pick(block, index + to, y, to);
    };
    if (tasks < std::min<int64_t>(parts.count, NumThreads()) && !InSerialRegion()) {
      for (int64_t task = 0; task < tasks; ++task) run(task, /*split=*/true);
      return OkStatus();
    }
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / (shape.axis * blocks.width));
    ParallelFor(tasks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) run(task, /*split=*/false);
    });
    return OkStatus();
  }

 private:
  // `width` columns from element `offset` of x on; rows are `inner` elements apart, and `group` of
  // them are one vector.
  struct Block {
    const void* x;
    int64_t offset, inner, width, group;
  };

  // Whether v comes before `best`: beyond it, or the first NaN.
  static bool Beats(C v, C best) {
    return (kMin ? v < best : v > best) || (v != v && best == best);
  }
  // Keeps what comes first of `to` and `other`, which may lie anywhere.
  static void Merge(Found<C>& to, const Found<C>& other) {
    const bool first = to.place < 0 || Beats(other.best, to.best) ||
                       (!Beats(to.best, other.best) && other.place < to.place);
    if (first) to = other;
  }

  // The places of a block's extremes, its parts on all threads if split.
  void InParts(const Block& block, const AxisParts& parts, bool split, int64_t* index) const {
    Found<C> found[kMaxColumnParts][kChunk];
    const auto some = [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        if (block.inner == 1) {
          found[p][0] = Row(block, parts.Begin(p), parts.End(p));
        } else {
          Columns(block, parts.Begin(p), parts.End(p), found[p]);
        }
      }
    };
    split ? ParallelFor(parts.count, 1, some) : some(0, parts.count);
    for (int64_t j = 0; j < block.width; ++j) {
      for (int64_t p = 1; p < parts.count; ++p) Merge(found[0][j], found[p][j]);
      index[j] = found[0][j].place;
    }
  }

  // Finds the first chunk that holds the extreme, then the element in it.
  Found<C> Row(const Block& block, int64_t begin, int64_t end) const {
    C buffer[kChunk];
    Found<C> found{C{}, -1};
    for (int64_t a = begin; a < end; a += kChunk) {
      const int64_t n = std::min(kChunk, end - a);
      const auto top =
          static_cast<C>(row_.row(n, row_source_.Load(block.x, block.offset + a, n, buffer)));
      if (found.place < 0 || Beats(top, found.best)) found = {top, a};
    }
    alignas(8) char bound[8];  // exact: it is an element
    narrow_(1, &found.best, bound);
    const char* row = static_cast<const char*>(block.x) + block.offset * item_;
    found.place = reaching_(row, found.place, end, bound);
    return found;
  }

  // Rows of a few elements are turned tile by tile, and gone through as columns.
  void ShortRows(const AxisSplit& shape, const void* x, void* y, int64_t* index) const {
    const TransposeFunction transpose = FindTranspose(static_cast<size_t>(item_));
    const int64_t axis = shape.axis, row = axis * item_;
    const int64_t most = std::min(kChunk, kShortTile / row / 16 * 16);
    ParallelFor(shape.outer, kElementwiseGrain / axis, [&](int64_t begin, int64_t end) {
      alignas(64) char tile[kShortTile];
      for (int64_t first = begin; first < end; first += most) {
        const int64_t n = std::min(most, end - first);
        transpose(axis, n, static_cast<const char*>(x) + first * row, axis, tile, n);
        const Block block{tile, 0, n, n, 1};
        Found<C> found[kChunk];
        Columns(block, 0, axis, found);
        for (int64_t i = 0; i < n; ++i) index[first + i] = found[i].place;
        if (y) Pick(block, index + first, y, first);
      }
    });
  }

  void Columns(const Block& block, int64_t begin, int64_t end, Found<C>* found) const {
    constexpr int64_t kMostSteps = int64_t{1} << 30;
    for (int64_t j = 0; j < block.width; ++j) found[j].place = -1;
    for (int64_t a = begin; a < end; a += kMostSteps) {
      Lanes(block, a, std::min(end, a + kMostSteps), found);
    }
  }
  // Merges rows [begin, end) into what was found.
  void Lanes(const Block& block, int64_t begin, int64_t end, Found<C>* found) const {
    C buffer[kChunk], best[kChunk];
    StepOf<C> at[kChunk];
    const auto load = [&](int64_t row, int64_t n) {
      return static_cast<const C*>(
          source_.Load(block.x, block.offset + row * block.inner, n, buffer));
    };
    const int64_t lanes = std::min(block.group, end - begin) * block.width;
    std::copy_n(load(begin, lanes), lanes, best);
    std::fill_n(at, lanes, StepOf<C>{0});
    StepOf<C> step = 1;
    for (int64_t a = begin + block.group; a < end; a += block.group) {
      const int64_t n = std::min(block.group, end - a) * block.width;
      step_(n, load(a, n), step++, best, at);
    }
    for (int64_t i = 0; i < lanes; i += block.width) {
      const int64_t first = begin + i / block.width;
      for (int64_t j = 0; j < block.width; ++j) {
        Merge(found[j], {best[i + j], first + at[i + j] * block.group});
      }
    }
  }

  // The elements at the places found.
  void Pick(const Block& block, const int64_t* index, void* y, int64_t to) const {
    const auto* source = static_cast<const char*>(block.x);
    auto* values = static_cast<char*>(y);
    for (int64_t j = 0; j < block.width; ++j) {
      std::memcpy(values + (to + j) * item_,
                  source + (block.offset + index[j] * block.inner + j) * item_,
                  static_cast<size_t>(item_));
    }
  }

  ChunkSource source_, row_source_ = source_;
  int64_t item_;
  ConvertFunction narrow_;
  BeyondFunction reaching_;
  ReduceLoops<C> row_;
  ArgLoop<C> step_ = FindArgLoop<C>(kMin);
};

template <bool kMin>
std::unique_ptr<Reduce> Of(const Reduce::Spec& spec) {
  switch (AccumulateType(spec.in)) {
    case DType::kFloat32:
      return std::make_unique<CpuArgExtreme<float, kMin>>(spec);
    case DType::kFloat64:
      return std::make_unique<CpuArgExtreme<double, kMin>>(spec);
    default:
      break;
  }
  if (SizeOf(spec.in) <= 4) return std::make_unique<CpuArgExtreme<int32_t, kMin>>(spec);
  return std::make_unique<CpuArgExtreme<int64_t, kMin>>(spec);
}

}  // namespace

std::unique_ptr<Reduce> NewArgExtreme(const Reduce::Spec& spec) {
  return spec.op == ReduceKind::kArgMin ? Of<true>(spec) : Of<false>(spec);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
