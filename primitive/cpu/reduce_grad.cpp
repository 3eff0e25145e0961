// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/strided.h"
#include "primitive/reduce.h"
#include "primitive/reduce_grad_math.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/reduce_grad.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_REDUCE_GRAD_ONCE_
#define OFL_PRIMITIVE_CPU_REDUCE_GRAD_ONCE_
namespace oneflow_lite {
// A chunk's n elements, of slices of their own or, where `same`, of one slice.
template <class C>
struct ReduceGradChunk {
  int64_t n;
  bool same;
  const C *dy, *x, *y, *extra;
  const int64_t* zeros;  // of kProd
  C parameter;
};
template <class C>
using ReduceGradLoop = void (*)(const ReduceGradChunk<C>& chunk, C* out);
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// dy exp(x - extra), as ReduceGradOf has it.
template <class C>
void ExpSlopes(const ReduceGradChunk<C>& c, C* out) {
  const hn::ScalableTag<C> d;
  const auto zero = hn::Zero(d), all_dy = hn::Set(d, c.dy[0]), all_extra = hn::Set(d, c.extra[0]);
  ForEachVector(d, static_cast<size_t>(c.n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto dy = c.same ? all_dy : LoadUpTo(d, c.dy + i, count, zero);
    const auto extra = c.same ? all_extra : LoadUpTo(d, c.extra + i, count, zero);
    const auto x = LoadUpTo(d, c.x + i, count, zero);
    StoreUpTo(hn::Mul(dy, ExpOf(d, hn::Sub(x, extra))), d, out + i, count);
  });
}

// Any other, vectorised by the compiler.
template <ReduceGradKind kOp, bool kSame, class C>
void Slopes(const ReduceGradChunk<C>& c, C* out) {
  const C *dy = c.dy, *x = c.x, *y = c.y, *extra = c.extra;
#pragma GCC ivdep
  for (int64_t i = 0; i < c.n; ++i) {
    const int64_t s = kSame ? 0 : i;
    int64_t zeros = 0;
    if constexpr (kOp == ReduceGradKind::kProd) zeros = c.zeros[s];
    out[i] = ReduceGradOf<kOp>(dy[s], x[i], y[s], extra[s], zeros, c.parameter);
  }
}
// dy x / y, 0 where y is 0: of the 2-norm.
template <class C>
void Shares(const ReduceGradChunk<C>& c, C* out) {
  const hn::ScalableTag<C> d;
  const auto zero = hn::Zero(d), all_dy = hn::Set(d, c.dy[0]), all_y = hn::Set(d, c.y[0]);
  ForEachVector(d, static_cast<size_t>(c.n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto dy = c.same ? all_dy : LoadUpTo(d, c.dy + i, count, zero);
    const auto y = c.same ? all_y : LoadUpTo(d, c.y + i, count, zero);
    const auto share = hn::Div(LoadUpTo(d, c.x + i, count, zero), y);
    const auto slope = hn::Mul(dy, hn::IfThenZeroElse(hn::Eq(y, zero), share));
    StoreUpTo(slope, d, out + i, count);
  });
}
template <class C>
void NormSlopes(const ReduceGradChunk<C>& c, C* out) {
  if (c.parameter == 2) return Shares(c, out);
  return c.same ? Slopes<ReduceGradKind::kNorm, true>(c, out)
                : Slopes<ReduceGradKind::kNorm, false>(c, out);
}

template <class C>
ReduceGradLoop<C> LoopOf(ReduceGradKind op, bool same) {
  if (op == ReduceGradKind::kLogSumExp) return &ExpSlopes<C>;
  if (op == ReduceGradKind::kNorm) return &NormSlopes<C>;
  return VisitReduceGrad(op, [&](auto kind) -> ReduceGradLoop<C> {
    return same ? &Slopes<decltype(kind)::value, true, C>
                : &Slopes<decltype(kind)::value, false, C>;
  });
}

}  // namespace

ReduceGradLoop<float> FloatLoop(ReduceGradKind op, bool same) { return LoopOf<float>(op, same); }
ReduceGradLoop<double> DoubleLoop(ReduceGradKind op, bool same) { return LoopOf<double>(op, same); }

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FloatLoop);
HWY_EXPORT(DoubleLoop);

template <class C>
ReduceGradLoop<C> FindLoop(ReduceGradKind op, bool same) {
  if constexpr (std::is_same_v<C, float>) {
    return HWY_DYNAMIC_DISPATCH(FloatLoop)(op, same);
  } else {
    return HWY_DYNAMIC_DISPATCH(DoubleLoop)(op, same);
  }
}

// Chunks of elements whose slice has the same operands (inner = 1), or whose operands lie in a row.
// Of runs of a few elements several share a chunk, whose operands are spread over it.
template <class C>
class CpuReduceGrad final : public ReduceGrad {
 public:
  explicit CpuReduceGrad(const Spec& spec)
      : loops_{FindLoop<C>(spec.op, false), FindLoop<C>(spec.op, true)},
        item_(static_cast<int64_t>(SizeOf(spec.dtype))),
        load_(FindConvert(spec.dtype, DTypeOf<C>())),
        store_(FindConvert(DTypeOf<C>(), spec.dtype)) {}

