// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/reduce_loops.h"

#include <bit>
#include <cmath>

#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/reduce_loops.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// A fold of vectors: Of prepares an element, Join adds a prepared one to what there is.
struct SumFold {
  static constexpr int kStart = 0;
  template <class D>
  static HWY_INLINE hn::Vec<D> Of(D, hn::Vec<D> x) {
    return x;
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> Join(D, hn::Vec<D> s, hn::Vec<D> x) {
    return hn::Add(s, x);
  }
  template <class S>
  static S JoinLanes(S s, S x) {
    return s + x;
  }
};
struct NanSumFold : SumFold {
  template <class D>
  static HWY_INLINE hn::Vec<D> Of(D, hn::Vec<D> x) {
    return hn::IfThenZeroElse(hn::IsNaN(x), x);
  }
};
struct AbsSumFold : SumFold {
  template <class D>
  static HWY_INLINE hn::Vec<D> Of(D, hn::Vec<D> x) {
    return hn::Abs(x);
  }
};
struct SquaresFold : SumFold {
  template <class D>
  static HWY_INLINE hn::Vec<D> Of(D, hn::Vec<D> x) {
    return hn::Mul(x, x);
  }
};

struct ProdFold {
  static constexpr int kStart = 1;
  template <class D>
  static HWY_INLINE hn::Vec<D> Of(D, hn::Vec<D> x) {
    return x;
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> Join(D d, hn::Vec<D> p, hn::Vec<D> x) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::Mul(p, x);
    } else {  // no instruction of AVX2 multiplies 64 bits
      using T = hn::TFromD<D>;
      HWY_ALIGN T a[hn::MaxLanes(D())], b[hn::MaxLanes(D())];
      hn::Store(p, d, a);
      hn::Store(x, d, b);
      for (size_t i = 0; i < hn::Lanes(d); ++i) a[i] = JoinLanes(a[i], b[i]);
      return hn::Load(d, a);
    }
  }
  static double JoinLanes(double p, double x) { return p * x; }
  static int64_t JoinLanes(int64_t p, int64_t x) {
    return static_cast<int64_t>(static_cast<uint64_t>(p) * static_cast<uint64_t>(x));
  }
};

// Of what is not 0.
struct NonzeroProdFold : ProdFold {
  template <class D>
  static HWY_INLINE hn::Vec<D> Of(D d, hn::Vec<D> x) {
    return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, hn::TFromD<D>{1}), x);
  }
};

template <bool kMin>
struct ExtremeFold {
  static constexpr bool kIsMin = kMin;
  template <class D>
  static HWY_INLINE hn::Vec<D> Of(D, hn::Vec<D> x) {
    return x;
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> Join(D, hn::Vec<D> m, hn::Vec<D> x) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      // Where one is NaN, x86 gives the second one, and others give NaN: one in m stays.
      const auto beyond = kMin ? hn::Min(x, m) : hn::Max(x, m);
      return hn::IfThenElse(hn::IsNaN(x), x, beyond);
    } else {
      return kMin ? hn::Min(m, x) : hn::Max(m, x);
    }
  }
  template <class S>
  static S JoinLanes(S m, S x) {
    return (kMin ? x < m : x > m) || x != x ? x : m;
  }
};
template <bool kMin>
struct AbsExtremeFold : ExtremeFold<kMin> {
  template <class D>
  static HWY_INLINE hn::Vec<D> Of(D, hn::Vec<D> x) {
    return hn::Abs(x);
  }
};

// The first element where a fold has no neutral one.
template <class F, class D, class T>
HWY_INLINE hn::Vec<D> StartOf(D d, const T* x) {
  if constexpr (requires { F::kStart; }) {
    return hn::Set(d, static_cast<hn::TFromD<D>>(F::kStart));
  } else {
    return hn::Set(d, static_cast<hn::TFromD<D>>(x[0]));
  }
}

// Vectors of C over elements of T. Floats become four doubles at a time: eight take more than twice
// as long on Zen 4.
template <class C, class T>
using FoldTag = hn::CappedTag<C, (std::is_same_v<C, double> && std::is_same_v<T, float>) ? 4 : 64>;

// The elements widened, to double through float.
template <class D, class T>
HWY_INLINE hn::Vec<D> Widened(D d, const T* x, size_t count, hn::Vec<D> pad) {
  if constexpr (sizeof(hn::TFromD<D>) == 8 && sizeof(T) < 8) {
    const hn::Rebind<float, D> single;
    return hn::PromoteTo(d, LoadUpTo(single, x, count, hn::DemoteTo(single, pad)));
  } else {
    return LoadUpTo(d, x, count, pad);
  }
}

