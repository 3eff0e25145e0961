// SPDX-License-Identifier: Apache-2.0
//
// Divisions with a rounded quotient and their rests, and functions of integers alone.
#include <cmath>
#include <limits>
#include <type_traits>

#include "primitive/cpu/binary_loop.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/binary_division.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/binary-inl.h"
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_BINARY_DIVISION_ONCE_
#define OFL_PRIMITIVE_CPU_BINARY_DIVISION_ONCE_
namespace oneflow_lite {

// a / b rounded towards 0; 0 over 0. The least integer over -1 wraps around. Narrow integers are
// divided as doubles, which is exact, and vectorises.
template <class T>
T TruncQuotient(T a, T b) {
  constexpr bool kSigned = std::is_signed_v<T>;
  const bool negates = kSigned && b == T(-1);
  const T divisor = b == 0 || negates ? T(1) : b;
  T quotient;
  if constexpr (sizeof(T) == 8) {
    quotient = a / divisor;
  } else {
    quotient = static_cast<T>(static_cast<int32_t>(double(a) / double(divisor)));
  }
  return b == 0 ? T(0) : negates ? static_cast<T>(Raw(T(0)) - Raw(a)) : quotient;
}
// a - q b; a over 0.
template <class T>
T RestOf(T a, T q, T b) {
  return static_cast<T>(Raw(a) - Raw(q) * Raw(b));
}
// Whether a quotient that was rounded towards 0 is 1 more than the one rounded down.
template <class T>
bool RoundsDown(T rest, T b) {
  return (b != 0) & (rest != 0) & ((rest < 0) != (b < 0));
}
template <class T>
T FloorQuotient(T a, T b) {
  const T q = TruncQuotient(a, b);
  return static_cast<T>(Raw(q) - Raw(T(RoundsDown(RestOf(a, q, b), b))));
}
template <class T>
T FloorRest(T a, T b) {
  const T rest = RestOf(a, TruncQuotient(a, b), b);
  return static_cast<T>(Raw(rest) + (RoundsDown(rest, b) ? Raw(b) : Raw(T(0))));
}

template <class T>
auto Magnitude(T v) {
  return v < 0 ? Raw(T(0)) - Raw(v) : Raw(v);
}
// Euclid's algorithm.
template <class T>
T GreatestDivisor(T a, T b) {
  auto x = Magnitude(a), y = Magnitude(b);
  while (y != 0) {
    const auto rest = x % y;
    x = y;
    y = rest;
  }
  return static_cast<T>(x);
}
template <class T>
T LeastMultiple(T a, T b) {
  if (a == 0 || b == 0) return T(0);
  const auto divisor = Magnitude(GreatestDivisor(a, b));
  const T product = static_cast<T>(Magnitude(a) / divisor * Magnitude(b));
  return static_cast<T>(Magnitude(product));
}

template <class T>
bool IsBeyond(T places) {
  return (places < 0) | (places >= T(8 * sizeof(T)));
}
template <class T>
T ShiftedLeft(T a, T places) {
  const auto shifted = Raw(a) << (IsBeyond(places) ? 0 : places);
  return IsBeyond(places) ? T(0) : static_cast<T>(shifted);
}
template <class T>
T ShiftedRight(T a, T places) {
  const T most = T(8 * sizeof(T) - 1);
  const T shifted = static_cast<T>(a >> (IsBeyond(places) ? most : places));
  return IsBeyond(places) && std::is_unsigned_v<T> ? T(0) : shifted;
}

}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// C's fmod. The ratio, rounded and cut off, is the quotient or one more. Below 2^23 (2^52) its
// product with b is exact in a fused multiply-add, and so is the rest, to which b is added where it
// is negative. Greater ratios, an infinite b, NaN, and processors without that instruction go
// element by element.
template <class D, class V>
HWY_INLINE V FmodOf(D d, V a, V b) {
  using T = hn::TFromD<D>;
  const auto x = hn::Abs(a), y = hn::Abs(b);
  const auto q = hn::Trunc(hn::Div(x, y));
  auto rest = hn::NegMulAdd(q, y, x);
  rest = hn::IfThenElse(hn::Lt(rest, hn::Zero(d)), hn::Add(rest, y), rest);
  rest = hn::CopySign(rest, a);
  const auto limit = hn::Set(d, sizeof(T) == 4 ? T(0x1p23) : T(0x1p52));
  const auto exact =
      hn::And(hn::Lt(q, limit), hn::Lt(y, hn::Set(d, std::numeric_limits<T>::infinity())));
  if (HWY_NATIVE_FMA && HWY_LIKELY(hn::AllTrue(d, exact))) return rest;
  HWY_ALIGN T as[hn::MaxLanes(D())], bs[hn::MaxLanes(D())];
  hn::Store(a, d, as);
  hn::Store(b, d, bs);
  for (size_t i = 0; i < hn::Lanes(d); ++i) as[i] = std::fmod(as[i], bs[i]);
  const auto one_by_one = hn::Load(d, as);
  return HWY_NATIVE_FMA ? hn::IfThenElse(exact, rest, one_by_one) : one_by_one;
}