  Status Launch(Stream&, const AxisSplit& shape, double parameter, const Operands& operands,
                void* dx) const override {
    const int64_t run = shape.inner == 1 ? shape.axis : shape.inner;
    const int64_t runs = shape.outer * (shape.inner == 1 ? 1 : shape.axis);
    if (run == 0 || runs == 0) return OkStatus();
    const Task task{shape, parameter, operands, dx, run};
    if (run < kShort) {
      const int64_t most = kChunk / run;
      ParallelFor((runs + most - 1) / most, kElementwiseGrain / kChunk,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      ShortRuns(task, i * most, std::min(most, runs - i * most));
                    }
                  });
      return OkStatus();
    }
    const int64_t chunks = (run + kChunk - 1) / kChunk, grain = kElementwiseGrain * chunks / run;
    ParallelFor(runs * chunks, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % chunks * kChunk;
        Piece(task, i / chunks, first, std::min(kChunk, run - first));
      }
    });
    return OkStatus();
  }

 private:
  static constexpr int64_t kShort = 64;

  struct Task {
    const AxisSplit& shape;
    double parameter;
    const Operands& o;
    void* dx;
    int64_t run;  // elements that lie in a row and are of one slice, or of neighbouring ones

    bool rows() const { return shape.inner == 1; }
    // Of the first element of run r.
    int64_t slice(int64_t r) const { return rows() ? r : r / shape.axis * shape.inner; }
  };
  // The operands of a chunk of one slice, or of as many as it has elements.
  struct OfSlices {
    alignas(64) C dy[kChunk + kRepeatSlack], y[kChunk + kRepeatSlack], extra[kChunk + kRepeatSlack];
    int64_t zeros[kChunk + kRepeatSlack];
  };

  // The n elements of run r from `begin` on.
  void Piece(const Task& t, int64_t r, int64_t begin, int64_t n) const {
    const int64_t slices = t.rows() ? 1 : n, slice = t.slice(r) + (t.rows() ? 0 : begin);
    OfSlices of;
    Read(t, slice, slices, 0, of);
    Compute(t, r * t.run + begin, n, t.rows(), of);
  }
  // All of `count` runs from r on.
  void ShortRuns(const Task& t, int64_t r, int64_t count) const {
    OfSlices of;
    if (t.rows()) {
      OfSlices each;
      Read(t, r, count, 0, each);
      const auto spread = [&](bool there, const auto* from, auto* to) {
        if (there) FindRepeatEach(sizeof *from)(count, t.run, from, 1, to);
      };
      spread(true, each.dy, of.dy);
      spread(t.o.y, each.y, of.y);
      spread(t.o.extra, each.extra, of.extra);
      spread(t.o.zeros, each.zeros, of.zeros);
    } else {
      for (int64_t i = 0; i < count; ++i) Read(t, t.slice(r + i), t.run, i * t.run, of);
    }
    Compute(t, r * t.run, count * t.run, /*same=*/false, of);
  }
  // The operands of n slices, to `at` and behind it.
  void Read(const Task& t, int64_t slice, int64_t n, int64_t at, OfSlices& of) const {
    Load(t.o.dy, slice, n, of.dy + at);
    if (t.o.y) Load(t.o.y, slice, n, of.y + at);
    if (t.o.extra) std::copy_n(static_cast<const C*>(t.o.extra) + slice, n, of.extra + at);
    if (t.o.zeros) std::copy_n(t.o.zeros + slice, n, of.zeros + at);
  }
  // n elements from `first` on. What the kind does without is not read.
  void Compute(const Task& t, int64_t first, int64_t n, bool same, const OfSlices& of) const {
    C x[kChunk], result[kChunk];
    Load(t.o.x, first, n, x);
    const auto parameter = static_cast<C>(t.parameter);
    loops_[same]({n, same, of.dy, x, of.y, of.extra, of.zeros, parameter}, result);
    store_(n, result, static_cast<char*>(t.dx) + first * item_);
  }

  void Load(const void* from, int64_t offset, int64_t n, C* to) const {
    load_(n, static_cast<const char*>(from) + offset * item_, to);
  }

  ReduceGradLoop<C> loops_[2];  // of slices of their own, of one slice
  int64_t item_;
  ConvertFunction load_, store_;
};

StatusOr<std::unique_ptr<ReduceGrad>> NewReduceGrad(const ReduceGrad::Spec& spec) {
  if (!IsFloating(spec.dtype)) {
    return NoPrimitiveFor(ReduceGrad::kName, DeviceType::kCPU, spec.dtype);
  }
  if (spec.dtype == DType::kFloat64) return std::make_unique<CpuReduceGrad<double>>(spec);
  return std::make_unique<CpuReduceGrad<float>>(spec);
}

const bool registered = RegisterPrimitive<ReduceGrad>(DeviceType::kCPU, &NewReduceGrad);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