template <class F, class D>
HWY_INLINE hn::Vec<D> JoinFour(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c, hn::Vec<D> e) {
  return F::Join(d, F::Join(d, a, b), F::Join(d, c, e));
}

// The largest (smallest) of floats: instructions that lose a NaN, and whether there was one.
template <bool kMin, class F, class C, class T>
double FoldExtreme(int64_t n, const T* x) {
  const hn::ScalableTag<C> d;
  const auto first = StartOf<F>(d, x), start = F::Of(d, first);
  const auto beyond = [](auto a, auto b)
                          OFL_SIMD_LAMBDA { return kMin ? hn::Min(a, b) : hn::Max(a, b); };
  hn::Vec<decltype(d)> s[4] = {start, start, start, start};
  hn::Mask<decltype(d)> nan[4] = {hn::IsNaN(start), hn::IsNaN(start), hn::IsNaN(start),
                                  hn::IsNaN(start)};
  ForVectors(d, n, [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
    const auto v = F::Of(d, Widened(d, x + i, count, first));
    s[slot] = beyond(v, s[slot]);
    nan[slot] = hn::Or(nan[slot], hn::IsNaN(v));
  });
  if (!hn::AllFalse(d, hn::Or(hn::Or(nan[0], nan[1]), hn::Or(nan[2], nan[3])))) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const auto all = beyond(beyond(s[0], s[1]), beyond(s[2], s[3]));
  return hn::GetLane(kMin ? hn::MinOfLanes(d, all) : hn::MaxOfLanes(d, all));
}

// A vector's lanes as one, in halves: a chain of them all would wait for each.
template <class F, class D, class C = hn::TFromD<D>>
HWY_INLINE C JoinedLanes(D d, hn::Vec<D> v) {
  constexpr bool kByVectors = hwy::IsFloat<C>() || requires { F::kIsMin; };
  if constexpr (sizeof(C) * hn::MaxLanes(D()) > 16 && kByVectors) {
    const hn::Half<D> half;
    const auto halves = F::Join(half, hn::LowerHalf(half, v), hn::UpperHalf(half, v));
    return JoinedLanes<F>(half, halves);
  }
  HWY_ALIGN C lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
#pragma GCC unroll 4
  for (size_t half = hn::MaxLanes(D()) / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
    for (size_t i = 0; i < half; ++i) lanes[i] = F::JoinLanes(lanes[i], lanes[i + half]);
  }
  return lanes[0];
}

// Both extremes of floats in one pass, or of integers.
template <class C, class T>
ExtremesOf<C> FoldExtremes(int64_t n, const void* data) {
  const hn::ScalableTag<C> d;
  const T* x = static_cast<const T*>(data);
  const auto first = hn::Set(d, static_cast<C>(x[0]));
  hn::Vec<decltype(d)> low[4] = {first, first, first, first},
                       high[4] = {first, first, first, first};
  auto nan = hn::Lt(first, first);  // of none
  ForVectors(d, static_cast<size_t>(n), [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
    const auto v = Widened(d, x + i, count, first);
    low[slot] = hn::Min(v, low[slot]);
    high[slot] = hn::Max(v, high[slot]);
    if constexpr (hwy::IsFloat<C>()) nan = hn::Or(nan, hn::IsNaN(v));
  });
  if (hwy::IsFloat<C>() && !hn::AllFalse(d, nan)) {
    constexpr auto kNan = std::numeric_limits<double>::quiet_NaN();
    return {static_cast<SumOf<C>>(kNan), static_cast<SumOf<C>>(kNan)};
  }
  const auto least = hn::Min(hn::Min(low[0], low[1]), hn::Min(low[2], low[3]));
  const auto most = hn::Max(hn::Max(high[0], high[1]), hn::Max(high[2], high[3]));
  return {JoinedLanes<ExtremeFold<true>>(d, least), JoinedLanes<ExtremeFold<false>>(d, most)};
}

