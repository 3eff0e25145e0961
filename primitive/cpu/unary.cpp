// SPDX-License-Identifier: Apache-2.0
//
// One expression per function, on vectors of the compute type; the table in FindUnary names them.
#include "primitive/unary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oneflow_lite/core/elementwise_order.h"
#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/chunk_conversion.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/strided.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/unary.cpp"
#include "hwy/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_UNARY_ONCE_
#define OFL_PRIMITIVE_CPU_UNARY_ONCE_
namespace oneflow_lite {
using UnaryLoop = void (*)(int64_t n, const void* x, void* y);
}
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T, class F>
void Loop(int64_t n, const void* x_data, void* y_data) {
  const TagOf<T> d;
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  const auto zero = hn::Zero(d);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    StoreUpTo(F()(d, LoadUpTo(d, x + i, count, zero)), d, y + i, count);
  });
}

// f for the floats, or for every dtype but bool; null for the rest.
template <class F>
UnaryLoop Floats(DType dtype, F) {
  if (!IsFloating(dtype)) return nullptr;
  return VisitFloating(dtype, []<class T>(Tag<T>) -> UnaryLoop { return &Loop<T, F>; });
}
template <class F>
UnaryLoop Numbers(DType dtype, F f) {
  switch (dtype) {
    case DType::kUInt8:
      return &Loop<uint8_t, F>;
    case DType::kInt8:
      return &Loop<int8_t, F>;
    case DType::kInt16:
      return &Loop<int16_t, F>;
    case DType::kInt32:
      return &Loop<int32_t, F>;
    case DType::kInt64:
      return &Loop<int64_t, F>;
    default:
      return Floats(dtype, f);
  }
}

template <class D>
HWY_INLINE hn::Vec<D> Absolute(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  if constexpr (hwy::IsFloat<T>()) return hn::Abs(x);
  if constexpr (std::is_unsigned_v<T>) return x;
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Zero(d), x), x);
}
template <class D>
HWY_INLINE hn::Vec<D> TanhOf(D d, hn::Vec<D> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, x));
}
// 1 / (1 + exp(-x)), from the exp that is at most 1.
template <class D>
HWY_INLINE hn::Vec<D> SigmoidOf(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, hn::TFromD<D>(1));
  const auto e = ExpOf(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

template <class D>
HWY_INLINE hn::Vec<D> SiluOf(D d, hn::Vec<D> x) {
  // A factor of 0 beside an infinite x would be NaN.
  const auto y = hn::Mul(x, SigmoidOf(d, x));
  const auto least = hn::Set(d, -std::numeric_limits<hn::TFromD<D>>::infinity());
  return hn::IfThenElse(hn::Eq(x, least), hn::Zero(d), y);
}

// x (1 + tanh(u)) / 2 without cancellation: x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715
// x^3).
template <class D>
HWY_INLINE hn::Vec<D> GeluTanhOf(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto factor = hn::MulAdd(hn::Mul(x, x), hn::Set(d, T(0.07135481627260025)),
                                 hn::Set(d, T(1.5957691216057308)));
  const auto y = hn::Mul(x, SigmoidOf(d, hn::Mul(x, factor)));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, T(-40))), hn::Zero(d), y);
}

// f on each element: for functions that Highway does not have.
template <class D, class F>
HWY_INLINE hn::Vec<D> Each(D d, hn::Vec<D> x, F f) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(D()); ++i) lanes[i] = f(lanes[i]);
  return hn::Load(d, lanes);
}
// x P(N <= x) of a standard normal N; erfc keeps its digits where that is small.
template <class T>
T GeluOf(T x) {
  if (x < T(-40)) return T(0);  // so that -inf is not -inf times 0
  return T(0.5) * x * std::erfc(x * T(-0.70710678118654752440));
}

template <class D>
HWY_INLINE hn::Vec<D> Negative(D d, hn::Vec<D> x) {
  if constexpr (hwy::IsFloat<hn::TFromD<D>>()) return hn::Neg(x);
  return hn::Sub(hn::Zero(d), x);
}

}  // namespace

