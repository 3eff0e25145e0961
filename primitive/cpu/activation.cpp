// SPDX-License-Identifier: Apache-2.0
//
// One function object per activation, on vectors of the compute type; the table in FindActivation
// names them. 16-bit floats are widened and narrowed chunk by chunk.
#include "primitive/activation.h"

#include "primitive/cpu/chunked_pass.h"
#include "primitive/cpu/simd_targets.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/activation.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/activation-inl.h"
#include "primitive/cpu/pack-inl.h"

#ifndef OFL_PRIMITIVE_CPU_ACTIVATION_ONCE_
#define OFL_PRIMITIVE_CPU_ACTIVATION_ONCE_
namespace oneflow_lite {
// y may be x.
using ActivationLoop = void (*)(int64_t n, const ActivationNumbers& numbers, const void* x,
                                void* y);
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// Each is made from the numbers, and takes and gives vectors of the compute type C.
template <class C>
struct Silu {
  explicit Silu(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    const auto below = hn::Lt(x, hn::Zero(d));
    const auto near = hn::Max(hn::Neg(hn::Abs(x)), Constant(d, -kFar<D>));
    const auto t = ExpOfTail(d, near);
    const auto tail = hn::Mul(hn::Mul(near, t.e), t.back);
    return hn::Div(hn::IfThenElse(below, tail, x), hn::Add(t.e, Constant(d, 1)));
  }
};
// x tanh(log(1 + e^x)) = x n / (n + 2), n = e^x (e^x + 2); above 0 both over e^2x.
template <class C>
struct Mish {
  explicit Mish(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    const auto below = hn::Lt(x, hn::Zero(d));
    const auto near = hn::Max(hn::Neg(hn::Abs(x)), Constant(d, -kFar<D>)), two = Constant(d, 2);
    const auto t = ExpOfTail(d, near);
    const auto n_below = hn::Mul(t.e, hn::Add(t.e, two));
    const auto n_above = hn::MulAdd(t.e, two, Constant(d, 1));
    const auto n = hn::IfThenElse(below, n_below, n_above);
    const auto rest = hn::IfThenElse(below, two, hn::Mul(hn::Mul(t.e, t.e), two));
    const auto share = hn::Div(n, hn::Add(n, rest));
    return hn::IfThenElse(below, hn::Mul(hn::Mul(near, share), t.back), hn::Mul(x, share));
  }
};
template <class C>
struct Hardtanh {
  C low, high;
  explicit Hardtanh(const ActivationNumbers& p) : low(p.As<C>(0)), high(p.As<C>(1)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    const auto least = hn::Set(d, low), most = hn::Set(d, high);
    return hn::IfThenElse(hn::Lt(x, least), least, hn::IfThenElse(hn::Gt(x, most), most, x));
  }
};
// (x + 3) / 6 within [0, 1]
template <class D>
HWY_INLINE hn::Vec<D> Ramp(D d, hn::Vec<D> x) {
  const auto zero = hn::Zero(d), six = Constant(d, 6);
  const auto v = hn::Add(x, Constant(d, 3));
  const auto within = hn::IfThenElse(hn::Lt(v, zero), zero, hn::IfThenElse(hn::Gt(v, six), six, v));
  return hn::Mul(within, Constant(d, 1.0 / 6));
}
template <class C>
struct Hardsigmoid {
  explicit Hardsigmoid(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    return Ramp(d, x);
  }
};
template <class C>
struct Hardswish {
  explicit Hardswish(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    const auto y = hn::Mul(x, Ramp(d, x));  // of -inf it would be NaN
    return hn::IfThenElse(hn::Lt(x, Constant(d, -3)), Constant(d, -0.0), y);
  }
};
template <class C>
struct LeakyRelu {
  C slope;
  explicit LeakyRelu(const ActivationNumbers& p) : slope(p.As<C>(0)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(x, hn::Set(d, slope)));
  }
};
template <class C>
struct Elu {
  C a, b, c, c_rest;
  explicit Elu(const ActivationNumbers& p)
      : a(p.As<C>(0)), b(p.As<C>(1)), c(p.As<C>(2)), c_rest(p.Rest<C>(2)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    const auto p = Scaled(d, x, c, c_rest);
    const auto m = ExpM1Of(d, p.z);
    const auto whole = hn::MulAdd(p.rest, hn::Add(m, Constant(d, 1)), m);
    const auto low = hn::Mul(hn::CopySign(whole, m), hn::Set(d, a));
    return hn::IfThenElse(hn::Le(x, hn::Zero(d)), low, hn::Mul(x, hn::Set(d, b)));
  }
};
template <class C>
struct Softplus {
  C beta, rest, threshold;
  explicit Softplus(const ActivationNumbers& p)
      : beta(p.As<C>(0)), rest(p.Rest<C>(0)), threshold(p.As<C>(1)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    const auto p = Scaled(d, x, beta, rest);
    const auto bend = hn::Div(Log1POf(d, ExpDown(d, p)), hn::Set(d, beta));
    const auto line = hn::IfThenElseZero(hn::Gt(p.z, hn::Zero(d)), x);
    return hn::IfThenElse(hn::Gt(p.z, hn::Set(d, threshold)), x, hn::Add(line, bend));
  }
};
template <class C>
struct LogSigmoid {
  explicit LogSigmoid(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    const auto bend = Log1POf(d, ExpBelow(d, hn::Neg(hn::Abs(x))));
    return hn::Sub(hn::IfThenElseZero(hn::Lt(x, hn::Zero(d)), x), bend);
  }
};
template <class C>
struct Softsign {
  explicit Softsign(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    const auto size = hn::Abs(Within(d, x, 0x1p60));  // whose share is 1, as that of infinity
    return hn::CopySign(hn::Div(size, hn::Add(size, Constant(d, 1))), x);
  }
};
// Up to 1.5 by Lambert's continued fraction of tanh, cut after ten levels: with t = x^2,
// x t (1 - t R(t) / Q(t)) / 3, relative error 1e-18; t R(t) / Q(t) < 1/2.
template <class C>
struct Tanhshrink {
  explicit Tanhshrink(const ActivationNumbers&) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    constexpr double kR[] = {66, 44850, 7438860, 392837445, 5499724230};
    constexpr double kQ[] = {66, 45045, 7567560, 413513100, 6547290750, 13749310575};
    const auto t = hn::Mul(x, x);
    const auto ratio = hn::Div(Polynomial(d, kR, t), Polynomial(d, kQ, t));
    const auto third = hn::Mul(x, Constant(d, 1.0 / 3));
    const auto near = hn::Mul(hn::Mul(third, t), hn::NegMulAdd(t, ratio, Constant(d, 1)));
    const auto far = hn::Sub(x, hn::CopySign(TanhOfSize(d, x), x));
    return hn::IfThenElse(hn::Lt(hn::Abs(x), Constant(d, 1.5)), near, far);
  }
};
template <class C>
struct Softshrink {
  C lambd;
  explicit Softshrink(const ActivationNumbers& p) : lambd(p.As<C>(0)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    const auto width = hn::Set(d, lambd);
    const auto moved = hn::Sub(x, hn::CopySign(width, x));
    return hn::IfThenZeroElse(hn::Le(hn::Abs(x), width), moved);
  }
};
template <class C>
struct Hardshrink {
  C lambd;
  explicit Hardshrink(const ActivationNumbers& p) : lambd(p.As<C>(0)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    return hn::IfThenZeroElse(hn::Le(hn::Abs(x), hn::Set(d, lambd)), x);
  }
};
template <class C>
struct Threshold {
  C threshold, value;
  explicit Threshold(const ActivationNumbers& p) : threshold(p.As<C>(0)), value(p.As<C>(1)) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    const auto limit = hn::Set(d, threshold), other = hn::Set(d, value);
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::IfThenElse(hn::Le(x, limit), other, x);
    } else {
      return hn::IfThenElse(hn::Gt(x, limit), x, other);
    }
  }
};