// Eight results of vectors, as one waits for the one before it, joined into one.
template <class F, class D, class T>
HWY_INLINE hn::Vec<D> FoldInEight(D d, size_t n, const T* x) {
  constexpr int kTurn = 8;
  const size_t lanes = hn::Lanes(d);
  const auto start = StartOf<F>(d, x);
  const auto at = [&](size_t i, size_t count)
                      OFL_SIMD_LAMBDA { return F::Of(d, Widened(d, x + i, count, start)); };
  hn::Vec<D> s[kTurn];
#pragma GCC unroll 8
  for (auto& some : s) some = start;
  size_t i = 0;
  for (; i + kTurn * lanes <= n; i += kTurn * lanes) {
#pragma GCC unroll 8
    for (size_t k = 0; k < kTurn; ++k) s[k] = F::Join(d, s[k], at(i + k * lanes, lanes));
  }
  for (; i + lanes <= n; i += lanes) s[0] = F::Join(d, s[0], at(i, lanes));
  if (i < n) s[1] = F::Join(d, s[1], at(i, n - i));
  return F::Join(d, JoinFour<F>(d, s[0], s[1], s[2], s[3]), JoinFour<F>(d, s[4], s[5], s[6], s[7]));
}

template <class F, class C, class T>
HWY_INLINE SumOf<C> FoldRow(int64_t n, const void* data) {
  const hn::ScalableTag<C> d;
  const T* x = static_cast<const T*>(data);
  if constexpr (std::is_floating_point_v<C> && requires { F::kIsMin; }) {
    return FoldExtreme<F::kIsMin, F, C>(n, x);
  } else if constexpr (std::is_same_v<T, float> && std::is_base_of_v<SumFold, F>) {
    // Loads of half a line: on Zen 4 memory beyond the caches comes a tenth faster.
    const hn::CappedTag<float, 8> half;
    const auto all = FoldInEight<F>(half, static_cast<size_t>(n), x);
    return hn::GetLane(hn::SumOfLanes(half, all));
  } else {
    const auto first = StartOf<F>(d, x), start = F::Of(d, first);
    hn::Vec<decltype(d)> s[4] = {start, start, start, start};
    ForVectors(d, n, [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
      s[slot] = F::Join(d, s[slot], F::Of(d, Widened(d, x + i, count, first)));
    });
    const auto all = JoinFour<F>(d, s[0], s[1], s[2], s[3]);
    if constexpr (std::is_base_of_v<SumFold, F>) {
      return hn::GetLane(hn::SumOfLanes(d, all));
    } else {
      return static_cast<SumOf<C>>(JoinedLanes<F>(d, all));
    }
  }
}

// a * b, or a zero where that has no normal double: what makes a denormal one takes some 75 cycles
// on Zen 4, and float has none of them.
HWY_INLINE double ProductOf(double a, double b) {
  const auto exponent = [](double v) { return std::bit_cast<uint64_t>(v) >> 52 & 0x7ff; };
  if (exponent(a) + exponent(b) > 1023) return a * b;
  return std::signbit(a) == std::signbit(b) ? 0.0 : -0.0;
}

// So many numbers of this size have a normal product.
constexpr double LeastFactor(size_t count) {
  double least = 1;
  for (size_t i = 0; i < 1000 / count; ++i) least /= 2;
  return least;
}

// The product of floats in double, in which it seldom leaves the range on the way.
template <class T>
HWY_INLINE double FoldWidenedProduct(int64_t n, const void* x) {
  const FoldTag<double, T> d;
  const auto lanes = FoldInEight<ProdFold>(d, static_cast<size_t>(n), static_cast<const T*>(x));
  constexpr double kLeast = LeastFactor(hn::MaxLanes(d));
  if (hn::AllTrue(d, hn::Ge(hn::Abs(lanes), hn::Set(d, kLeast)))) {
    return JoinedLanes<ProdFold>(d, lanes);
  }
  HWY_ALIGN double all[hn::MaxLanes(d)];
  hn::Store(lanes, d, all);
  for (size_t k = 1; k < hn::Lanes(d); ++k) all[0] = ProductOf(all[0], all[k]);
  return all[0];
}

