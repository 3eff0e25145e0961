// SPDX-License-Identifier: Apache-2.0
//
// One function object per activation; the table in FindActivation names them. The formulas are
// those of primitive/cpu/activation.cpp.
#include "primitive/cuda/elementwise/find.cuh"
#include "primitive/cuda/functions/activation.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// Each is made from the numbers on the host, and takes and gives the compute type C.
template <class C>
struct Silu : LongInDouble {
  explicit Silu(const ActivationNumbers&) {}
  __device__ C operator()(C x) const { return SiluOf(x); }
  __device__ float Narrow(float x) const { return narrow::Silu(x); }
};
template <class C>
struct Mish : LongInDouble {
  explicit Mish(const ActivationNumbers&) {}
  __device__ C operator()(C x) const {
    if constexpr (sizeof(C) == 4) return fast::Mish(x);
    const C near = Within(x, kFar<C>);
    const TailExp<C> t = ExpOfTail(-AbsOf(near));
    const bool below = x < C(0);
    const C n = below ? t.e * (t.e + C(2)) : C(1) + C(2) * t.e;
    const C share = n / (n + (below ? C(2) : C(2) * t.e * t.e));
    return below ? near * share * t.back : x * share;
  }
  __device__ float Narrow(float x) const { return narrow::Mish(x); }
};
template <class C>
struct Hardtanh {
  C low, high;
  explicit Hardtanh(const ActivationNumbers& p)
      : low(p.template As<C>(0)), high(p.template As<C>(1)) {}
  __device__ C operator()(C x) const { return x < low ? low : x > high ? high : x; }
};
// (x + 3) / 6 within [0, 1]
template <class C>
__device__ C Ramp(C x) {
  const C v = x + C(3);
  return (v < C(0) ? C(0) : v > C(6) ? C(6) : v) * C(1.0 / 6);
}
template <class C>
struct Hardsigmoid {
  explicit Hardsigmoid(const ActivationNumbers&) {}
  __device__ C operator()(C x) const { return Ramp(x); }
};
template <class C>
struct Hardswish {
  explicit Hardswish(const ActivationNumbers&) {}
  __device__ C operator()(C x) const { return x < C(-3) ? C(-0.0) : x * Ramp(x); }
};
template <class C>
struct LeakyRelu {
  C slope;
  explicit LeakyRelu(const ActivationNumbers& p) : slope(p.template As<C>(0)) {}
  __device__ C operator()(C x) const { return x > C(0) ? x : x * slope; }
};
template <class C>
struct Elu : LongInDouble {
  C a, b, c;
  explicit Elu(const ActivationNumbers& p)
      : a(p.template As<C>(0)), b(p.template As<C>(1)), c(p.template As<C>(2)) {}
  // What c x loses in rounding is at most as much of the result: e^z bends away from where z is
  // large.
  __device__ C operator()(C x) const { return x < C(0) ? ExpM1Of(x * c) * a : x * b; }
  __device__ float Narrow(float x) const {
    const float below = narrow::Expm1(x * c) * a;
    return x < 0.0f ? below : x * b;
  }
};
template <class C>
struct Softplus : LongInDouble {
  C beta, rest, over, threshold;
  float up, down;  // 2^-64 / beta as a product without an overflow
  explicit Softplus(const ActivationNumbers& p)
      : beta(p.template As<C>(0)),
        rest(p.template Rest<C>(0)),
        over(static_cast<C>(1 / p.real[0])),
        threshold(p.template As<C>(1)),
        up(static_cast<float>(p.real[0] < 1 ? fast::kUnscale / p.real[0] : 1 / p.real[0])),
        down(p.real[0] < 1 ? 1.0f : fast::kUnscale) {}
  __device__ C operator()(C x) const {
    const Product<C> p = Scaled(x, beta, rest);
    if constexpr (sizeof(C) == 4) {
      const float bend = fast::ScaledBend(p.z, p.rest) * up * down;
      return p.z > threshold ? x : (p.z > C(0) ? x : C(0)) + bend;
    }
    const C bend = Log1POf(ExpDown(p)) * over;
    return p.z > threshold ? x : (p.z > C(0) ? x : C(0)) + bend;
  }
  __device__ float Narrow(float x) const {
    const float z = x * beta;
    return z > threshold ? x : (z > 0.0f ? x : 0.0f) + narrow::Bend(z) * over;
  }
};
template <class C>
struct LogSigmoid : LongInDouble {
  explicit LogSigmoid(const ActivationNumbers&) {}
  __device__ C operator()(C x) const {
    if constexpr (sizeof(C) == 4) return fast::LogSigmoid(x);
    return (x < C(0) ? x : C(0)) - Log1POf(ExpOf(-AbsOf(x)));
  }
  __device__ float Narrow(float x) const { return narrow::LogSigmoid(x); }
};
template <class C>
struct Softsign {
  explicit Softsign(const ActivationNumbers&) {}
  __device__ C operator()(C x) const {
    const C near = Within(x, C(1152921504606846976.0));  // 2^60
    return near * OverOf(C(1) + AbsOf(near));
  }
};
template <class C>
struct Tanhshrink : LongInDouble {
  explicit Tanhshrink(const ActivationNumbers&) {}
  __device__ C operator()(C x) const {
    if constexpr (sizeof(C) == 4) return fast::Tanhshrink(x);
    const C kR[] = {C(66), C(44850), C(7438860), C(392837445), C(5499724230.0)};
    const C kQ[] = {C(66), C(45045), C(7567560), C(413513100), C(6547290750.0), C(13749310575.0)};
    if (AbsOf(x) < C(1.5)) {
      const C t = x * x;
      return x * C(1.0 / 3) * t * Fma(-t, Polynomial(kR, t) * OverOf(Polynomial(kQ, t)), C(1));
    }
    return x - TanhOf(x);
  }
};
template <class C>
struct Softshrink {
  C lambd;
  explicit Softshrink(const ActivationNumbers& p) : lambd(p.template As<C>(0)) {}
  __device__ C operator()(C x) const { return AbsOf(x) <= lambd ? C(0) : x - WithSign(lambd, x); }
};
template <class C>
struct Hardshrink {
  C lambd;
  explicit Hardshrink(const ActivationNumbers& p) : lambd(p.template As<C>(0)) {}
  __device__ C operator()(C x) const { return AbsOf(x) <= lambd ? C(0) : x; }
};
template <class C>
struct Threshold {
  C threshold, value;
  explicit Threshold(const ActivationNumbers& p)
      : threshold(p.template As<C>(0)), value(p.template As<C>(1)) {}
  __device__ C operator()(C x) const { return x <= threshold ? value : x; }
};

template <template <class> class F>
ActivationLauncher Floats(DType common) {
  return FindForEach<kFloats, 1, ActivationNumbers, F>(common);
}
template <template <class> class F>
ActivationLauncher Numbers(DType common) {
  return FindForEach<kNumbers, 1, ActivationNumbers, F>(common);
}

}  // namespace

ActivationLauncher FindActivation(ActivationOp op, DType dtype) {
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
      return Numbers<Hardtanh>(dtype);
    case ActivationOp::kLeakyRelu:
      return Floats<LeakyRelu>(dtype);
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
      return Floats<Softshrink>(dtype);
    case ActivationOp::kHardshrink:
      return Floats<Hardshrink>(dtype);
    case ActivationOp::kThreshold:
      return Numbers<Threshold>(dtype);
  }
  return nullptr;
}

}  // namespace cuda
}  // namespace oneflow_lite
