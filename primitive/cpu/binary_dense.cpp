// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of floats without a detour through memory: 16-bit floats are widened, computed in
// float32 and rounded in registers, and numbers are set once. A chunk that is converted first is
// stored three times more.
#include "primitive/cpu/binary_loop.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/binary_dense.cpp"
#include "hwy/foreach_target.h"
// clang-format on
#include "primitive/cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE hn::Vec<TagOf<T>> SetNumber(double v) {
  return hn::Set(TagOf<T>(), static_cast<ComputeOf<T>>(v));
}

template <class T, class F>
void Loop(int64_t n, const DenseOperand& a, const DenseOperand& b, void* out_data) {
  const TagOf<T> d;
  const T* x = static_cast<const T*>(a.data);
  const T* y = static_cast<const T*>(b.data);
  const auto zero = hn::Zero(d);
  const auto all_x = SetPack<T>(SetNumber<T>(a.number));
  const auto all_y = SetPack<T>(SetNumber<T>(b.number));
  GeneratePacks<T, false, true>(static_cast<size_t>(n), static_cast<T*>(out_data),
                                [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
                                  return EachPart(F(), x ? LoadPack(x + i, count, zero) : all_x,
                                                  y ? LoadPack(y + i, count, zero) : all_y);
                                });
}
// The bits of a with the sign of b: of either type.
template <class T>
void CopySignLoop(int64_t n, const DenseOperand& a, const DenseOperand& b, void* out_data) {
  const hn::ScalableTag<uint16_t> d;
  const auto* x = static_cast<const uint16_t*>(a.data);
  const auto* y = static_cast<const uint16_t*>(b.data);
  auto* out = static_cast<uint16_t*>(out_data);
  const auto bits = [](double v) { return T(static_cast<float>(v)).bits; };
  const auto all_x = hn::Set(d, bits(a.number)), all_y = hn::Set(d, bits(b.number));
  const auto zero = hn::Zero(d), sign = hn::Set(d, uint16_t{0x8000});
  ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto u = x ? LoadUpTo(d, x + i, count, zero) : all_x;
    const auto v = y ? LoadUpTo(d, y + i, count, zero) : all_y;
    StoreUpTo(hn::Or(hn::AndNot(sign, u), hn::And(sign, v)), d, out + i, count);
  });
}
// Of a number that IsShortPower takes.
template <class T>
void PowerLoop(int64_t n, const DenseOperand& a, const DenseOperand& b, void* out) {
  const auto third = [](auto x, auto) OFL_SIMD_LAMBDA { return hn::Mul(hn::Mul(x, x), x); };
  const auto fourth = [](auto x, auto) OFL_SIMD_LAMBDA {
    const auto square = hn::Mul(x, x);
    return hn::Mul(square, square);
  };
  if (b.number == 3) return Loop<T, decltype(third)>(n, a, b, out);
  Loop<T, decltype(fourth)>(n, a, b, out);
}
template <class V>
HWY_INLINE V PreluOf(V x, V weight) {
  const auto above = hn::Gt(x, hn::Zero(hn::DFromV<V>()));
  return hn::IfThenElse(above, x, hn::Mul(x, weight));
}
template <class F>
DenseBinaryLoop Of(DType dtype, F) {
  return VisitFloating(dtype, []<class T>(Tag<T>) -> DenseBinaryLoop { return &Loop<T, F>; });
}

}  // namespace

DenseBinaryLoop FindDense(BinaryOp op, DType dtype) {
#define OFL_FN(expression) [](auto a, auto b) OFL_SIMD_LAMBDA { return expression; }
  if (!IsFloating(dtype)) return nullptr;
  switch (op) {
    case BinaryOp::kAdd:
      return Of(dtype, OFL_FN(hn::Add(a, b)));
    case BinaryOp::kSub:
      return Of(dtype, OFL_FN(hn::Sub(a, b)));
    case BinaryOp::kMul:
      return Of(dtype, OFL_FN(hn::Mul(a, b)));
    case BinaryOp::kDiv:
      return Of(dtype, OFL_FN(hn::Div(a, b)));
    case BinaryOp::kMaximum:
      return Of(dtype, OFL_FN(hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b)));
    case BinaryOp::kMinimum:
      return Of(dtype, OFL_FN(hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b)));
    case BinaryOp::kPrelu:
      return Of(dtype, OFL_FN(PreluOf(a, b)));
    case BinaryOp::kPow:
      return VisitFloating(dtype, []<class T>(Tag<T>) -> DenseBinaryLoop { return &PowerLoop<T>; });
    case BinaryOp::kCopySign:
      if (dtype == DType::kFloat16) return &CopySignLoop<float16>;
      return dtype == DType::kBFloat16 ? &CopySignLoop<bfloat16> : nullptr;
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

DenseBinaryLoop FindDenseBinary(BinaryOp op, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindDense)(op, dtype);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
