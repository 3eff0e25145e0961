// SPDX-License-Identifier: Apache-2.0
#include "primitive/multi_tensor.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/multi_tensor.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_MULTI_TENSOR_ONCE_
#define OFL_PRIMITIVE_CPU_MULTI_TENSOR_ONCE_
namespace oneflow_lite {
// Works on the elements [begin, end) of a tensor, by the factors of its compute type.
using MultiTensorLoop = void (*)(const MultiTensors& t, const void* factors, int64_t begin,
                                 int64_t end);
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class D>
struct Values {
  using V = hn::Vec<D>;
  V v[kMultiValues];
  V& p() { return v[kSlotP]; }
  V& g() { return v[kSlotG]; }
  V& a() { return v[kSlotA]; }
  V& b() { return v[kSlotB]; }
  V& c() { return v[kSlotC]; }
};

// Which values an op reads and writes, beside p; of those that a tensor has.
constexpr unsigned BitOf(MultiSlot slot) { return 1u << slot; }
constexpr unsigned Touched(MultiTensorOp op) {
  switch (op) {
    case MultiTensorOp::kRmsprop:
      return BitOf(kSlotA) | BitOf(kSlotB) | BitOf(kSlotC);
    case MultiTensorOp::kAdadelta:
      return BitOf(kSlotA) | BitOf(kSlotB);
    case MultiTensorOp::kSgd:
    case MultiTensorOp::kAdagrad:
    case MultiTensorOp::kLion:
    case MultiTensorOp::kUpdateScale:
      return BitOf(kSlotA);
    default:
      return 0;
  }
}
constexpr bool HasGradient(MultiTensorOp op) {
  return op < MultiTensorOp::kScale || op == MultiTensorOp::kUpdateScale;
}

template <class D, class C>
HWY_INLINE void UpdateScale(D d, const MultiFactors<C>& f, Values<D>& e) {
  const auto bad = hn::Gt(e.g(), hn::Zero(d));
  const auto counted = hn::Add(e.a(), hn::Set(d, C(1)));
  const auto due = hn::Ge(counted, hn::Set(d, f.eps));
  const auto grown = hn::Mul(e.p(), hn::Set(d, f.rate));
  const auto finite = hn::Eq(hn::Sub(grown, grown), hn::Zero(d));
  const auto after = hn::IfThenElse(hn::And(due, finite), grown, e.p());
  e.p() = hn::IfThenElse(bad, hn::Mul(e.p(), hn::Set(d, f.add)), after);
  e.a() = hn::IfThenElse(hn::Or(bad, due), hn::Zero(d), counted);
}

template <class D, class C>
HWY_INLINE void UpdateAdadelta(D d, const MultiFactors<C>& f, Values<D>& e) {
  const auto set = [&](C x) OFL_SIMD_LAMBDA { return hn::Set(d, x); };
  const auto square = [&](auto mean, auto x) OFL_SIMD_LAMBDA {
    return hn::MulAdd(set(f.keep), mean, hn::Mul(hn::Mul(set(f.add), x), x));
  };
  const auto root = [&](auto x) OFL_SIMD_LAMBDA { return hn::Sqrt(hn::Add(x, set(f.eps))); };
  e.a() = square(e.a(), e.g());
  const auto step = hn::Mul(hn::Div(root(e.b()), root(e.a())), e.g());
  e.b() = square(e.b(), step);
  e.p() = hn::NegMulAdd(set(f.rate), step, e.p());
}

// The formulas of primitive/multi_tensor.h on vectors.
template <MultiTensorOp op, class D, class C>
HWY_INLINE void Apply(D d, const MultiTensors& t, const MultiFactors<C>& f, Values<D>& e) {
  const auto set = [&](C x) OFL_SIMD_LAMBDA { return hn::Set(d, x); };
  const auto rate = set(f.rate);
  if constexpr (op <= MultiTensorOp::kLion) e.g() = hn::Mul(e.g(), set(f.grad));
  if constexpr (op <= MultiTensorOp::kAdagrad) {
    if (f.decay != 0) e.g() = hn::MulAdd(set(f.decay), e.p(), e.g());
  }
  if constexpr (op == MultiTensorOp::kSgd) {
    if (t.data[kSlotA]) {
      e.a() = f.first ? e.g() : hn::MulAdd(set(f.keep), e.a(), hn::Mul(set(f.add), e.g()));
      e.g() = f.nesterov ? hn::MulAdd(set(f.keep), e.a(), e.g()) : e.a();
    }
    e.p() = hn::NegMulAdd(rate, e.g(), e.p());
  } else if constexpr (op == MultiTensorOp::kRmsprop) {
    e.a() = hn::MulAdd(set(f.keep), e.a(), hn::Mul(hn::Mul(set(f.add), e.g()), e.g()));
    auto spread = e.a();
    if (t.data[kSlotB]) {
      e.b() = hn::MulAdd(set(f.add), hn::Sub(e.g(), e.b()), e.b());
      spread = hn::NegMulAdd(e.b(), e.b(), spread);
    }
    auto step = hn::Div(e.g(), hn::Add(hn::Sqrt(spread), set(f.eps)));
    if (t.data[kSlotC]) step = e.c() = hn::MulAdd(set(f.keep2), e.c(), step);
    e.p() = hn::NegMulAdd(rate, step, e.p());
  } else if constexpr (op == MultiTensorOp::kAdadelta) {
    UpdateAdadelta(d, f, e);
  } else if constexpr (op == MultiTensorOp::kAdagrad) {
    e.a() = hn::MulAdd(e.g(), e.g(), e.a());
    e.p() = hn::NegMulAdd(rate, hn::Div(e.g(), hn::Add(hn::Sqrt(e.a()), set(f.eps))), e.p());
  } else if constexpr (op == MultiTensorOp::kLion) {
    const auto way = hn::MulAdd(set(f.keep2), e.a(), hn::Mul(set(f.add2), e.g()));
    const auto zero = hn::Zero(d);
    auto sign = hn::IfThenElse(hn::Gt(way, zero), set(1), zero);
    sign = hn::IfThenElse(hn::Lt(way, zero), set(-1), sign);
    sign = hn::IfThenElse(hn::IsNaN(way), way, sign);
    e.p() = hn::NegMulAdd(rate, sign, hn::Mul(e.p(), set(f.decay)));
    e.a() = hn::MulAdd(set(f.keep), e.a(), hn::Mul(set(f.add), e.g()));
  } else if constexpr (op == MultiTensorOp::kLerp) {
    const auto way = hn::Sub(e.g(), e.p());
    e.p() =
        f.rate < C(0.5) ? hn::MulAdd(rate, way, e.p()) : hn::NegMulAdd(set(1 - f.rate), way, e.g());
  } else if constexpr (op == MultiTensorOp::kScale) {
    e.p() = hn::Mul(e.p(), rate);
  } else if constexpr (op == MultiTensorOp::kClamp) {  // NaN stays
    e.p() = hn::IfThenElse(hn::Lt(e.p(), rate), rate, e.p());
    e.p() = hn::IfThenElse(hn::Gt(e.p(), set(f.add)), set(f.add), e.p());
  } else if constexpr (op == MultiTensorOp::kFill) {
    e.p() = rate;
  } else if constexpr (op == MultiTensorOp::kUnscale) {
    if (!hn::AllTrue(d, hn::Eq(hn::Sub(e.p(), e.p()), hn::Zero(d)))) {
      std::atomic_ref<float>(*t.flag).store(1, std::memory_order_relaxed);
    }
    e.p() = hn::Mul(e.p(), set(f.grad));
  } else {
    UpdateScale(d, f, e);
  }
}

template <class T, MultiTensorOp op>
void Loop(const MultiTensors& t, const void* factors, int64_t begin, int64_t end) {
  using C = ComputeOf<T>;
  const TagOf<T> d;
  const auto& f = *static_cast<const MultiFactors<C>*>(factors);
  const auto zero = hn::Zero(d);
  T* p = static_cast<T*>(t.data[kSlotP]);
  const T* g = static_cast<const T*>(t.data[kSlotG]);
  C* master = static_cast<C*>(t.master);
  ForEachVector(d, static_cast<size_t>(end - begin), [&](size_t k, size_t n) OFL_SIMD_LAMBDA {
    const size_t i = static_cast<size_t>(begin) + k;
    Values<TagOf<T>> e{{zero, zero, zero, zero, zero}};
    e.p() = master ? LoadUpTo(d, master + i, n, zero) : LoadUpTo(d, p + i, n, zero);
    if constexpr (HasGradient(op)) e.g() = LoadUpTo(d, g + i, n, zero);
    for (int s = kSlotA; s < kMultiValues; ++s) {
      if (!(Touched(op) >> s & 1) || !t.data[s]) continue;
      e.v[s] = LoadUpTo(d, static_cast<C*>(t.data[s]) + i, n, zero);
    }
    Apply<op>(d, t, f, e);
    for (int s = kSlotA; s < kMultiValues; ++s) {
      if (!(Touched(op) >> s & 1) || !t.data[s]) continue;
      StoreUpTo(e.v[s], d, static_cast<C*>(t.data[s]) + i, n);
    }
    if (master) StoreUpTo(e.p(), d, master + i, n);
    StoreUpTo(e.p(), d, p + i, n);
  });
}

template <class T>
MultiTensorLoop LoopOf(MultiTensorOp op) {
  using Op = MultiTensorOp;
  static constexpr MultiTensorLoop kLoops[] = {
      &Loop<T, Op::kSgd>,     &Loop<T, Op::kRmsprop>,    &Loop<T, Op::kAdadelta>,
      &Loop<T, Op::kAdagrad>, &Loop<T, Op::kLion>,       &Loop<T, Op::kLerp>,
      &Loop<T, Op::kScale>,   &Loop<T, Op::kClamp>,      &Loop<T, Op::kFill>,
      &Loop<T, Op::kUnscale>, &Loop<T, Op::kUpdateScale>};
  return kLoops[static_cast<int>(op)];
}

}  // namespace