template <class C, template <class> class F>
void Loop(int64_t n, const ActivationNumbers& numbers, const void* x_data, void* y_data) {
  const TagOf<C> d;
  const F<C> f(numbers);
  const C* x = static_cast<const C*>(x_data);
  C* y = static_cast<C*>(y_data);
  const auto zero = hn::Zero(d);
  ForEachVector(d, n, [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
    StoreUpTo(f(d, LoadUpTo(d, x + i, count, zero)), d, y + i, count);
  });
}

// The same four vectors at a time: for functions of few instructions.
template <class C, template <class> class F>
void ShortLoop(int64_t n, const ActivationNumbers& numbers, const void* x_data, void* y_data) {
  const TagOf<C> d;
  const F<C> f(numbers);
  const C* x = static_cast<const C*>(x_data);
  const auto zero = hn::Zero(d);
  GeneratePacks<C, false, true>(static_cast<size_t>(n), static_cast<C*>(y_data),
                                [&](size_t i, size_t count) OFL_SIMD_LAMBDA {
                                  return Pack<C>{{f(d, LoadUpTo(d, x + i, count, zero))}};
                                });
}

// F for float32 and float64, long or short; a short one for integers too. Null for the rest.
template <template <class> class F>
ActivationLoop Floats(DType dtype) {
  if (dtype == DType::kFloat32) return &Loop<float, F>;
  return dtype == DType::kFloat64 ? &Loop<double, F> : nullptr;
}
template <template <class> class F>
ActivationLoop Short(DType dtype) {
  if (dtype == DType::kFloat32) return &ShortLoop<float, F>;
  return dtype == DType::kFloat64 ? &ShortLoop<double, F> : nullptr;
}
template <template <class> class F>
ActivationLoop Numbers(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return &Loop<uint8_t, F>;
    case DType::kInt8:
      return &Loop<int8_t, F>;
    case DType::kInt16:
      return &Loop<int16_t, F>;
    case DType::kInt32:
      return &Loop<int32_t, F>;
    case DType::kInt64:
      return &Loop<int64_t, F>;
    default:
      return Short<F>(dtype);
  }
}

}  // namespace