// Where the rest, of a's sign, has another sign than b.
template <class D, class V>
HWY_INLINE hn::Mask<D> Differ(D d, V rest, V b) {
  const auto zero = hn::Zero(d);
  const auto differ = hn::Xor(hn::Lt(rest, zero), hn::Lt(b, zero));
  return hn::AndNot(hn::Eq(rest, zero), differ);
}
template <class D, class V>
HWY_INLINE V RemainderOf(D d, V a, V b) {
  const auto rest = FmodOf(d, a, b);
  const auto moved = hn::IfThenElse(Differ(d, rest, b), hn::Add(rest, b), rest);
  return hn::IfThenElse(hn::Eq(rest, hn::Zero(d)), hn::CopySign(hn::Zero(d), b), moved);
}
// As NumPy divides: what remains of a is a multiple of b, up to a rounding.
template <class D, class V>
HWY_INLINE V FloorDivided(D d, V a, V b) {
  using T = hn::TFromD<D>;
  const auto one = hn::Set(d, T(1)), zero = hn::Zero(d);
  const auto rest = FmodOf(d, a, b);
  auto quotient = hn::Div(hn::Sub(a, rest), b);
  quotient = hn::IfThenElse(Differ(d, rest, b), hn::Sub(quotient, one), quotient);
  auto whole = hn::Floor(quotient);
  whole = hn::IfThenElse(hn::Gt(hn::Sub(quotient, whole), hn::Set(d, T(0.5))), hn::Add(whole, one),
                         whole);
  const auto ratio = hn::Div(a, b);
  whole = hn::IfThenElse(hn::Eq(quotient, zero), hn::CopySign(zero, ratio), whole);
  return hn::IfThenElse(hn::Eq(b, zero), ratio, whole);
}

template <class FloatsF, class IntegersF>
BinaryLoop Either(DType dtype, FloatsF floats, IntegersF integers) {
  return IsFloating(dtype) ? Vectors(dtype, floats) : Integers(dtype, integers);
}

}  // namespace

BinaryLoop FindDivisionLoop(BinaryOp op, DType dtype) {
#define OFL_VECTOR_FN(expression) [](auto d, auto a, auto b) OFL_SIMD_LAMBDA { return expression; }
#define OFL_FN(expression) [](auto a, auto b) { return expression; }
  switch (op) {
    case BinaryOp::kFmod:
      return Either(dtype, OFL_VECTOR_FN(FmodOf(d, a, b)),
                    OFL_FN(RestOf(a, TruncQuotient(a, b), b)));
    case BinaryOp::kRemainder:
      return Either(dtype, OFL_VECTOR_FN(RemainderOf(d, a, b)), OFL_FN(FloorRest(a, b)));
    case BinaryOp::kFloorDivide:
      return Either(dtype, OFL_VECTOR_FN(FloorDivided(d, a, b)), OFL_FN(FloorQuotient(a, b)));
    case BinaryOp::kTruncDivide:
      return Either(
          dtype, [](auto, auto a, auto b) OFL_SIMD_LAMBDA { return hn::Trunc(hn::Div(a, b)); },
          OFL_FN(TruncQuotient(a, b)));
    case BinaryOp::kGcd:
      return Integers(dtype, OFL_FN(GreatestDivisor(a, b)));
    case BinaryOp::kLcm:
      return Integers(dtype, OFL_FN(LeastMultiple(a, b)));
    case BinaryOp::kShiftLeft:
      return Integers(dtype, OFL_FN(ShiftedLeft(a, b)));
    case BinaryOp::kShiftRight:
      return Integers(dtype, OFL_FN(ShiftedRight(a, b)));
    case BinaryOp::kLogicalAnd:
      return All(dtype, OFL_FN(bool((a != 0) & (b != 0))));
    case BinaryOp::kLogicalOr:
      return All(dtype, OFL_FN(bool((a != 0) | (b != 0))));
    case BinaryOp::kLogicalXor:
      return All(dtype, OFL_FN((a != 0) != (b != 0)));
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

HWY_EXPORT(FindDivisionLoop);

BinaryLoop FindDivision(BinaryOp op, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindDivisionLoop)(op, ComputeType(dtype));
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
