// SPDX-License-Identifier: Apache-2.0
//
// Mathematical functions of two floats.
#include <cmath>
#include <cstring>
#include <limits>

#include "primitive/cpu/binary_loop.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/zeta_math.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/binary_math.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/binary-inl.h"
#include "primitive/cpu/simd-inl.h"
#include "primitive/cpu/vector_math-inl.h"

#ifndef OFL_PRIMITIVE_CPU_BINARY_MATH_ONCE_
#define OFL_PRIMITIVE_CPU_BINARY_MATH_ONCE_
namespace oneflow_lite {

template <class T>
T XLog1PY(T a, T b) {
  return a == 0 && b == b ? T(0) : a * std::log1p(b);
}
// a 2^b; an integer b moves the exponent, however far.
template <class T>
T Ldexp(T a, T b) {
  if (b != std::trunc(b) || !(std::abs(b) < T(1e6))) return a * std::exp2(b);
  return std::ldexp(a, static_cast<int>(b));
}

// A float dtype within a wider one of `bits` more fraction bits: its spacing from 0 to `normal` is
// `least`.
struct Spacing {
  int bits;
  double normal, least, most;
};
inline constexpr Spacing kSpacings[] = {{13, 0x1p-14, 0x1p-24, 65504.0},
                                        {16, 0x1p-126, 0x1p-133, 0x1.fep127},
                                        {0, 0x1p-126, 0x1p-149, 0x1.fffffep127},
                                        {0, 0x1p-1022, 0x1p-1074, 0x1.fffffffffffffp1023}};

}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// x to the power of y. The vector functions leave vectors with negative x to the scalar one, five
// times as slow: here they see |x|. Of negative x an odd power is negative, and what is no integer
// power is NaN, but for infinite x.
template <class D>
HWY_INLINE hn::Vec<D> VectorPow(D d, hn::Vec<D> x, hn::Vec<D> y) {
  const auto size = hn::Abs(x), half = hn::Mul(y, hn::Set(d, 0.5f));
  const auto whole = hn::Eq(hn::Trunc(y), y);
  const auto odd = hn::AndNot(hn::Eq(hn::Trunc(half), half), whole);
  const auto power = VectorPowOfPositive(d, size, y);
  const auto sign = hn::IfThenElseZero(odd, hn::And(x, hn::SignBit(d)));
  const auto finite = hn::Lt(size, hn::Set(d, std::numeric_limits<hn::TFromD<D>>::infinity()));
  const auto none = hn::AndNot(whole, hn::And(hn::Lt(x, hn::Zero(d)), finite));
  const auto nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
  return hn::IfThenElse(none, nan, hn::Xor(power, sign));
}

// sqrt(a^2 + b^2), with both moved by a power of 2 where a square would leave the range.
template <class D, class V>
HWY_INLINE V HypotOf(D d, V a, V b) {
  using T = hn::TFromD<D>;
  constexpr bool kSingle = sizeof(T) == 4;
  const auto x = hn::Abs(a), y = hn::Abs(b), one = hn::Set(d, T(1));
  const auto inf = hn::Set(d, std::numeric_limits<T>::infinity());
  const auto larger = hn::IfThenElse(hn::Gt(x, y), x, y);
  const auto large = hn::Gt(larger, hn::Set(d, kSingle ? T(0x1p62) : T(0x1p500)));
  const auto small = hn::Lt(larger, hn::Set(d, kSingle ? T(0x1p-60) : T(0x1p-450)));
  const auto down = hn::Set(d, kSingle ? T(0x1p-70) : T(0x1p-600));
  const auto up = hn::Set(d, kSingle ? T(0x1p90) : T(0x1p600));
  const auto scale = hn::IfThenElse(large, down, hn::IfThenElse(small, up, one));
  const auto u = hn::Mul(x, scale), v = hn::Mul(y, scale);
  auto root = hn::Sqrt(hn::MulAdd(u, u, hn::Mul(v, v)));
  const auto back_up = hn::Set(d, kSingle ? T(0x1p70) : T(0x1p600));
  const auto back_down = hn::Set(d, kSingle ? T(0x1p-90) : T(0x1p-600));
  root = hn::Mul(root, hn::IfThenElse(large, back_up, hn::IfThenElse(small, back_down, one)));
  return hn::IfThenElse(hn::Or(hn::Eq(x, inf), hn::Eq(y, inf)), inf, root);
}

// log(e^a + e^b), from the greater one.
template <class D, class V>
HWY_INLINE V LogAddExpOf(D d, V a, V b) {
  const auto nan_a = hn::IsNaN(a);
  const auto most = hn::IfThenElse(hn::Or(hn::Gt(a, b), nan_a), a, b);
  auto less = hn::Neg(hn::Abs(hn::Sub(a, b)));
  less = hn::IfThenElse(hn::Eq(a, b), hn::Zero(d), less);  // infinities of one sign
  return hn::Add(most, hn::Log1p(d, ExpOf(d, less)));
}

// log2(2^a + 2^b), from the greater one.
template <class D, class V>
HWY_INLINE V LogAddExp2Of(D d, V a, V b) {
  using T = hn::TFromD<D>;
  const auto most = hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  const auto rest = VectorLog1p(d, VectorExp2(d, hn::Neg(hn::Abs(hn::Sub(a, b)))));
  const auto sum = hn::MulAdd(rest, hn::Set(d, T(1.44269504088896340736)), most);
  // Exact where both are the same, which may be near -1; infinities of one sign, too.
  return hn::IfThenElse(hn::Eq(a, b), hn::Add(a, hn::Set(d, T(1))), sum);
}