NonzeroProductOf FoldNonzero(int64_t n, const double* x) {
  const hn::ScalableTag<double> d;
  const hn::RebindToSigned<decltype(d)> counts;
  const auto zero = hn::Zero(d), one = hn::Set(d, 1.0);
  hn::Vec<decltype(d)> p[4] = {one, one, one, one};
  auto zeros = hn::Zero(counts);
  ForVectors(d, static_cast<size_t>(n), [&](size_t i, size_t count, auto slot) OFL_SIMD_LAMBDA {
    const auto v = LoadUpTo(d, x + i, count, one);
    const auto is_zero = hn::Eq(v, zero);
    zeros = hn::Sub(zeros, hn::VecFromMask(counts, hn::RebindMask(counts, is_zero)));
    p[slot] = hn::Mul(p[slot], hn::IfThenElse(is_zero, one, v));
  });
  const auto all = JoinFour<ProdFold>(d, p[0], p[1], p[2], p[3]);
  return {JoinedLanes<ProdFold>(d, all), hn::GetLane(hn::SumOfLanes(counts, zeros))};
}

// A zero in place of a denormal number: some fifty products of it would be denormal too, at 75
// cycles and more.
template <class D>
HWY_INLINE hn::Vec<D> Normal(D d, hn::Vec<D> v) {
  const auto least = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::min());
  return hn::IfThenElse(hn::Lt(hn::Abs(v), least), hn::CopySign(hn::Zero(d), v), v);
}

// Four vectors of columns together, as a row's join waits for the one before it.
template <class F, class C, class T>
void FoldColumns(int64_t rows, int64_t n, const void* data, int64_t stride, const C* start, C* to) {
  const FoldTag<C, T> d;
  const T* x = static_cast<const T*>(data);
  const auto zero = hn::Zero(d), first = start ? hn::Set(d, *start) : zero;
  const size_t lanes = hn::Lanes(d), end = static_cast<size_t>(n);
  const auto fold = [&](size_t i, size_t count, auto vectors) OFL_SIMD_LAMBDA {
    constexpr size_t kVectors = decltype(vectors)::value;
    hn::Vec<decltype(d)> s[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      s[v] = start ? first : LoadUpTo(d, to + i + v * lanes, count, zero);
    }
    const T* row = x + i;
    for (int64_t r = 0; r < rows; ++r, row += stride) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        s[v] = F::Join(d, s[v], F::Of(d, Widened(d, row + v * lanes, count, zero)));
      }
    }
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      if constexpr (std::is_base_of_v<ProdFold, F> && sizeof(T) < sizeof(C)) s[v] = Normal(d, s[v]);
      StoreUpTo(s[v], d, to + i + v * lanes, count);
    }
  };
  size_t i = 0;
  for (; i + 4 * lanes <= end; i += 4 * lanes) fold(i, lanes, Slot<4>());
  for (; i + lanes <= end; i += lanes) fold(i, lanes, Slot<1>());
  if (i < end) fold(i, end - i, Slot<1>());
}

// 1 for a byte that is not 0: a bool that others made of bytes may be any.
template <class D>
HWY_INLINE hn::Vec<D> TruthOf(D d, const uint8_t* x) {
  return hn::Min(hn::LoadU(d, x), hn::Set(d, uint8_t{1}));
}

HWY_INLINE int64_t CountRow(int64_t n, const void* data) {
  const uint8_t* x = static_cast<const uint8_t*>(data);
  const hn::ScalableTag<uint8_t> d;
  const hn::Repartition<uint64_t, decltype(d)> sums;
  auto s = hn::Zero(sums);
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= static_cast<size_t>(n); i += lanes) {
    s = hn::Add(s, hn::SumsOf8(TruthOf(d, x + i)));
  }
  auto total = static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(sums, s)));
  for (; i < static_cast<size_t>(n); ++i) total += x[i] != 0;
  return total;
}

void CountColumns(int64_t rows, int64_t n, const void* data, int64_t stride, const uint8_t* start,
                  uint8_t* to) {
  const uint8_t* x = static_cast<const uint8_t*>(data);
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto s = start ? hn::Set(d, *start) : hn::LoadU(d, to + i);
    for (int64_t r = 0; r < rows; ++r) s = hn::Add(s, TruthOf(d, x + r * stride + i));
    hn::StoreU(s, d, to + i);
  }
  for (; i < n; ++i) {
    int count = start ? *start : to[i];
    for (int64_t r = 0; r < rows; ++r) count += x[r * stride + i] != 0;
    to[i] = static_cast<uint8_t>(count);
  }
}

// As ReduceLoops has it; kRow is of one row.
template <class T, class S, S (*kRow)(int64_t, const void*)>
void FoldRows(int64_t rows, int64_t n, const void* data, int64_t stride, S* totals) {
  const T* x = static_cast<const T*>(data);
  for (int64_t r = 0; r < rows; ++r) totals[r] = kRow(n, x + r * stride);
}

