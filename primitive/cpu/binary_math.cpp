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
#include "hwy/foreach_target.h"
// clang-format on
#include "primitive/cpu/binary-inl.h"
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_BINARY_MATH_ONCE_
#define OFL_PRIMITIVE_CPU_BINARY_MATH_ONCE_
namespace oneflow_lite {

template <class T>
T XLog1PY(T a, T b) {
  return a == 0 && b == b ? T(0) : a * std::log1p(b);
}
// log(2^a + 2^b), from the greater one.
template <class T>
T LogAddExp2(T a, T b) {
  if (a == b) return a + 1;  // infinities of one sign, too
  const T less = -std::abs(a - b);
  return (a > b || a != a ? a : b) + std::log1p(std::exp2(less)) * T(1.44269504088896340736);
}
// a 2^b; an integer b moves the exponent, however far.
template <class T>
T Ldexp(T a, T b) {
  if (b != std::trunc(b) || !(std::abs(b) < T(1e6))) return a * std::exp2(b);
  return std::ldexp(a, static_cast<int>(b));
}

// The number next to a on the way to b, of a dtype that T holds: the one with kBits fraction bits
// fewer than T, whose spacing from 0 to `normal` is `least`.
template <class T>
T StepTo(T a, T b, int bits, T normal, T least, T most) {
  using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  if (a != a || b != b) return a + b;
  if (a == b) return b;
  const T size = std::abs(a);
  const bool grows = a == 0 || (b > a) == (a > 0);
  if (a == 0) return std::copysign(least, b);
  T moved;
  if (size < normal || (size == normal && !grows)) {
    moved = grows ? size + least : size - least;
  } else if (std::isinf(a)) {
    moved = most;
  } else {
    U raw;
    std::memcpy(&raw, &size, sizeof(T));
    raw = grows ? raw + (U(1) << bits) : raw - (U(1) << bits);
    std::memcpy(&moved, &raw, sizeof(T));
  }
  return std::copysign(moved, a);
}

}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

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

template <class D, class V>
HWY_INLINE V XLogYOf(D d, V a, V b) {
  const auto nothing = hn::AndNot(hn::IsNaN(b), hn::Eq(a, hn::Zero(d)));
  return hn::IfThenElse(nothing, hn::Zero(d), hn::Mul(a, LogOf(d, b)));
}

BinaryLoop NextAfterOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return Make<float>(
          [](float a, float b) { return StepTo<float>(a, b, 13, 0x1p-14f, 0x1p-24f, 65504.0f); });
    case DType::kBFloat16:
      return Make<float>([](float a, float b) {
        return StepTo<float>(a, b, 16, 0x1p-126f, 0x1p-133f, 0x1.fep127f);
      });
    case DType::kFloat32:
      return Make<float>([](float a, float b) {
        return StepTo<float>(a, b, 0, 0x1p-126f, 0x1p-149f, 0x1.fffffep127f);
      });
    case DType::kFloat64:
      return Make<double>([](double a, double b) {
        return StepTo<double>(a, b, 0, 0x1p-1022, 0x1p-1074, 0x1.fffffffffffffp1023);
      });
    default:
      return nullptr;
  }
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
      return Floats(dtype, OFL_FN(std::atan2(a, b)));
    case BinaryOp::kLogAddExp:
      return Vectors(dtype, OFL_VECTOR_FN(LogAddExpOf(d, a, b)));
    case BinaryOp::kLogAddExp2:
      return Floats(dtype, OFL_FN(LogAddExp2(a, b)));
    case BinaryOp::kXLogY:
      return Vectors(dtype, OFL_VECTOR_FN(XLogYOf(d, a, b)));
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
