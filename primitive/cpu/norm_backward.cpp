// SPDX-License-Identifier: Apache-2.0
//
// Gradients of layer_norm and rms_norm: a row of x (or y) and dy is read once for its sums, and
// from the cache for dx and for what it adds to dweight and dbias.
#include "primitive/cpu/norm_backward.h"

#include <utility>

#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/norm_backward.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// One row as vectors of the compute type; its columns begin at `begin`.
template <class T, bool kCentred, bool kFromY>
struct Row {
  using C = ComputeOf<T>;
  using D = TagOf<T>;
  using V = hn::Vec<D>;

  HWY_INLINE Row(const NormBackwardTask& t, int64_t row, int64_t begin)
      : value(kFromY ? RowOf<T>(t.args.y, row, t.shape.cols) + begin
                     : RowOf<T>(t.args.x, row, t.shape.stride()) + begin),
        dy(RowOf<T>(t.args.dy, row, t.shape.cols) + begin),
        weight(Column(t.args.weight, begin)),
        bias(Column(t.args.bias, begin)),
        inverse(Column(t.inverse, begin)),
        mean(kCentred && !kFromY ? static_cast<const C*>(t.args.mean)[row] : C(0)) {}

  static HWY_INLINE const C* Column(const void* p, int64_t begin) {
    return p ? static_cast<const C*>(p) + begin : nullptr;
  }

  // d of RowSums. Lanes beyond count hold 0.
  HWY_INLINE V Deviation(D d, size_t i, size_t count) const {
    const auto zero = hn::Zero(d);
    if constexpr (kFromY) {
      auto v = LoadUpTo(d, value + i, count, zero);
      if (kCentred && bias) v = hn::Sub(v, LoadUpTo(d, bias + i, count, zero));
      return inverse ? hn::Mul(v, LoadUpTo(d, inverse + i, count, zero)) : v;
    } else if constexpr (kCentred) {
      const auto centre = hn::Set(d, mean);
      return hn::Sub(LoadUpTo(d, value + i, count, centre), centre);
    } else {
      return LoadUpTo(d, value + i, count, zero);
    }
  }
  HWY_INLINE V Gradient(D d, size_t i, size_t count) const {
    return LoadUpTo(d, dy + i, count, hn::Zero(d));
  }
  HWY_INLINE V Weighted(D d, V gradient, size_t i, size_t count) const {
    return weight ? hn::Mul(gradient, LoadUpTo(d, weight + i, count, hn::Zero(d))) : gradient;
  }

  const T* value;  // x or y
  const T* dy;
  const C *weight, *bias, *inverse;
  C mean;
};

// The sum of d, in double from x on. Of one or two rows a weight's gradient is little more than one
// x_hat, which may be as small as a rounding error of a sum in float, or of x - mean.
template <class T>
double ExactSum(const Row<T, true, false>& r, size_t n) {
  const TagOf<T> d;
  double total = 0;
  if constexpr (sizeof(ComputeOf<T>) == 4) {
    const hn::Repartition<double, TagOf<T>> wide;
    const hn::Half<TagOf<T>> half;
    const auto pad = hn::Set(d, r.mean);
    const auto mean = hn::Set(wide, static_cast<double>(r.mean));
    auto low = hn::Zero(wide), high = hn::Zero(wide);
    ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
      const auto x = LoadUpTo(d, r.value + i, count, pad);
      low = hn::Add(low, hn::Sub(hn::PromoteTo(wide, hn::LowerHalf(half, x)), mean));
      high = hn::Add(high, hn::Sub(hn::PromoteTo(wide, hn::UpperHalf(half, x)), mean));
    });
    total = hn::GetLane(hn::SumOfLanes(wide, hn::Add(low, high)));
  }
  return total;
}
constexpr int64_t kExactRows = 2;