template <class F, class C, class T = C>
ReduceLoops<C> LoopsOf() {
  return {&FoldRows<T, SumOf<C>, &FoldRow<F, C, T>>, &FoldColumns<F, C, T>};
}
template <class T>
ReduceLoops<double> ProductLoops() {
  return {&FoldRows<T, double, &FoldWidenedProduct<T>>, &FoldColumns<ProdFold, double, T>};
}
template <class T>
ReduceLoops<float> ShortLoops(Fold fold) {
  switch (fold) {
    case Fold::kMax:
      return LoopsOf<ExtremeFold<false>, float, T>();
    case Fold::kMin:
      return LoopsOf<ExtremeFold<true>, float, T>();
    case Fold::kSum:
      return LoopsOf<SumFold, float, T>();
    case Fold::kNanSum:
      return LoopsOf<NanSumFold, float, T>();
    case Fold::kAbsSum:
      return LoopsOf<AbsSumFold, float, T>();
    case Fold::kSquares:
      return LoopsOf<SquaresFold, float, T>();
    default:
      return {};
  }
}

}  // namespace

template <class C>
ReduceLoops<C> Loops(Fold fold) {
  switch (fold) {
    case Fold::kMax:
      return LoopsOf<ExtremeFold<false>, C>();
    case Fold::kMin:
      return LoopsOf<ExtremeFold<true>, C>();
    case Fold::kProd:
      return LoopsOf<ProdFold, C>();
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<C>) {
    switch (fold) {
      case Fold::kNanSum:
        return LoopsOf<NanSumFold, C>();
      case Fold::kAbsSum:
        return LoopsOf<AbsSumFold, C>();
      case Fold::kSquares:
        return LoopsOf<SquaresFold, C>();
      case Fold::kNonzeroProd:
        return LoopsOf<NonzeroProdFold, C>();
      case Fold::kAbsMax:
        return LoopsOf<AbsExtremeFold<false>, C>();
      case Fold::kAbsMin:
        return LoopsOf<AbsExtremeFold<true>, C>();
      default:
        break;
    }
  }
  return LoopsOf<SumFold, C>();
}
template <class C>
ReduceLoops<C> ExtremeLoops(Fold fold) {
  return fold == Fold::kMin ? LoopsOf<ExtremeFold<true>, C>() : LoopsOf<ExtremeFold<false>, C>();
}
ReduceLoops<int8_t> Int8Loops(Fold fold) { return ExtremeLoops<int8_t>(fold); }
ReduceLoops<int16_t> Int16Loops(Fold fold) { return ExtremeLoops<int16_t>(fold); }
ReduceLoops<int32_t> Int32Loops(Fold fold) { return ExtremeLoops<int32_t>(fold); }
ReduceLoops<float> FloatLoops(Fold fold) { return Loops<float>(fold); }
ReduceLoops<double> DoubleLoops(Fold fold) { return Loops<double>(fold); }
ReduceLoops<int64_t> IntLoops(Fold fold) { return Loops<int64_t>(fold); }
ExtremesLoop<float> FloatExtremes(DType dtype) {
  return dtype == DType::kFloat16    ? &FoldExtremes<float, float16>
         : dtype == DType::kBFloat16 ? &FoldExtremes<float, bfloat16>
                                     : &FoldExtremes<float, float>;
}
ExtremesLoop<double> DoubleExtremes() { return &FoldExtremes<double, double>; }
ExtremesLoop<int8_t> Int8Extremes() { return &FoldExtremes<int8_t, int8_t>; }
ExtremesLoop<uint8_t> ByteExtremes() { return &FoldExtremes<uint8_t, uint8_t>; }
ExtremesLoop<int16_t> Int16Extremes() { return &FoldExtremes<int16_t, int16_t>; }
ExtremesLoop<int32_t> Int32Extremes() { return &FoldExtremes<int32_t, int32_t>; }
ExtremesLoop<int64_t> IntExtremes() { return &FoldExtremes<int64_t, int64_t>; }
ReduceLoops<uint8_t> ByteLoops(Fold fold) {
  if (fold == Fold::kSum) return {&FoldRows<uint8_t, int64_t, &CountRow>, &CountColumns};
  return ExtremeLoops<uint8_t>(fold);
}
NonzeroProductLoop NonzeroProducts() { return &FoldNonzero; }
ReduceLoops<float> NarrowLoops(Fold fold, DType dtype) {
  return dtype == DType::kFloat16    ? ShortLoops<float16>(fold)
         : dtype == DType::kBFloat16 ? ShortLoops<bfloat16>(fold)
                                     : ReduceLoops<float>{};
}
ReduceLoops<double> NarrowDoubleLoops(Fold fold, DType dtype) {
  if (fold != Fold::kProd) return {};
  if (dtype == DType::kFloat32) return ProductLoops<float>();
  if (dtype == DType::kFloat16) return ProductLoops<float16>();
  return dtype == DType::kBFloat16 ? ProductLoops<bfloat16>() : ReduceLoops<double>{};
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FloatLoops);
HWY_EXPORT(DoubleLoops);
HWY_EXPORT(Int8Loops);
HWY_EXPORT(Int16Loops);
HWY_EXPORT(Int32Loops);
HWY_EXPORT(IntLoops);
HWY_EXPORT(ByteLoops);
HWY_EXPORT(NarrowLoops);
HWY_EXPORT(NarrowDoubleLoops);
HWY_EXPORT(NonzeroProducts);
HWY_EXPORT(FloatExtremes);
HWY_EXPORT(DoubleExtremes);
HWY_EXPORT(Int8Extremes);
HWY_EXPORT(ByteExtremes);
HWY_EXPORT(Int16Extremes);
HWY_EXPORT(Int32Extremes);
HWY_EXPORT(IntExtremes);

}  // namespace