// Null where there is no code for the compute type.
ActivationLoop FindActivation(ActivationOp op, DType dtype) {
  switch (op) {
    case ActivationOp::kSilu:
      return Floats<Silu>(dtype);
    case ActivationOp::kMish:
      return Floats<Mish>(dtype);
    case ActivationOp::kHardswish:
      return Short<Hardswish>(dtype);
    case ActivationOp::kHardsigmoid:
      return Short<Hardsigmoid>(dtype);
    case ActivationOp::kHardtanh:
      return Numbers<Hardtanh>(dtype);
    case ActivationOp::kLeakyRelu:
      return Short<LeakyRelu>(dtype);
    case ActivationOp::kElu:
      return Floats<Elu>(dtype);
    case ActivationOp::kSoftplus:
      return Floats<Softplus>(dtype);
    case ActivationOp::kLogSigmoid:
      return Floats<LogSigmoid>(dtype);
    case ActivationOp::kSoftsign:
      return Floats<Softsign>(dtype);
    case ActivationOp::kTanhshrink:
      return Floats<Tanhshrink>(dtype);
    case ActivationOp::kSoftshrink:
      return Short<Softshrink>(dtype);
    case ActivationOp::kHardshrink:
      return Short<Hardshrink>(dtype);
    case ActivationOp::kThreshold:
      return Numbers<Threshold>(dtype);
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindActivation);

class CpuActivation final : public Activation {
 public:
  CpuActivation(const Spec& spec, ActivationLoop loop)
      : loop_(loop),
        pass_({.in = {spec.in.value_or(spec.dtype)},
               .common = spec.dtype,
               .loop = ComputeType(spec.dtype),
               .result = ComputeType(spec.dtype),
               .out = spec.dtype}) {}

  Status Launch(Stream&, const Elementwise<2>& g, const ActivationNumbers& numbers, const void* x,
                void* y) const override {
    pass_.Run(g, {{{x}}}, y,
              [&](int64_t n, const auto& in, void* out) { loop_(n, numbers, in[0], out); });
    return OkStatus();
  }

 private:
  ActivationLoop loop_;
  ChunkedPass<1> pass_;
};

StatusOr<std::unique_ptr<Activation>> NewActivation(const Activation::Spec& spec) {
  ActivationLoop loop = HWY_DYNAMIC_DISPATCH(FindActivation)(spec.op, ComputeType(spec.dtype));
  if (!loop) return NoPrimitiveFor(Activation::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuActivation>(spec, loop);
}

const bool registered = RegisterPrimitive<Activation>(DeviceType::kCPU, &NewActivation);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
