// SPDX-License-Identifier: Apache-2.0
//
// One expression per function, on vectors of the compute type; the table in FindUnary names them.
// What takes long for each element is in unary_elementary.cpp and unary_special.cpp, what looks at
// bits in unary_truth.cpp.
#include "primitive/cpu/unary.h"

#include <limits>

#include "primitive/cpu/chunked_pass.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/unary.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/gelu-inl.h"
#include "primitive/cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T, class F>
void Loop(int64_t n, const void* x_data, void* y_data, const UnaryParams& params) {
  const TagOf<T> d;
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  const auto zero = hn::Zero(d);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    StoreUpTo(F()(d, LoadUpTo(d, x + i, count, zero), params), d, y + i, count);
  });
}

// The same of floats, four packs at a time: for functions of few instructions.
template <class T, class F>
void ShortLoop(int64_t n, const void* x_data, void* y_data, const UnaryParams& params) {
  const TagOf<T> d;
  const T* x = static_cast<const T*>(x_data);
  const auto zero = hn::Zero(d);
  const auto f = [&](auto v) OFL_SIMD_LAMBDA { return F()(d, v, params); };
  GeneratePacks<T, false, true>(static_cast<size_t>(n), static_cast<T*>(y_data),
                                [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
                                  return EachPart(f, LoadPack(x + i, count, zero));
                                });
}

// f for the floats, long or short; a short one for every dtype but bool. Null for the rest.
template <class F>
UnaryCode::Loop Floats(DType dtype, F) {
  if (!IsFloating(dtype)) return nullptr;
  return VisitFloating(dtype, []<class T>(Tag<T>) -> UnaryCode::Loop { return &Loop<T, F>; });
}
template <class F>
UnaryCode::Loop Short(DType dtype, F) {
  if (!IsFloating(dtype)) return nullptr;
  return VisitFloating(dtype, []<class T>(Tag<T>) -> UnaryCode::Loop { return &ShortLoop<T, F>; });
}
// Of 16-bit floats: the bits of x with the sign turned, or without it.
template <bool kTurn>
void SignLoop(int64_t n, const void* x_data, void* y_data, const UnaryParams&) {
  const hn::ScalableTag<uint16_t> d;
  const uint16_t* x = static_cast<const uint16_t*>(x_data);
  uint16_t* y = static_cast<uint16_t*>(y_data);
  const auto zero = hn::Zero(d), sign = hn::Set(d, uint16_t{0x8000});
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto bits = LoadUpTo(d, x + i, count, zero);
    StoreUpTo(kTurn ? hn::Xor(bits, sign) : hn::AndNot(sign, bits), d, y + i, count);
  });
}
template <class F>
UnaryCode::Loop Integers(DType dtype, F) {
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
      return nullptr;
  }
}
template <class F>
UnaryCode::Loop Numbers(DType dtype, F f) {
  return IsFloating(dtype) ? Short(dtype, f) : Integers(dtype, f);
}
// Where the 16-bit floats have a loop of their own: f for the others.
template <class F>
UnaryCode::Loop Signs(DType dtype, UnaryCode::Loop of_bits, F f) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return of_bits;
  if (dtype == DType::kFloat32) return &ShortLoop<float, F>;
  return dtype == DType::kFloat64 ? &ShortLoop<double, F> : Integers(dtype, f);
}

template <class D>
HWY_INLINE hn::Vec<D> Absolute(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  if constexpr (hwy::IsFloat<T>()) return hn::Abs(x);
  if constexpr (std::is_unsigned_v<T>) return x;
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Zero(d), x), x);
}
// 1 / (1 + exp(-x)), from the exp that is at most 1.
template <class D>
HWY_INLINE hn::Vec<D> SigmoidOf(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, hn::TFromD<D>(1));
  const auto e = ExpOf(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

template <class D>
HWY_INLINE hn::Vec<D> Negative(D d, hn::Vec<D> x) {
  if constexpr (hwy::IsFloat<hn::TFromD<D>>()) return hn::Neg(x);
  return hn::Sub(hn::Zero(d), x);
}

template <class D>
HWY_INLINE hn::Vec<D> Number(D d, double v) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(v));
}
// 1, 0 or -1; 0 of NaN.
template <class D>
HWY_INLINE hn::Vec<D> SignOf(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto zero = hn::Zero(d), one = hn::Set(d, T(1));
  const auto above = hn::IfThenElseZero(hn::Gt(x, zero), one);
  if constexpr (std::is_unsigned_v<T>) return above;
  return hn::IfThenElse(hn::Lt(x, zero), hn::Sub(zero, one), above);
}
template <class D>
HWY_INLINE hn::Vec<D> SquareOf(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  if constexpr (hwy::IsFloat<T>() || sizeof(T) == 2 || sizeof(T) == 4) {
    return hn::Mul(x, x);
  } else {  // Highway has no product of such lanes
    HWY_ALIGN T lanes[hn::MaxLanes(D())];
    hn::Store(x, d, lanes);
    using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;  // wraps around
    for (T& v : lanes) v = static_cast<T>(static_cast<Wide>(v) * static_cast<Wide>(v));
    return hn::Load(d, lanes);
  }
}
// x less its integer part, with its sign.
template <class D>
HWY_INLINE hn::Vec<D> FracOf(D d, hn::Vec<D> x) {
  return hn::CopySign(hn::Sub(x, hn::Trunc(x)), x);
}
// To so many digits after the point, or before it: scale is 10^|decimals|. What has none of these
// digits, or is not finite, stays.
template <class D>
HWY_INLINE hn::Vec<D> RoundedTo(D d, hn::Vec<D> x, const UnaryParams& params) {
  const auto scale = Number(d, params.v[0]), zero = hn::Zero(d);
  const bool before = params.v[1] != 0;
  const auto scaled = before ? hn::Div(x, scale) : hn::Mul(x, scale);
  const auto whole = hn::Round(scaled);
  const auto y = before ? hn::Mul(whole, scale) : hn::Div(whole, scale);
  const auto found = hn::IfThenElse(hn::Eq(whole, zero), hn::CopySign(zero, x), y);
  return hn::IfThenElse(hn::IsFinite(scaled), found, x);
}
template <class D>
HWY_INLINE hn::Vec<D> NanToNumOf(D d, hn::Vec<D> x, const UnaryParams& params) {
  const auto inf = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::infinity());
  const auto y = hn::IfThenElse(hn::Eq(x, inf), Number(d, params.v[1]), x);
  const auto z = hn::IfThenElse(hn::Eq(x, hn::Neg(inf)), Number(d, params.v[2]), y);
  return hn::IfThenElse(hn::IsNaN(x), Number(d, params.v[0]), z);
}

}  // namespace

