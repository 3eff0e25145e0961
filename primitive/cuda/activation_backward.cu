// SPDX-License-Identifier: Apache-2.0
//
// One function object per slope of an activation; the table in FindSlope names them. The formulas
// are those of primitive/cpu/activation_backward.cpp.
#include "primitive/cuda/activation_math.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// Each is made from the numbers on the host, and gives dy f'(x) in the compute type C.
template <class C>
struct Silu {
  explicit Silu(const ActivationNumbers&) {}
  __device__ C operator()(C dy, C given) const {
    const C x = Within(given, kFar<C>);
    const C e = ExpOf(-AbsOf(x)), part = C(1) / (C(1) + e), small = e * part;
    const bool below = x < C(0);
    const C s = below ? small : part, rest = below ? part : small;
    return dy * (s * Fma(x, rest, C(1)));
  }
};
template <class C>
struct Mish {
  explicit Mish(const ActivationNumbers&) {}
  __device__ C operator()(C dy, C given) const {
    const C x = Within(given, kFar<C>), u = ExpOf(-AbsOf(x));
    const bool below = x < C(0);
    const C n = below ? u * (u + C(2)) : C(1) + C(2) * u;
    const C m = n + C(2) * (below ? C(1) : u * u);
    const C w = u * (below ? C(1) : u) * (u + C(1));
    const C over = C(1) / m;
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
struct Elu {
  C ac, b, c, c_rest;
  explicit Elu(const ActivationNumbers& p)
      : ac(static_cast<C>(p.real[0] * p.real[2])),
        b(p.template As<C>(1)),
        c(p.template As<C>(2)),
        c_rest(p.template Rest<C>(2)) {}
  __device__ C operator()(C dy, C x) const {
    const Product<C> p = Scaled(x, c, c_rest);
    const C e = ExpOf(p.z);
    return dy * (x <= C(0) ? Fma(e, p.rest, e) * ac : b);
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
struct Softplus {
  C beta, rest, threshold;
  explicit Softplus(const ActivationNumbers& p)
      : beta(p.template As<C>(0)), rest(p.template Rest<C>(0)), threshold(p.template As<C>(1)) {}
  __device__ C operator()(C dy, C x) const {
    const Product<C> p = Scaled(x, beta, rest);
    const C e = ExpDown(p);
    return p.z > threshold ? dy : dy * ((p.z < C(0) ? e : C(1)) / (C(1) + e));
  }
};
template <class C>
struct LogSigmoid {
  explicit LogSigmoid(const ActivationNumbers&) {}
  __device__ C operator()(C dy, C x) const {
    const C e = ExpOf(-AbsOf(x));
    return dy * ((x < C(0) ? C(1) : e) / (C(1) + e));
  }
};
template <class C>
struct Softsign {
  explicit Softsign(const ActivationNumbers&) {}
  __device__ C operator()(C dy, C x) const {
    const C part = C(1) / (C(1) + AbsOf(x));
    return dy * part * part;
  }
};
template <class C>
struct Tanhshrink {
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

template <class T, class F>
struct SlopeRun {
  F f;
  const T* dy;
  bool one_dy;
  const T* x;
  T* dx;

  template <int N>
  __device__ void Run(int64_t i) const {
    using C = ComputeType<T>;
    Pack<T, N> g;
    if (one_dy) {
      const T number = *dy;
#pragma unroll
      for (int k = 0; k < N; ++k) g.v[k] = number;
    } else {
      g = LoadPack<N>(dy + i);
    }
    Pack<T, N> p = LoadPack<N>(x + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      p.v[k] = ConvertTo<T>(static_cast<C>(f(ConvertTo<C>(g.v[k]), ConvertTo<C>(p.v[k]))));
    }
    StorePack<N>(dx + i, p);
  }
};

template <class T, template <class> class F>
cudaError_t LaunchSlope(int64_t n, const ActivationNumbers& numbers, const void* dy, bool one_dy,
                        const void* x, void* dx, cudaStream_t stream) {
  using Function = F<ComputeType<T>>;
  const SlopeRun<T, Function> run{Function(numbers), static_cast<const T*>(dy), one_dy,
                                  static_cast<const T*>(x), static_cast<T*>(dx)};
  return ForPacks<kPackSize<T>>(n, run, stream);
}

template <template <class> class F>
SlopeLauncher Floats(DType dtype) {
  return VisitDeviceFloating<SlopeLauncher>(dtype, [](auto tag) -> SlopeLauncher {
    return &LaunchSlope<typename decltype(tag)::type, F>;
  });
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