template <class T, bool kCentred, bool kFromY>
RowSums Sums(const NormBackwardTask& t, int64_t row, int64_t begin, int64_t n) {
  const TagOf<T> d;
  const Row<T, kCentred, kFromY> r(t, row, begin);
  constexpr int kSums = !kCentred ? 1 : kFromY ? 2 : 3;
  const int64_t next = kFromY ? t.shape.cols : t.shape.stride();
  double total[kSums];
  SumRow(d, n, total, [&](size_t i, size_t count, auto slot, auto& s) OFL_SIMD_LAMBDA {
    hwy::Prefetch(r.value + next + i);
    const auto v = r.Deviation(d, i, count);
    const auto g = r.Weighted(d, r.Gradient(d, i, count), i, count);
    s.of[0][slot] = hn::MulAdd(g, v, s.of[0][slot]);
    if constexpr (kSums > 1) s.of[1][slot] = hn::Add(s.of[1][slot], g);
    if constexpr (kSums > 2) s.of[2][slot] = hn::Add(s.of[2][slot], v);
  });
  RowSums sums{0, total[0], 0};
  if constexpr (kSums > 1) sums.g = total[1];
  if constexpr (kSums > 2) {
    const bool exact = t.shape.rows <= kExactRows && sizeof(ComputeOf<T>) == 4;
    sums.d = exact ? ExactSum<T>(r, n) : total[2];
  }
  return sums;
}

// The mean of d is what rounding took from the mean that was given.
template <class T, bool kCentred, bool kFromY>
RowGradient Finish(const NormBackwardTask& t, int64_t row, RowSums s) {
  using C = ComputeOf<T>;
  const double share = 1 / static_cast<double>(t.shape.cols);
  RowGradient r{};
  r.rstd = static_cast<const C*>(t.args.rstd)[row];
  r.scale = kFromY ? 1 : r.rstd;
  r.shift = s.d * share;
  r.mean_g = s.g * share;
  r.mean_gx = r.scale * (s.gd - r.shift * s.g) * share;
  return r;
}

// stream(i) vector by vector for whole lines, put(i, count) for what is around them in [0, n): both
// ends by one loop, as `put` is compiled for each of its calls.
template <class D, class Put, class Stream>
HWY_INLINE void ForLines(D d, size_t n, WholeLines lines, Put put, Stream stream) {
  size_t i = lines.begin;
  for (; i + hn::Lanes(d) <= lines.end; i += hn::Lanes(d)) stream(i);
  for (size_t end = n; end > 0; i = 0, end = std::exchange(lines.begin, 0)) {
    ForEachVector(d, end - i, [&](size_t k, size_t count) OFL_SIMD_LAMBDA { put(i + k, count); });
  }
}

template <class T, bool kCentred, bool kFromY>
void Apply(const NormBackwardTask& t, int64_t row, RowGradient gradient, const ColumnRange& out,
           bool stream) {
  using C = ComputeOf<T>;
  const TagOf<T> d;
  const Row<T, kCentred, kFromY> r(t, row, out.begin);
  const auto shift = hn::Set(d, static_cast<C>(gradient.shift));
  const auto scale = hn::Set(d, static_cast<C>(gradient.scale));
  const auto rstd = hn::Set(d, static_cast<C>(gradient.rstd));
  const auto mean_g = hn::Set(d, static_cast<C>(gradient.mean_g));
  const auto mean_gx = hn::Set(d, static_cast<C>(gradient.mean_gx));
  const auto zero = hn::Zero(d);
  C* dweight = out.dweight ? static_cast<C*>(out.dweight) + out.begin : nullptr;
  C* dbias = out.dbias ? static_cast<C*>(out.dbias) + out.begin : nullptr;
  const T* dsum = t.args.dsum ? RowOf<T>(t.args.dsum, row, t.shape.cols) + out.begin : nullptr;

  const auto one_vector = [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    hwy::Prefetch(r.dy + t.shape.cols + i);
    auto x_hat = r.Deviation(d, i, count);
    if constexpr (kCentred && !kFromY) x_hat = hn::Sub(x_hat, shift);
    if constexpr (!kFromY) x_hat = hn::Mul(x_hat, scale);
    const auto dy = r.Gradient(d, i, count);
    if (dweight) {
      const auto sum = hn::MulAdd(dy, x_hat, LoadUpTo(d, dweight + i, count, zero));
      StoreUpTo(sum, d, dweight + i, count);
    }
    if (kCentred && dbias) {
      StoreUpTo(hn::Add(dy, LoadUpTo(d, dbias + i, count, zero)), d, dbias + i, count);
    }
    // In this order: a compiler may fuse dy * weight - mean_g, which is then not 0 where it should
    // be.
    auto dx = hn::NegMulAdd(x_hat, mean_gx, r.Weighted(d, dy, i, count));
    if constexpr (kCentred) dx = hn::Sub(dx, mean_g);
    return dsum ? hn::MulAdd(dx, rstd, LoadUpTo(d, dsum + i, count, zero)) : hn::Mul(dx, rstd);
  };
  T* dx = t.args.dx ? RowOf<T>(t.args.dx, row, t.shape.cols) + out.begin : nullptr;
  const auto put = [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto v = one_vector(i, count);
    if (dx) StoreUpTo(v, d, dx + i, count);
  };
  if constexpr (kFromY) {
    ForEachVector(d, out.n, put);
  } else {
    const WholeLines lines = stream ? FindWholeLines(dx, out.n, hn::Lanes(d)) : WholeLines{0, 0};
    ForLines(d, out.n, lines, put,
             [&](size_t i) OFL_SIMD_LAMBDA { StreamTo(one_vector(i, hn::Lanes(d)), d, dx + i); });
  }
}

