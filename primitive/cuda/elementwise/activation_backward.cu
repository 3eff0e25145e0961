// SPDX-License-Identifier: Apache-2.0
//
// One function object per slope of an activation; the table in FindSlope names them. The formulas
// are those of primitive/cpu/activation_backward.cpp.
#include "primitive/cuda/elementwise/find.cuh"
#include "primitive/cuda/functions/activation.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// Each is made from the numbers on the host, and gives dy f'(x) in the compute type C.
template <class C>
struct Silu : LongInDouble {
  explicit Silu(const ActivationNumbers&) {}
  __device__ C operator()(C dy, C given) const {
    const C x = Within(given, kFar<C>);
    const C e = ExpOf(-AbsOf(x)), part = OverOf(C(1) + e), small = e * part;
    const bool below = x < C(0);
    const C s = below ? small : part, rest = below ? part : small;
    return dy * (s * Fma(x, rest, C(1)));
  }
  __device__ float Narrow(float dy, float x) const { return dy * narrow::SiluSlope(x); }
};
template <class C>
struct Mish : LongInDouble {
  explicit Mish(const ActivationNumbers&) {}
  __device__ C operator()(C dy, C given) const {
    const C x = Within(given, kFar<C>), u = ExpOf(-AbsOf(x));
    const bool below = x < C(0);
    const C n = below ? u * (u + C(2)) : C(1) + C(2) * u;
    const C m = n + C(2) * (below ? C(1) : u * u);
    const C w = u * (below ? C(1) : u) * (u + C(1));
    const C over = OverOf(m);
    return dy * ((n + C(4) * x * w * over) * over);
  }
};
template <class C>
struct Hardswish {
  explicit Hardswish(const ActivationNumbers&) {}
  __device__ C operator()(C dy, C x) const {
    if (x <= C(-3)) return C(0);
    return x >= C(3) ? dy : dy * (Fma(x, C(2), C(3)) * C(1.0 / 6));
  }
};
template <class C>
struct Hardsigmoid {
  explicit Hardsigmoid(const ActivationNumbers&) {}
  __device__ C operator()(C dy, C x) const { return AbsOf(x) >= C(3) ? C(0) : dy * C(1.0 / 6); }
};
template <class C>
struct Hardtanh {
  C low, high;
  explicit Hardtanh(const ActivationNumbers& p)
      : low(p.template As<C>(0)), high(p.template As<C>(1)) {}
  __device__ C operator()(C dy, C x) const { return x <= low || x >= high ? C(0) : dy; }
};
template <class C>
struct LeakyRelu {
  C slope;
  explicit LeakyRelu(const ActivationNumbers& p) : slope(p.template As<C>(0)) {}
  __device__ C operator()(C dy, C x) const { return x > C(0) ? dy : dy * slope; }
};
template <class C>
struct Elu : LongInDouble {
  C ac, b, c, c_rest;
  float rate;  // of powers of 2
  explicit Elu(const ActivationNumbers& p)
      : ac(static_cast<C>(p.real[0] * p.real[2])),
        b(p.template As<C>(1)),
        c(p.template As<C>(2)),
        c_rest(p.template Rest<C>(2)),
        rate(static_cast<float>(p.real[2] * 1.44269504088896340736)) {}
  __device__ C operator()(C dy, C x) const {
    const Product<C> p = Scaled(x, c, c_rest);
    const C e = ExpOf(p.z);
    return dy * (x <= C(0) ? Fma(e, p.rest, e) * ac : b);
  }
  __device__ float Narrow(float dy, float x) const {
    const float below = narrow::Exp2Down(x * rate) * ac;
    return dy * (x <= 0.0f ? below : b);
  }
};
template <class C>
struct EluOfOutput {
  C a, b, c;
  explicit EluOfOutput(const ActivationNumbers& p)
      : a(p.template As<C>(0)), b(p.template As<C>(1)), c(p.template As<C>(2)) {}
  __device__ C operator()(C dy, C y) const { return dy * (y <= C(0) ? (y + a) * c : b); }
};
template <class C>
struct Softplus : LongInDouble {
  C beta, rest, threshold;
  explicit Softplus(const ActivationNumbers& p)
      : beta(p.template As<C>(0)), rest(p.template Rest<C>(0)), threshold(p.template As<C>(1)) {}
  __device__ C operator()(C dy, C x) const {
    const Product<C> p = Scaled(x, beta, rest);
    const C e = ExpDown(p);
    return p.z > threshold ? dy : dy * ((p.z < C(0) ? e : C(1)) * OverOf(C(1) + e));
  }
  __device__ float Narrow(float dy, float x) const {
    const float z = x * beta, slope = narrow::Sigmoid(z);
    return z > threshold ? dy : dy * slope;
  }
};
template <class C>
struct LogSigmoid : LongInDouble {
  explicit LogSigmoid(const ActivationNumbers&) {}
  __device__ C operator()(C dy, C x) const {
    const C e = ExpOf(-AbsOf(x));
    return dy * ((x < C(0) ? C(1) : e) * OverOf(C(1) + e));
  }
  __device__ float Narrow(float dy, float x) const { return dy * narrow::Sigmoid(-x); }
};
template <class C>
struct Softsign {
  explicit Softsign(const ActivationNumbers&) {}
  __device__ C operator()(C dy, C x) const {
    const C part = OverOf(C(1) + AbsOf(x));
    return dy * part * part;
  }
};
template <class C>
struct Tanhshrink : LongInDouble {
  explicit Tanhshrink(const ActivationNumbers&) {}
  __device__ C operator()(C dy, C x) const {
    const C t = TanhOf(x);
    return dy * t * t;
  }
};
template <class C>
struct Shrink {
  C lambd;
  explicit Shrink(const ActivationNumbers& p) : lambd(p.template As<C>(0)) {}
  __device__ C operator()(C dy, C x) const { return AbsOf(x) <= lambd ? C(0) : dy; }
};
template <class C>
struct Threshold {
  C threshold;
  explicit Threshold(const ActivationNumbers& p) : threshold(p.template As<C>(0)) {}
  __device__ C operator()(C dy, C x) const { return x <= threshold ? C(0) : dy; }
};

template <template <class> class F>
SlopeLauncher Floats(DType dtype) {
  return FindForEach<kFloats, 2, ActivationNumbers, F>(dtype);
}

}  // namespace

SlopeLauncher FindSlope(ActivationOp op, bool of_output, DType dtype) {
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

}  // namespace cuda
}  // namespace oneflow_lite