template <>
ReduceLoops<float> FindReduceLoops<float>(Fold fold) {
  return HWY_DYNAMIC_DISPATCH(FloatLoops)(fold);
}
template <>
ReduceLoops<double> FindReduceLoops<double>(Fold fold) {
  return HWY_DYNAMIC_DISPATCH(DoubleLoops)(fold);
}
template <>
ReduceLoops<int64_t> FindReduceLoops<int64_t>(Fold fold) {
  return HWY_DYNAMIC_DISPATCH(IntLoops)(fold);
}
template <>
ReduceLoops<int8_t> FindReduceLoops<int8_t>(Fold fold) {
  return HWY_DYNAMIC_DISPATCH(Int8Loops)(fold);
}
template <>
ReduceLoops<int16_t> FindReduceLoops<int16_t>(Fold fold) {
  return HWY_DYNAMIC_DISPATCH(Int16Loops)(fold);
}
template <>
ReduceLoops<int32_t> FindReduceLoops<int32_t>(Fold fold) {
  return HWY_DYNAMIC_DISPATCH(Int32Loops)(fold);
}
template <>
ReduceLoops<uint8_t> FindReduceLoops<uint8_t>(Fold fold) {
  return HWY_DYNAMIC_DISPATCH(ByteLoops)(fold);
}
template <>
ReduceLoops<float> FindNarrowReduceLoops<float>(Fold fold, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(NarrowLoops)(fold, dtype);
}
template <>
ReduceLoops<double> FindNarrowReduceLoops<double>(Fold fold, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(NarrowDoubleLoops)(fold, dtype);
}
NonzeroProductLoop FindNonzeroProductLoop() { return HWY_DYNAMIC_DISPATCH(NonzeroProducts)(); }
template <>
ExtremesLoop<float> FindExtremesLoop<float>(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FloatExtremes)(dtype);
}
template <>
ExtremesLoop<double> FindExtremesLoop<double>(DType) {
  return HWY_DYNAMIC_DISPATCH(DoubleExtremes)();
}
template <>
ExtremesLoop<int8_t> FindExtremesLoop<int8_t>(DType) {
  return HWY_DYNAMIC_DISPATCH(Int8Extremes)();
}
template <>
ExtremesLoop<uint8_t> FindExtremesLoop<uint8_t>(DType) {
  return HWY_DYNAMIC_DISPATCH(ByteExtremes)();
}
template <>
ExtremesLoop<int16_t> FindExtremesLoop<int16_t>(DType) {
  return HWY_DYNAMIC_DISPATCH(Int16Extremes)();
}
template <>
ExtremesLoop<int32_t> FindExtremesLoop<int32_t>(DType) {
  return HWY_DYNAMIC_DISPATCH(Int32Extremes)();
}
template <>
ExtremesLoop<int64_t> FindExtremesLoop<int64_t>(DType) {
  return HWY_DYNAMIC_DISPATCH(IntExtremes)();
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