template <class D, class V>
HWY_INLINE V XLogYOf(D d, V a, V b) {
  const auto nothing = hn::AndNot(hn::IsNaN(b), hn::Eq(a, hn::Zero(d)));
  return hn::IfThenElse(nothing, hn::Zero(d), hn::Mul(a, LogOf(d, b)));
}

// The number next to a on the way to b, of the dtype with that spacing.
template <int kIndex, class D>
HWY_INLINE hn::Vec<D> StepTo(D d, hn::Vec<D> a, hn::Vec<D> b) {
  using T = hn::TFromD<D>;
  constexpr Spacing kSpacing = kSpacings[kIndex];
  const hn::RebindToUnsigned<D> du;
  const auto zero = hn::Zero(d), size = hn::Abs(a);
  const auto normal = hn::Set(d, T(kSpacing.normal)), least = hn::Set(d, T(kSpacing.least));
  const auto grows =
      hn::Or(hn::And(hn::Gt(a, zero), hn::Gt(b, a)), hn::And(hn::Lt(a, zero), hn::Lt(b, a)));
  const auto step = hn::Set(du, hn::TFromD<decltype(du)>{1} << kSpacing.bits);
  const auto bits = hn::BitCast(du, size);
  const auto up = hn::BitCast(d, hn::Add(bits, step)), down = hn::BitCast(d, hn::Sub(bits, step));
  auto moved = hn::IfThenElse(grows, up, down);
  const auto near = hn::Or(hn::Lt(size, normal), hn::AndNot(grows, hn::Eq(size, normal)));
  const auto beside = hn::IfThenElse(grows, hn::Add(size, least), hn::Sub(size, least));
  moved = hn::IfThenElse(near, beside, moved);
  const auto inf = hn::Set(d, std::numeric_limits<T>::infinity());
  moved = hn::IfThenElse(hn::Eq(size, inf), hn::Set(d, T(kSpacing.most)), moved);
  moved = hn::CopySign(moved, a);
  moved = hn::IfThenElse(hn::Eq(a, zero), hn::CopySign(least, b), moved);
  moved = hn::IfThenElse(hn::Eq(a, b), b, moved);
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::Add(a, b), moved);
}

BinaryLoop NextAfterOf(DType dtype) {
#define OFL_STEP(index) \
  [](auto d, auto a, auto b) OFL_SIMD_LAMBDA { return StepTo<index>(d, a, b); }
  switch (dtype) {
    case DType::kFloat16:
      return Vectors(DType::kFloat32, OFL_STEP(0));
    case DType::kBFloat16:
      return Vectors(DType::kFloat32, OFL_STEP(1));
    case DType::kFloat32:
      return Vectors(DType::kFloat32, OFL_STEP(2));
    case DType::kFloat64:
      return Vectors(DType::kFloat64, OFL_STEP(3));
    default:
      return nullptr;
  }
#undef OFL_STEP
}

}  // namespace

BinaryLoop FindBinaryMathLoop(BinaryOp op, DType given) {
#define OFL_VECTOR_FN(expression) [](auto d, auto a, auto b) OFL_SIMD_LAMBDA { return expression; }
#define OFL_FN(expression) [](auto a, auto b) { return expression; }
  const DType dtype = ComputeType(given);
  switch (op) {
    case BinaryOp::kFmax:
      return Floats(dtype, OFL_FN(a >= b || b != b ? a : b));
    case BinaryOp::kFmin:
      return Floats(dtype, OFL_FN(a <= b || b != b ? a : b));
    case BinaryOp::kHypot:
      return Vectors(dtype, OFL_VECTOR_FN(HypotOf(d, a, b)));
    case BinaryOp::kAtan2:
      return Vectors(dtype, OFL_VECTOR_FN(VectorAtan2(d, a, b)));
    case BinaryOp::kLogAddExp:
      return Vectors(dtype, OFL_VECTOR_FN(LogAddExpOf(d, a, b)));
    case BinaryOp::kLogAddExp2:
      return Vectors(dtype, OFL_VECTOR_FN(LogAddExp2Of(d, a, b)));
    case BinaryOp::kXLogY:
      return Vectors(dtype, OFL_VECTOR_FN(XLogYOf(d, a, b)));
    case BinaryOp::kPow:
      if (!IsFloating(dtype)) return nullptr;
      return Vectors(dtype, OFL_VECTOR_FN(VectorPow(d, a, b)));
    case BinaryOp::kXLog1PY:
      return Floats(dtype, OFL_FN(XLog1PY(a, b)));
    case BinaryOp::kCopySign:
      return Floats(dtype, OFL_FN(std::copysign(a, b)));
    case BinaryOp::kNextAfter:
      return NextAfterOf(given);
    case BinaryOp::kLdexp:
      return Floats(dtype, OFL_FN(Ldexp(a, b)));
    case BinaryOp::kZeta:
      return Floats(dtype, OFL_FN(static_cast<decltype(a)>(Zeta(a, b))));
    case BinaryOp::kHeaviside:
      return All(dtype, OFL_FN(a == 0 ? b : a != a ? a : static_cast<decltype(a)>(a > 0)));
    default:
      return nullptr;
  }
#undef OFL_FN
#undef OFL_VECTOR_FN
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {

HWY_EXPORT(FindBinaryMathLoop);

BinaryLoop FindBinaryMath(BinaryOp op, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindBinaryMathLoop)(op, dtype);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
