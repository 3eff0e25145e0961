// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of 16-bit floats without a detour through memory: widened, computed in float32 and
// rounded in registers. A chunk that is converted first is stored three times more.
#include "primitive/cpu/binary_loop.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/binary_short.cpp"
#include "hwy/foreach_target.h"
// clang-format on
#include "primitive/cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T, class F>
void Loop(int64_t n, const ShortOperand& a, const ShortOperand& b, void* out_data) {
  const TagOf<T> d;
  const T* x = static_cast<const T*>(a.data);
  const T* y = static_cast<const T*>(b.data);
  T* out = static_cast<T*>(out_data);
  const auto zero = hn::Zero(d);
  const auto all_x = SetPack<T>(hn::Set(d, a.number)), all_y = SetPack<T>(hn::Set(d, b.number));
  const auto at = [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto u = x ? LoadPack(x + i, count, zero) : all_x;
    const auto v = y ? LoadPack(y + i, count, zero) : all_y;
    StorePack<false>(EachPart(F(), u, v), out + i, count);
  };
  const size_t size = PackSize<T>(), all = static_cast<size_t>(n);
  size_t i = 0;
  for (; i + size <= all; i += size) at(i, size);
  if (i < all) at(i, all - i);
}
// The bits of a with the sign of b: of either type.
template <class T>
void CopySignLoop(int64_t n, const ShortOperand& a, const ShortOperand& b, void* out_data) {
  const hn::ScalableTag<uint16_t> d;
  const auto* x = static_cast<const uint16_t*>(a.data);
  const auto* y = static_cast<const uint16_t*>(b.data);
  auto* out = static_cast<uint16_t*>(out_data);
  const auto all_x = hn::Set(d, T(a.number).bits), all_y = hn::Set(d, T(b.number).bits);
  const auto zero = hn::Zero(d), sign = hn::Set(d, uint16_t{0x8000});
  ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto u = x ? LoadUpTo(d, x + i, count, zero) : all_x;
    const auto v = y ? LoadUpTo(d, y + i, count, zero) : all_y;
    StoreUpTo(hn::Or(hn::AndNot(sign, u), hn::And(sign, v)), d, out + i, count);
  });
}
template <class F>
ShortBinaryLoop Of(DType dtype, F) {
  if (dtype == DType::kFloat16) return &Loop<float16, F>;
  return dtype == DType::kBFloat16 ? &Loop<bfloat16, F> : nullptr;
}

}  // namespace

ShortBinaryLoop FindShort(BinaryOp op, DType dtype) {
#define OFL_FN(expression) [](auto a, auto b) OFL_SIMD_LAMBDA { return expression; }
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

HWY_EXPORT(FindShort);

ShortBinaryLoop FindShortBinary(BinaryOp op, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindShort)(op, dtype);
}

}  // namespace oneflow_lite
#endif  // HWY_ONCE