template <class C>
void Merge(int64_t n, int64_t count, int64_t stride, const void* in_data, void* out_data) {
  const TagOf<C> d;
  const auto zero = hn::Zero(d);
  const C* in = static_cast<const C*>(in_data);
  C* out = static_cast<C*>(out_data);
  ForEachVector(d, n, [&](size_t i, size_t lanes) OFL_SIMD_LAMBDA {
    auto sum = zero, lost = zero;
    for (int64_t j = 0; j < count; ++j) {
      const auto added = hn::Sub(LoadUpTo(d, in + j * stride + i, lanes, zero), lost);
      const auto total = hn::Add(sum, added);
      lost = hn::Sub(hn::Sub(total, sum), added);
      sum = total;
    }
    StoreUpTo(sum, d, out + i, lanes);
  });
}

template <class C>
void Invert(int64_t n, const void* weight_data, void* inverse_data) {
  const TagOf<C> d;
  const auto one = hn::Set(d, C(1));
  const auto least = hn::Set(d, static_cast<C>(kWeightClamp));
  const C* weight = static_cast<const C*>(weight_data);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto w = LoadUpTo(d, weight + i, count, one);
    const auto far = hn::Ge(hn::Abs(w), least);
    const auto clamped = hn::IfThenElse(far, w, hn::CopySign(least, w));
    StoreUpTo(hn::Div(one, clamped), d, static_cast<C*>(inverse_data) + i, count);
  });
}

void Flush() { hwy::FlushStream(); }

template <class T, bool kCentred, bool kFromY>
constexpr NormBackwardKernels kKernels = {&Sums<T, kCentred, kFromY>,  &Finish<T, kCentred, kFromY>,
                                          &Apply<T, kCentred, kFromY>, &Flush,
                                          &Merge<ComputeOf<T>>,        &Invert<ComputeOf<T>>};

}  // namespace

const NormBackwardKernels* GetNormBackwardKernels(DType dtype, bool centred, bool from_y) {
  return VisitFloating(dtype, [&]<class T>(Tag<T>) {
    return centred  ? from_y ? &kKernels<T, true, true> : &kKernels<T, true, false>
            : from_y ? &kKernels<T, false, true>
                    : &kKernels<T, false, false>;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(GetNormBackwardKernels);

const NormBackwardKernels& FindNormBackwardKernels(DType dtype, bool centred, bool from_y) {
  return *HWY_DYNAMIC_DISPATCH(GetNormBackwardKernels)(dtype, centred, from_y);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