MultiTensorLoop FindMultiTensor(MultiTensorOp op, DType dtype) {
  if (!IsFloating(dtype)) return nullptr;
  return VisitFloating(dtype, [&]<class T>(Tag<T>) { return LoopOf<T>(op); });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindMultiTensor);

constexpr int64_t kGrain = 16384;  // elements a thread is worth starting for

class CpuMultiTensor final : public MultiTensor {
 public:
  CpuMultiTensor(MultiTensorOp op, MultiTensorLoop loop, bool wide)
      : op_(op), loop_(loop), wide_(wide) {}

  Status Launch(Stream&, const MultiTensorProblem& problem,
                absl::Span<const MultiTensors> tensors) const override {
    if (problem.found_inf && *problem.found_inf != 0) return OkStatus();
    wide_ ? Step<double>(problem, tensors) : Step<float>(problem, tensors);
    for (const MultiTensors& t : tensors) {
      if (t.step) *t.step += 1;
    }
    return OkStatus();
  }

 private:
  template <class C>
  void Step(const MultiTensorProblem& p, absl::Span<const MultiTensors> tensors) const {
    std::vector<MultiFactors<C>> factors;
    std::vector<int64_t> ends;  // of all elements in one row
    for (const MultiTensors& t : tensors) {
      const double step = t.step ? *t.step + 1 : static_cast<double>(p.step);
      factors.push_back(MultiFactorsOf<C>(op_, p, step));
      ends.push_back((ends.empty() ? 0 : ends.back()) + t.numel);
    }
    ParallelFor(ends.back(), kGrain, [&](int64_t begin, int64_t end) {
      size_t i = std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin();
      for (; begin < end; begin = ends[i++]) {
        const int64_t start = ends[i] - tensors[i].numel;
        loop_(tensors[i], &factors[i], begin - start, std::min(end, ends[i]) - start);
      }
    });
  }

  MultiTensorOp op_;
  MultiTensorLoop loop_;
  bool wide_;
};

StatusOr<std::unique_ptr<MultiTensor>> NewMultiTensor(const MultiTensor::Spec& spec) {
  MultiTensorLoop loop = HWY_DYNAMIC_DISPATCH(FindMultiTensor)(spec.op, spec.dtype);
  if (!loop) return NoPrimitiveFor(MultiTensor::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuMultiTensor>(spec.op, loop, spec.dtype == DType::kFloat64);
}

const bool registered = RegisterPrimitive<MultiTensor>(DeviceType::kCPU, &NewMultiTensor);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
