// SPDX-License-Identifier: Apache-2.0
//
// Loops over both halves of a row on vectors of the compute type; 16-bit floats are widened and
// narrowed chunk by chunk.

#include "primitive/gated.h"

#include <algorithm>
#include <cstring>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/gated.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/activation-inl.h"

#ifndef OFL_PRIMITIVE_CPU_GATED_ONCE_
#define OFL_PRIMITIVE_CPU_GATED_ONCE_
namespace oneflow_lite {
// Of n elements of the compute type; nothing overlaps but what begins at the same address.
struct GatedLoops {
  void (*forward)(int64_t n, const void* a, const void* b, void* y) = nullptr;
  void (*backward)(int64_t n, const void* g, const void* a, const void* b, void* da,
                   void* db) = nullptr;
};
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// 1 / (1 + exp(-x)) and 1 less it, from the exp that is at most 1.
template <class D>
struct Logistic {
  hn::Vec<D> s, rest;
};
template <class D>
HWY_INLINE Logistic<D> LogisticOf(D d, hn::Vec<D> x) {
  const auto one = Constant(d, 1), e = ExpBelow(d, hn::Neg(hn::Abs(x)));
  const auto part = hn::Div(one, hn::Add(one, e)), small = hn::Mul(e, part);
  const auto below = hn::Lt(x, hn::Zero(d));
  return {hn::IfThenElse(below, small, part), hn::IfThenElse(below, part, small)};
}

struct Glu {
  template <class D>
  static HWY_INLINE hn::Vec<D> Value(D d, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Mul(a, LogisticOf(d, b).s);
  }
  template <class D>
  static HWY_INLINE void Slopes(D d, hn::Vec<D> g, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D>* da,
                                hn::Vec<D>* db) {
    const auto l = LogisticOf(d, b);
    *da = hn::Mul(g, l.s);
    *db = hn::Mul(hn::Mul(hn::Mul(g, a), l.s), l.rest);
  }
};
struct Swiglu {
  template <class D>
  static HWY_INLINE hn::Vec<D> Silu(D d, hn::Vec<D> x) {
    const auto near = hn::Max(hn::Neg(hn::Abs(x)), Constant(d, -kFar<D>));
    const auto t = ExpOfTail(d, near);
    const auto tail = hn::Mul(hn::Mul(near, t.e), t.back);
    const auto above = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, x);
    return hn::Div(above, hn::Add(t.e, Constant(d, 1)));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> Value(D d, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Mul(Silu(d, a), b);
  }
  template <class D>
  static HWY_INLINE void Slopes(D d, hn::Vec<D> g, hn::Vec<D> given, hn::Vec<D> b, hn::Vec<D>* da,
                                hn::Vec<D>* db) {
    const auto a = Within(d, given, kFar<D>);
    const auto l = LogisticOf(d, a);
    *da = hn::Mul(hn::Mul(g, b), hn::Mul(l.s, hn::MulAdd(a, l.rest, Constant(d, 1))));
    *db = hn::Mul(g, Silu(d, given));
  }
};

template <class Gate, class C>
void Forward(int64_t n, const void* a_data, const void* b_data, void* y_data) {
  const TagOf<C> d;
  const C *a = static_cast<const C*>(a_data), *b = static_cast<const C*>(b_data);
  C* y = static_cast<C*>(y_data);
  const auto zero = hn::Zero(d);
  ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto u = LoadUpTo(d, a + i, count, zero);
    StoreUpTo(Gate::Value(d, u, LoadUpTo(d, b + i, count, zero)), d, y + i, count);
  });
}
template <class Gate, class C>
void Backward(int64_t n, const void* g_data, const void* a_data, const void* b_data, void* da_data,
              void* db_data) {
  const TagOf<C> d;
  const C *g = static_cast<const C*>(g_data), *a = static_cast<const C*>(a_data);
  const C* b = static_cast<const C*>(b_data);
  C *da = static_cast<C*>(da_data), *db = static_cast<C*>(db_data);
  const auto zero = hn::Zero(d);
  ForEachVector(d, static_cast<size_t>(n), [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    auto first = zero, second = zero;
    Gate::Slopes(d, LoadUpTo(d, g + i, count, zero), LoadUpTo(d, a + i, count, zero),
                 LoadUpTo(d, b + i, count, zero), &first, &second);
    StoreUpTo(first, d, da + i, count);
    StoreUpTo(second, d, db + i, count);
  });
}
template <class Gate>
GatedLoops Floats(DType dtype) {
  if (dtype == DType::kFloat32) return {&Forward<Gate, float>, &Backward<Gate, float>};
  if (dtype == DType::kFloat64) return {&Forward<Gate, double>, &Backward<Gate, double>};
  return {};
}

}  // namespace

