// SPDX-License-Identifier: Apache-2.0
//
// Functions of three floats without a detour through memory: 16-bit floats are widened, computed in
// float32 and rounded in registers, and numbers are set once. A chunk that is converted first is
// stored four times more.
#include "primitive/cpu/simd_targets.h"
#include "primitive/cpu/ternary.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/ternary_dense.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T, class F>
void Loop(int64_t n, const DenseOperand (&in)[3], double number, void* out_data) {
  const TagOf<T> d;
  const auto set = [&](double v)
                       OFL_SIMD_LAMBDA { return hn::Set(d, static_cast<ComputeOf<T>>(v)); };
  const T* a = static_cast<const T*>(in[0].data);
  const T* b = static_cast<const T*>(in[1].data);
  const T* c = static_cast<const T*>(in[2].data);
  const auto zero = hn::Zero(d), v = set(number);
  const auto all_a = SetPack<T>(set(in[0].number)), all_b = SetPack<T>(set(in[1].number));
  const auto all_c = SetPack<T>(set(in[2].number));
  const auto f = [&](auto x, auto y, auto z) OFL_SIMD_LAMBDA { return F()(d, v, x, y, z); };
  GeneratePacks<T, false, true>(static_cast<size_t>(n), static_cast<T*>(out_data),
                                [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
                                  return EachPart(f, a ? LoadPack(a + i, count, zero) : all_a,
                                                  b ? LoadPack(b + i, count, zero) : all_b,
                                                  c ? LoadPack(c + i, count, zero) : all_c);
                                });
}
template <class F>
DenseTernaryLoop Of(DType dtype, F) {
  return VisitFloating(dtype, []<class T>(Tag<T>) -> DenseTernaryLoop { return &Loop<T, F>; });
}

// From the end that is nearer, so that weights 0 and 1 give the ends.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V LerpOf(D d, V a, V b, V w) {
  const auto way = hn::Sub(b, a), one = hn::Set(d, hn::TFromD<D>(1));
  const auto near = hn::Lt(hn::Abs(w), hn::Set(d, hn::TFromD<D>(0.5)));
  return hn::IfThenElse(near, hn::MulAdd(w, way, a), hn::NegMulAdd(way, hn::Sub(one, w), b));
}
// g times the slope of x to the power of a number that IsShortPower takes.
template <class T>
void PowSlopeLoop(int64_t n, const DenseOperand (&in)[3], double number, void* out) {
  const auto third = [](auto d, auto, auto g, auto x, auto) OFL_SIMD_LAMBDA {
    const auto three = hn::Set(d, hn::TFromD<decltype(d)>(3));
    return hn::Mul(g, hn::Mul(three, hn::Mul(x, x)));
  };
  const auto fourth = [](auto d, auto, auto g, auto x, auto) OFL_SIMD_LAMBDA {
    const auto four = hn::Set(d, hn::TFromD<decltype(d)>(4));
    return hn::Mul(g, hn::Mul(four, hn::Mul(hn::Mul(x, x), x)));
  };
  if (in[2].number == 3) return Loop<T, decltype(third)>(n, in, number, out);
  Loop<T, decltype(fourth)>(n, in, number, out);
}
// Bounds that are no NaN; x stays if it is one, or is equal to a bound. Of two operands of which
// one is NaN, or which are equal, x86 gives the second one: no masks, which take twice as long.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V WithinOf(D, V x, V low, V high) {
#if HWY_ARCH_X86
  return hn::Min(high, hn::Max(low, x));
#else
  const auto y = hn::IfThenElse(hn::Lt(x, low), low, x);
  return hn::IfThenElse(hn::Gt(y, high), high, y);
#endif
}

}  // namespace

DenseTernaryLoop FindDense(TernaryOp op, DType dtype) {
#define OFL_FN(expression) \
  [](auto d, auto v, auto a, auto b, auto c) OFL_SIMD_LAMBDA { return expression; }
  if (!IsFloating(dtype)) return nullptr;
  switch (op) {
    case TernaryOp::kLerp:
      return Of(dtype, OFL_FN(LerpOf(d, a, b, c)));
    case TernaryOp::kAddCMul:
      return Of(dtype, OFL_FN(hn::MulAdd(hn::Mul(v, b), c, a)));
    case TernaryOp::kAddCDiv:
      return Of(dtype, OFL_FN(hn::MulAdd(v, hn::Div(b, c), a)));
    case TernaryOp::kMulDiv:
      return Of(dtype, OFL_FN(hn::Mul(hn::Mul(v, a), hn::Div(b, c))));
    case TernaryOp::kClamp:
      return Of(dtype, OFL_FN(WithinOf(d, a, b, c)));
    case TernaryOp::kPowSlopeA:
      return VisitFloating(dtype,
                           []<class T>(Tag<T>) -> DenseTernaryLoop { return &PowSlopeLoop<T>; });
    case TernaryOp::kPreluSlopeA:
      return Of(dtype, OFL_FN(hn::IfThenElse(hn::Gt(b, hn::Zero(d)), a, hn::Mul(a, c))));
    case TernaryOp::kPreluSlopeB:
      return Of(dtype, OFL_FN(hn::IfThenZeroElse(hn::Gt(b, hn::Zero(d)), hn::Mul(a, c))));
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

HWY_EXPORT(FindDense);

DenseTernaryLoop FindDenseTernary(TernaryOp op, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindDense)(op, dtype);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
