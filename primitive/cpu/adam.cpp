// SPDX-License-Identifier: Apache-2.0
#include "primitive/adam.h"

#include <algorithm>
#include <vector>

#include "oneflow_lite/core/parallel.h"
#include "primitive/adam_math.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/adam.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/simd-inl.h"

#ifndef OFL_PRIMITIVE_CPU_ADAM_ONCE_
#define OFL_PRIMITIVE_CPU_ADAM_ONCE_
namespace oneflow_lite {
// Steps the elements [begin, end) of a tensor, by the factors of its compute type.
using AdamLoop = void (*)(const AdamTensors& t, const void* factors, int64_t begin, int64_t end);
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void Loop(const AdamTensors& t, const void* factors, int64_t begin, int64_t end) {
  using C = ComputeOf<T>;
  const TagOf<T> d;
  const auto& f = *static_cast<const AdamFactors<C>*>(factors);
  const auto zero = hn::Zero(d);
  T* param = static_cast<T*>(t.param);
  const T* grad = static_cast<const T*>(t.grad);
  C* mean = static_cast<C*>(t.exp_avg);
  C* square = static_cast<C*>(t.exp_avg_sq);
  C* most = static_cast<C*>(t.max_exp_avg_sq);
  C* master = static_cast<C*>(t.master);
  ForEachVector(d, static_cast<size_t>(end - begin), [&](size_t k, size_t n) OFL_SIMD_LAMBDA {
    const size_t i = static_cast<size_t>(begin) + k;
    auto p = master ? LoadUpTo(d, master + i, n, zero) : LoadUpTo(d, param + i, n, zero);
    auto g = hn::Mul(LoadUpTo(d, grad + i, n, zero), hn::Set(d, f.grad));
    if (f.l2 != 0) g = hn::MulAdd(hn::Set(d, f.l2), p, g);
    p = hn::Mul(p, hn::Set(d, f.decay));
    const auto m = hn::MulAdd(hn::Set(d, f.keep1), LoadUpTo(d, mean + i, n, zero),
                              hn::Mul(hn::Set(d, f.add1), g));
    const auto scaled = hn::Mul(hn::Set(d, f.add2), g);
    auto v =
        hn::MulAdd(hn::Set(d, f.keep2), LoadUpTo(d, square + i, n, zero), hn::Mul(scaled, scaled));
    StoreUpTo(m, d, mean + i, n);
    StoreUpTo(v, d, square + i, n);
    if (most) {
      const auto before = LoadUpTo(d, most + i, n, zero);
      v = hn::IfThenElse(hn::Gt(before, v), before, v);  // a NaN of v stays
      StoreUpTo(v, d, most + i, n);
    }
    const auto root = hn::MulAdd(hn::Set(d, f.root), hn::Sqrt(v), hn::Set(d, f.eps));
    p = hn::NegMulAdd(hn::Set(d, f.rate), hn::Div(m, root), p);
    if (master) StoreUpTo(p, d, master + i, n);
    StoreUpTo(p, d, param + i, n);
  });
}

}  // namespace

AdamLoop FindAdam(DType dtype) {
  if (!IsFloating(dtype)) return nullptr;
  return VisitFloating(dtype, []<class T>(Tag<T>) -> AdamLoop { return &Loop<T>; });
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindAdam);

constexpr int64_t kGrain = 16384;  // elements a thread is worth starting for

// The factors of each tensor; those with the same step have the same.
template <class C>
std::vector<AdamFactors<C>> AllFactors(const AdamProblem& p,
                                       absl::Span<const AdamTensors> tensors) {
  std::vector<AdamFactors<C>> factors;
  factors.reserve(tensors.size());
  for (const AdamTensors& t : tensors) {
    const double step = t.step ? *t.step + 1 : static_cast<double>(p.step);
    factors.push_back(FactorsOf<C>(p.device_lr ? *p.device_lr : p.lr, p.beta1, p.beta2, p.eps,
                                   p.weight_decay, p.decoupled, p.maximize,
                                   p.grad_scale ? *p.grad_scale : 1, step));
  }
  return factors;
}

class CpuAdam final : public Adam {
 public:
  CpuAdam(AdamLoop loop, bool wide) : loop_(loop), wide_(wide) {}

  Status Launch(Stream&, const AdamProblem& problem,
                absl::Span<const AdamTensors> tensors) const override {
    if (problem.found_inf && *problem.found_inf != 0) return OkStatus();
    if (wide_) {
      Step(AllFactors<double>(problem, tensors), tensors);
    } else {
      Step(AllFactors<float>(problem, tensors), tensors);
    }
    for (const AdamTensors& t : tensors) {
      if (t.step) *t.step += 1;
    }
    return OkStatus();
  }

 private:
  template <class C>
  void Step(const std::vector<AdamFactors<C>>& factors,
            absl::Span<const AdamTensors> tensors) const {
    // All elements in one row: ends[i] is where tensor i ends.
    std::vector<int64_t> ends;
    ends.reserve(tensors.size());
    for (const AdamTensors& t : tensors) ends.push_back((ends.empty() ? 0 : ends.back()) + t.numel);
    ParallelFor(ends.back(), kGrain, [&](int64_t begin, int64_t end) {
      size_t i = std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin();
      for (; begin < end; begin = ends[i++]) {
        const int64_t start = ends[i] - tensors[i].numel;
        loop_(tensors[i], &factors[i], begin - start, std::min(end, ends[i]) - start);
      }
    });
  }

  AdamLoop loop_;
  bool wide_;
};

StatusOr<std::unique_ptr<Adam>> NewAdam(const Adam::Spec& spec) {
  AdamLoop loop = HWY_DYNAMIC_DISPATCH(FindAdam)(spec.dtype);
  if (!loop) return NoPrimitiveFor(Adam::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuAdam>(loop, spec.dtype == DType::kFloat64);
}

const bool registered = RegisterPrimitive<Adam>(DeviceType::kCPU, &NewAdam);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