// Null where there is no code for the compute type.
GatedLoops FindGatedLoops(GateKind kind, DType dtype) {
  return kind == GateKind::kGlu ? Floats<Glu>(dtype) : Floats<Swiglu>(dtype);
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindGatedLoops);

constexpr int64_t kChunk = 1024;  // elements of an operand in the nearest cache
constexpr int64_t kGrain = 8192;

// An operand's chunk in the compute type: as it lies, or in a buffer of its own.
class Operand {
 public:
  Operand(ConvertFunction widen, ConvertFunction narrow) : widen_(widen), narrow_(narrow) {}
  const void* Read(int64_t n, const void* p) {
    if (!widen_) return p;
    widen_(n, p, buffer_);
    return buffer_;
  }
  void* Room(void* p) { return narrow_ ? buffer_ : p; }
  void Write(int64_t n, void* p) const {
    if (narrow_) narrow_(n, buffer_, p);
  }

 private:
  ConvertFunction widen_, narrow_;
  alignas(64) float buffer_[kChunk];  // of 16-bit floats alone
};

class CpuGatedUnit final : public GatedUnit {
 public:
  CpuGatedUnit(DType dtype, GatedLoops loops)
      : item_(static_cast<int64_t>(SizeOf(dtype))), loops_(loops) {
    if (ComputeType(dtype) == dtype) return;
    widen_ = FindConvert(dtype, DType::kFloat32);
    narrow_ = FindConvert(DType::kFloat32, dtype);
  }

  Status Launch(Stream&, int64_t rows, int64_t half, const void* x, void* y) const override {
    ForChunks(rows, half, [&](int64_t row, int64_t at, int64_t n) {
      Operand a(widen_, narrow_), b(widen_, narrow_), out(widen_, narrow_);
      void* to = At(y, row * half + at);
      loops_.forward(n, a.Read(n, At(x, 2 * row * half + at)),
                     b.Read(n, At(x, (2 * row + 1) * half + at)), out.Room(to));
      out.Write(n, to);
    });
    return OkStatus();
  }
  Status LaunchBackward(Stream&, int64_t rows, int64_t half, const void* dy, const void* x,
                        void* dx) const override {
    ForChunks(rows, half, [&](int64_t row, int64_t at, int64_t n) {
      Operand g(widen_, narrow_), a(widen_, narrow_), b(widen_, narrow_);
      Operand da(widen_, narrow_), db(widen_, narrow_);
      const int64_t first = 2 * row * half + at, second = first + half;
      loops_.backward(n, g.Read(n, At(dy, row * half + at)), a.Read(n, At(x, first)),
                      b.Read(n, At(x, second)), da.Room(At(dx, first)), db.Room(At(dx, second)));
      da.Write(n, At(dx, first));
      db.Write(n, At(dx, second));
    });
    return OkStatus();
  }

 private:
  const void* At(const void* p, int64_t i) const { return static_cast<const char*>(p) + i * item_; }
  void* At(void* p, int64_t i) const { return static_cast<char*>(p) + i * item_; }

  // Calls f(row, place in the half, elements) for parts of at most kChunk elements.
  template <class F>
  static void ForChunks(int64_t rows, int64_t half, const F& f) {
    if (half <= 0) return;
    const int64_t parts = (half + kChunk - 1) / kChunk;
    const int64_t grain = std::max<int64_t>(1, kGrain / std::min(half, kChunk));
    ParallelFor(rows * parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i % parts * kChunk;
        f(i / parts, at, std::min(kChunk, half - at));
      }
    });
  }

  int64_t item_;
  GatedLoops loops_;
  ConvertFunction widen_ = nullptr, narrow_ = nullptr;
};

StatusOr<std::unique_ptr<GatedUnit>> NewGatedUnit(const GatedUnit::Spec& spec) {
  if (!IsFloating(spec.dtype)) {
    return NoPrimitiveFor(GatedUnit::kName, DeviceType::kCPU, spec.dtype);
  }
  return std::make_unique<CpuGatedUnit>(
      spec.dtype, HWY_DYNAMIC_DISPATCH(FindGatedLoops)(spec.kind, ComputeType(spec.dtype)));
}

const bool registered = RegisterPrimitive<GatedUnit>(DeviceType::kCPU, &NewGatedUnit);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