// Null where there is no code for the dtype.
UnaryLoop FindUnary(UnaryOp op, DType dtype) {
#define OFL_FN(expression) [](auto d, auto x) OFL_SIMD_LAMBDA { return expression; }
  switch (op) {
    case UnaryOp::kNeg:
      return Numbers(dtype, OFL_FN(Negative(d, x)));
    case UnaryOp::kExp:
      return Floats(dtype, OFL_FN(ExpOf(d, x)));
    case UnaryOp::kLog:
      return Floats(dtype, OFL_FN(LogOf(d, x)));
    case UnaryOp::kRelu:  // NaN stays
      return Numbers(dtype, OFL_FN(hn::IfThenElse(hn::Gt(hn::Zero(d), x), hn::Zero(d), x)));
    case UnaryOp::kAbs:
      return Numbers(dtype, OFL_FN(Absolute(d, x)));
    case UnaryOp::kSqrt:
      return Floats(dtype, OFL_FN(hn::Sqrt(x)));
    case UnaryOp::kRsqrt:
      return Floats(dtype, OFL_FN(hn::Div(hn::Set(d, hn::TFromD<decltype(d)>(1)), hn::Sqrt(x))));
    case UnaryOp::kTanh:
      return Floats(dtype, OFL_FN(TanhOf(d, x)));
    case UnaryOp::kSigmoid:
      return Floats(dtype, OFL_FN(SigmoidOf(d, x)));
    case UnaryOp::kSin:
      return Floats(dtype, OFL_FN(Each(d, x, [](auto v) { return std::sin(v); })));
    case UnaryOp::kCos:
      return Floats(dtype, OFL_FN(Each(d, x, [](auto v) { return std::cos(v); })));
    case UnaryOp::kErf:
      return Floats(dtype, OFL_FN(Each(d, x, [](auto v) { return std::erf(v); })));
    case UnaryOp::kFloor:
      return Floats(dtype, OFL_FN(hn::Floor(x)));
    case UnaryOp::kSilu:
      return Floats(dtype, OFL_FN(SiluOf(d, x)));
    case UnaryOp::kGeluTanh:
      return Floats(dtype, OFL_FN(GeluTanhOf(d, x)));
    case UnaryOp::kGelu:
      return Floats(dtype, OFL_FN(Each(d, x, [](auto v) { return GeluOf(v); })));
  }
#undef OFL_FN
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindUnary);

class CpuUnary final : public Unary {
 public:
  CpuUnary(const Spec& spec, UnaryLoop loop)
      : loop_(loop),
        convert_(spec.in.value_or(spec.dtype), spec.dtype),
        in_item_(static_cast<int64_t>(SizeOf(spec.in.value_or(spec.dtype)))),
        out_item_(static_cast<int64_t>(SizeOf(spec.out.value_or(spec.dtype)))) {}

  Status Launch(Stream&, const Elementwise<2>& given, const void* x, void* y) const override {
    const Elementwise<2> g = OrderedBy(given, 1);
    const bool direct = g.contiguous && !convert_;
    ParallelFor(g.numel, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      if (direct) {
        loop_(end - begin, static_cast<const char*>(x) + begin * in_item_,
              static_cast<char*>(y) + begin * out_item_);
        return;
      }
      StridedReader reader(g, 0, static_cast<size_t>(in_item_), x, begin);
      StridedWriter writer(g, 1, static_cast<size_t>(out_item_), y, begin);
      ChunkBuffer gathered, converted, result;
      for (int64_t i = begin; i < end; i += kChunk) {
        const int64_t n = std::min(kChunk, end - i);
        loop_(n, convert_(n, reader.Read(n, gathered), converted), writer.Start(n, result));
        writer.Finish(n, result);
      }
    });
    return OkStatus();
  }

 private:
  UnaryLoop loop_;
  ChunkConversion convert_;  // of x to the dtype of the function
  int64_t in_item_, out_item_;
};

StatusOr<std::unique_ptr<Unary>> NewUnary(const Unary::Spec& spec) {
  UnaryLoop loop = HWY_DYNAMIC_DISPATCH(FindUnary)(spec.op, spec.dtype);
  if (!loop) return NoPrimitiveFor(Unary::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuUnary>(spec, loop);
}

const bool registered = RegisterPrimitive<Unary>(DeviceType::kCPU, &NewUnary);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