// Null where there is no code for the dtype.
UnaryCode::Loop FindUnary(UnaryOp op, DType dtype) {
#define OFL_FN(expression) \
  [](auto d, auto x, const UnaryParams& params) OFL_SIMD_LAMBDA { return expression; }
  switch (op) {
    case UnaryOp::kNeg:
      return Signs(dtype, &SignLoop<true>, OFL_FN(Negative(d, x)));
    case UnaryOp::kExp:
      return Floats(dtype, OFL_FN(ExpOf(d, x)));
    case UnaryOp::kLog:
      return Floats(dtype, OFL_FN(LogOf(d, x)));
    case UnaryOp::kRelu:  // NaN stays
      return Numbers(dtype, OFL_FN(hn::IfThenElse(hn::Gt(hn::Zero(d), x), hn::Zero(d), x)));
    case UnaryOp::kAbs:
      return Signs(dtype, &SignLoop<false>, OFL_FN(Absolute(d, x)));
    case UnaryOp::kSqrt:
      return Short(dtype, OFL_FN(hn::Sqrt(x)));
    case UnaryOp::kRsqrt:
      return Short(dtype, OFL_FN(hn::Div(hn::Set(d, hn::TFromD<decltype(d)>(1)), hn::Sqrt(x))));
    case UnaryOp::kSigmoid:
      return Floats(dtype, OFL_FN(SigmoidOf(d, x)));
    case UnaryOp::kFloor:
      return Short(dtype, OFL_FN(hn::Floor(x)));
    case UnaryOp::kGeluTanh:
      return Floats(dtype, OFL_FN(GeluTanhOf(d, x)));
    case UnaryOp::kCeil:
      return Short(dtype, OFL_FN(hn::Ceil(x)));
    case UnaryOp::kTrunc:
      return Short(dtype, OFL_FN(hn::Trunc(x)));
    case UnaryOp::kRound:
      return Short(dtype, OFL_FN(hn::Round(x)));
    case UnaryOp::kRoundDecimals:
      return Short(dtype, OFL_FN(RoundedTo(d, x, params)));
    case UnaryOp::kFrac:
      return Short(dtype, OFL_FN(FracOf(d, x)));
    case UnaryOp::kSign:
      return Numbers(dtype, OFL_FN(SignOf(d, x)));
    case UnaryOp::kSquare:
      return Numbers(dtype, OFL_FN(SquareOf(d, x)));
    case UnaryOp::kReciprocal:
      return Short(dtype, OFL_FN(hn::Div(Number(d, 1), x)));
    case UnaryOp::kDeg2rad:
      return Short(dtype, OFL_FN(hn::Mul(x, Number(d, 0.01745329251994329577))));
    case UnaryOp::kRad2deg:
      return Short(dtype, OFL_FN(hn::Mul(x, Number(d, 57.2957795130823208768))));
    case UnaryOp::kNanToNum:
      return Short(dtype, OFL_FN(NanToNumOf(d, x, params)));
    default:
      return nullptr;
  }
#undef OFL_FN
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindUnary);

UnaryCode Find(UnaryOp op, DType dtype) {
  if (UnaryCode::Loop loop = HWY_DYNAMIC_DISPATCH(FindUnary)(op, dtype)) return {loop};
  for (const auto find : {FindElementary, FindGamma, FindSpecial, FindTruth}) {
    if (const UnaryCode code = find(op, dtype); code.loop) return code;
  }
  return {};
}

class CpuUnary final : public Unary {
 public:
  CpuUnary(UnaryCode code, const Spec& spec) : loop_(code.loop), pass_(TypesOf(code, spec)) {}

  Status Launch(Stream&, const Elementwise<2>& g, const void* x, void* y,
                const UnaryParams& params) const override {
    pass_.Run(g, {{{x}}}, y,
              [&](int64_t n, const auto& in, void* out) { loop_(n, in[0], out, params); });
    return OkStatus();
  }

 private:
  static ChunkedTypes<1> TypesOf(UnaryCode code, const Spec& spec) {
    const DType loop = code.wide ? ComputeType(spec.dtype) : spec.dtype;
    const bool truth = IsTruth(spec.op);
    return {.in = {spec.in.value_or(spec.dtype)},
            .common = spec.dtype,
            .loop = loop,
            .result = truth ? DType::kBool : loop,
            .out = truth ? DType::kBool : spec.dtype};
  }

  UnaryCode::Loop loop_;
  ChunkedPass<1> pass_;
};

StatusOr<std::unique_ptr<Unary>> NewUnary(const Unary::Spec& spec) {
  const UnaryCode code = Find(spec.op, spec.dtype);
  if (!code.loop) return NoPrimitiveFor(Unary::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuUnary>(code, spec);
}

const bool registered = RegisterPrimitive<Unary>(DeviceType::kCPU, &NewUnary);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
