// SPDX-License-Identifier: Apache-2.0
//
// One function object per slope of an activation, on vectors of the compute type; the table in
// FindSlope names them. 16-bit floats are widened and narrowed chunk by chunk.

#include "primitive/activation.h"
#include "primitive/cpu/chunked_pass.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/activation_backward.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/activation-inl.h"

#ifndef OFL_PRIMITIVE_CPU_ACTIVATION_BACKWARD_ONCE_
#define OFL_PRIMITIVE_CPU_ACTIVATION_BACKWARD_ONCE_
namespace oneflow_lite {
// dx may be dy or x.
using SlopeLoop = void (*)(int64_t n, const ActivationNumbers& numbers, const void* dy,
                           const void* x, void* dx);
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// Each is made from the numbers, and gives dy f'(x) of vectors of the compute type C.
// s (1 + x (1 - s)), s = 1 / (1 + exp(-x)), from the exp that is at most 1.
template <class C>
struct Silu {
  explicit Silu(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> given) const {
    const auto x = Within(d, given, kFar<D>), one = Constant(d, 1);
    const auto e = ExpBelow(d, hn::Neg(hn::Abs(x)));
    const auto part = hn::Div(one, hn::Add(one, e)), small = hn::Mul(e, part);
    const auto below = hn::Lt(x, hn::Zero(d));
    const auto s = hn::IfThenElse(below, small, part), rest = hn::IfThenElse(below, part, small);
    return hn::Mul(dy, hn::Mul(s, hn::MulAdd(x, rest, one)));
  }
};
// n / m + 4 x w / m^2 with u = exp(-|x|): below 0 n = u (u + 2), m = n + 2, w = u (u + 1), above it
// n = 1 + 2 u, m = n + 2 u^2, w = u^2 (u + 1).
template <class C>
struct Mish {
  explicit Mish(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> given) const {
    const auto x = Within(d, given, kFar<D>), one = Constant(d, 1), two = Constant(d, 2);
    const auto u = ExpBelow(d, hn::Neg(hn::Abs(x)));
    const auto below = hn::Lt(x, hn::Zero(d));
    const auto factor = hn::IfThenElse(below, one, u);
    const auto n = hn::IfThenElse(below, hn::Mul(u, hn::Add(u, two)), hn::MulAdd(u, two, one));
    const auto m = hn::MulAdd(hn::IfThenElse(below, one, hn::Mul(u, u)), two, n);
    const auto w = hn::Mul(hn::Mul(u, factor), hn::Add(u, one));
    const auto over = hn::Div(one, m);
    const auto bend = hn::Mul(hn::Mul(hn::Mul(x, Constant(d, 4)), w), over);
    return hn::Mul(dy, hn::Mul(hn::Add(n, bend), over));
  }
};
// 0 up to -3, 1 from 3 on, (2 x + 3) / 6 between.
template <class C>
struct Hardswish {
  explicit Hardswish(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> x) const {
    const auto three = Constant(d, 3);
    const auto line = hn::Mul(hn::MulAdd(x, Constant(d, 2), three), Constant(d, 1.0 / 6));
    const auto slope = hn::IfThenElse(hn::Ge(x, three), Constant(d, 1), line);
    return hn::IfThenZeroElse(hn::Le(x, hn::Neg(three)), hn::Mul(dy, slope));
  }
};
template <class C>
struct Hardsigmoid {
  explicit Hardsigmoid(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> x) const {
    const auto flat = hn::Ge(hn::Abs(x), Constant(d, 3));
    return hn::IfThenZeroElse(flat, hn::Mul(dy, Constant(d, 1.0 / 6)));
  }
};
template <class C>
struct Hardtanh {
  C low, high;
  explicit Hardtanh(const ActivationNumbers& p) : low(p.As<C>(0)), high(p.As<C>(1)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> x) const {
    const auto inner = hn::IfThenZeroElse(hn::Le(x, hn::Set(d, low)), dy);
    return hn::IfThenZeroElse(hn::Ge(x, hn::Set(d, high)), inner);
  }
};
template <class C>
struct LeakyRelu {
  C slope;
  explicit LeakyRelu(const ActivationNumbers& p) : slope(p.As<C>(0)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> x) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), dy, hn::Mul(dy, hn::Set(d, slope)));
  }
};
template <class C>
struct Elu {
  C ac, b, c, c_rest;
  explicit Elu(const ActivationNumbers& p)
      : ac(static_cast<C>(p.real[0] * p.real[2])),
        b(p.As<C>(1)),
        c(p.As<C>(2)),
        c_rest(p.Rest<C>(2)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> x) const {
    const auto p = Scaled(d, x, c, c_rest);
    const auto e = ExpOf(d, p.z);
    const auto low = hn::Mul(hn::MulAdd(e, p.rest, e), hn::Set(d, ac));
    return hn::Mul(dy, hn::IfThenElse(hn::Le(x, hn::Zero(d)), low, hn::Set(d, b)));
  }
};
template <class C>
struct EluOfOutput {
  C a, b, c;
  explicit EluOfOutput(const ActivationNumbers& p) : a(p.As<C>(0)), b(p.As<C>(1)), c(p.As<C>(2)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> y) const {
    const auto low = hn::Mul(hn::Add(y, hn::Set(d, a)), hn::Set(d, c));
    return hn::Mul(dy, hn::IfThenElse(hn::Le(y, hn::Zero(d)), low, hn::Set(d, b)));
  }
};
template <class C>
struct Softplus {
  C beta, rest, threshold;
  explicit Softplus(const ActivationNumbers& p)
      : beta(p.As<C>(0)), rest(p.Rest<C>(0)), threshold(p.As<C>(1)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> x) const {
    const auto p = Scaled(d, x, beta, rest);
    const auto one = Constant(d, 1), e = ExpDown(d, p);
    const auto above = hn::IfThenElse(hn::Lt(p.z, hn::Zero(d)), e, one);
    const auto slope = hn::Div(above, hn::Add(one, e));
    return hn::IfThenElse(hn::Gt(p.z, hn::Set(d, threshold)), dy, hn::Mul(dy, slope));
  }
};
template <class C>
struct LogSigmoid {
  explicit LogSigmoid(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> x) const {
    const auto one = Constant(d, 1), e = ExpBelow(d, hn::Neg(hn::Abs(x)));
    const auto above = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), one, e);
    return hn::Mul(dy, hn::Div(above, hn::Add(one, e)));
  }
};
template <class C>
struct Softsign {
  explicit Softsign(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> x) const {
    const auto part = hn::Div(Constant(d, 1), hn::Add(hn::Abs(x), Constant(d, 1)));
    return hn::Mul(hn::Mul(dy, part), part);
  }
};
template <class C>
struct Tanhshrink {
  explicit Tanhshrink(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> x) const {
    const auto t = TanhOfSize(d, x);
    return hn::Mul(hn::Mul(dy, t), t);
  }
};
template <class C>
struct Shrink {
  C lambd;
  explicit Shrink(const ActivationNumbers& p) : lambd(p.As<C>(0)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> x) const {
    return hn::IfThenZeroElse(hn::Le(hn::Abs(x), hn::Set(d, lambd)), dy);
  }
};
template <class C>
struct Threshold {
  C threshold;
  explicit Threshold(const ActivationNumbers& p) : threshold(p.As<C>(0)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> dy, hn::Vec<D> x) const {
    return hn::IfThenZeroElse(hn::Le(x, hn::Set(d, threshold)), dy);
  }
};

