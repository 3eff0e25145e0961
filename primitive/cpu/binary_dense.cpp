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
#include "primitive/cpu/foreach_target.h"
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

// An operand in one row: elements, or without them one for all.
template <class T>
struct InRow {
  const T* data;
  Pack<T> all;

  HWY_INLINE InRow(const DenseOperand& o, int64_t row)
      : data(static_cast<const T*>(o.data)), all(SetPack<T>(SetNumber<T>(o.number))) {
    if (!data) return;
    data += row * o.row;
    if (!o.each) return;
    all = SetPack<T>(hn::Set(TagOf<T>(), static_cast<ComputeOf<T>>(*data)));
    data = nullptr;
  }
  HWY_INLINE Pack<T> Load(size_t i, size_t count) const {
    return data ? LoadPack(data + i, count, hn::Zero(TagOf<T>())) : all;
  }
};

// An operand in the rows one after another.
template <class T>
struct InRows {
  const T* data;
  int64_t step;
  bool each;
  Pack<T> all;

  HWY_INLINE explicit InRows(const DenseOperand& o)
      : data(static_cast<const T*>(o.data)),
        step(o.row),
        each(data && o.each),
        all(SetPack<T>(SetNumber<T>(o.number))) {}
  HWY_INLINE void Begin() {
    if (each) all = SetPack<T>(hn::Set(TagOf<T>(), static_cast<ComputeOf<T>>(*data)));
  }
  HWY_INLINE Pack<T> Load(size_t i, size_t count) const {
    return data && !each ? LoadPack(data + i, count, hn::Zero(TagOf<T>())) : all;
  }
  HWY_INLINE void Next() {
    if (data) data += step;
  }
};

// Rows of a few packs: what a row sets up takes as long as they do.
template <class T, class F>
void ShortRows(int64_t rows, size_t n, const DenseOperand& a, const DenseOperand& b, T* out,
               int64_t out_row) {
  const size_t size = PackSize<T>();
  InRows<T> x(a), y(b);
  const auto for_rows = [&](auto row) OFL_SIMD_LAMBDA {
    for (int64_t r = 0; r < rows; ++r, out += out_row, x.Next(), y.Next()) {
      x.Begin();
      y.Begin();
      row();
    }
  };
  const auto put = [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    StorePack<false>(EachPart(F(), x.Load(i, count), y.Load(i, count)), out + i, count);
  };
  if (n == size) return for_rows([&]() OFL_SIMD_LAMBDA { put(0, size); });
  for_rows([&]() OFL_SIMD_LAMBDA {
    size_t i = 0;
    for (; i + size <= n; i += size) put(i, size);
    if (i < n) put(i, n - i);
  });
}

template <class T, class F>
void Loop(int64_t rows, int64_t cols, const DenseOperand& a, const DenseOperand& b, void* out_data,
          int64_t out_row) {
  const auto n = static_cast<size_t>(cols);
  T* out = static_cast<T*>(out_data);
  if (rows > 1 && n <= 4 * PackSize<T>()) return ShortRows<T, F>(rows, n, a, b, out, out_row);
  for (int64_t r = 0; r < rows; ++r, out += out_row) {
    const InRow<T> x(a, r), y(b, r);
    GeneratePacks<T, false, true>(n, out, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
      return EachPart(F(), x.Load(i, count), y.Load(i, count));
    });
  }
}
// The bits of a with the sign of b: of either type.
template <class T>
void CopySignLoop(int64_t rows, int64_t cols, const DenseOperand& a, const DenseOperand& b,
                  void* out_data, int64_t out_row) {
  const hn::ScalableTag<uint16_t> d;
  const auto zero = hn::Zero(d), sign = hn::Set(d, uint16_t{0x8000});
  const auto bits = [](double v) { return T(static_cast<float>(v)).bits; };
  for (int64_t r = 0; r < rows; ++r) {
    const auto* x = static_cast<const uint16_t*>(a.data);
    const auto* y = static_cast<const uint16_t*>(b.data);
    if (x) x += r * a.row;
    if (y) y += r * b.row;
    const auto all_x = hn::Set(d, x ? *x : bits(a.number));
    const auto all_y = hn::Set(d, y ? *y : bits(b.number));
    auto* out = static_cast<uint16_t*>(out_data) + r * out_row;
    ForEachVector(d, static_cast<size_t>(cols), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
      const auto u = x && !a.each ? LoadUpTo(d, x + i, count, zero) : all_x;
      const auto v = y && !b.each ? LoadUpTo(d, y + i, count, zero) : all_y;
      StoreUpTo(hn::Or(hn::AndNot(sign, u), hn::And(sign, v)), d, out + i, count);
    });
  }
}
// Of a number that IsShortPower takes.
template <class T>
void PowerLoop(int64_t rows, int64_t cols, const DenseOperand& a, const DenseOperand& b, void* out,
               int64_t out_row) {
  const auto third = [](auto x, auto) OFL_SIMD_LAMBDA { return hn::Mul(hn::Mul(x, x), x); };
  const auto fourth = [](auto x, auto) OFL_SIMD_LAMBDA {
    const auto square = hn::Mul(x, x);
    return hn::Mul(square, square);
  };
  if (b.number == 3) return Loop<T, decltype(third)>(rows, cols, a, b, out, out_row);
  Loop<T, decltype(fourth)>(rows, cols, a, b, out, out_row);
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