template <class C, template <class> class F>
void Loop(int64_t n, const ActivationNumbers& numbers, const void* dy_data, const void* x_data,
          void* dx_data) {
  const TagOf<C> d;
  const F<C> f(numbers);
  const C *dy = static_cast<const C*>(dy_data), *x = static_cast<const C*>(x_data);
  C* dx = static_cast<C*>(dx_data);
  const auto zero = hn::Zero(d);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    const auto g = LoadUpTo(d, dy + i, count, zero);
    StoreUpTo(f(d, g, LoadUpTo(d, x + i, count, zero)), d, dx + i, count);
  });
}
template <template <class> class F>
SlopeLoop Floats(DType dtype) {
  if (dtype == DType::kFloat32) return &Loop<float, F>;
  return dtype == DType::kFloat64 ? &Loop<double, F> : nullptr;
}

}  // namespace

// Null where there is no code for the compute type.
SlopeLoop FindSlope(ActivationOp op, bool of_output, DType dtype) {
  switch (op) {
    case ActivationOp::kSilu:
      return Floats<Silu>(dtype);
    case ActivationOp::kMish:
      return Floats<Mish>(dtype);
    case ActivationOp::kHardswish:
      return Floats<Hardswish>(dtype);
    case ActivationOp::kHardsigmoid:
      return Floats<Hardsigmoid>(dtype);
    case ActivationOp::kHardtanh:
      return Floats<Hardtanh>(dtype);
    case ActivationOp::kLeakyRelu:
      return Floats<LeakyRelu>(dtype);
    case ActivationOp::kElu:
      return of_output ? Floats<EluOfOutput>(dtype) : Floats<Elu>(dtype);
    case ActivationOp::kSoftplus:
      return Floats<Softplus>(dtype);
    case ActivationOp::kLogSigmoid:
      return Floats<LogSigmoid>(dtype);
    case ActivationOp::kSoftsign:
      return Floats<Softsign>(dtype);
    case ActivationOp::kTanhshrink:
      return Floats<Tanhshrink>(dtype);
    case ActivationOp::kSoftshrink:
    case ActivationOp::kHardshrink:
      return Floats<Shrink>(dtype);
    case ActivationOp::kThreshold:
      return Floats<Threshold>(dtype);
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindSlope);

class CpuActivationBackward final : public ActivationBackward {
 public:
  CpuActivationBackward(DType dtype, SlopeLoop loop)
      : loop_(loop),
        pass_({.in = {dtype, dtype},
               .common = dtype,
               .loop = ComputeType(dtype),
               .result = ComputeType(dtype),
               .out = dtype}) {}

  Status Launch(Stream&, const Elementwise<3>& g, const ActivationNumbers& numbers, const void* dy,
                const void* x, void* dx) const override {
    pass_.Run(g, {{{dy}, {x}}}, dx,
              [&](int64_t n, const auto& in, void* out) { loop_(n, numbers, in[0], in[1], out); });
    return OkStatus();
  }

 private:
  SlopeLoop loop_;
  ChunkedPass<2> pass_;
};

StatusOr<std::unique_ptr<ActivationBackward>> NewBackward(const ActivationBackward::Spec& spec) {
  if (!IsFloating(spec.dtype)) {
    return NoPrimitiveFor(ActivationBackward::kName, DeviceType::kCPU, spec.dtype);
  }
  SlopeLoop loop =
      HWY_DYNAMIC_DISPATCH(FindSlope)(spec.op, spec.of_output, ComputeType(spec.dtype));
  return std::make_unique<CpuActivationBackward>(spec.dtype, loop);
}

const bool registered = RegisterPrimitive<ActivationBackward>(DeviceType::kCPU, &NewBackward);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
