// SPDX-License-Identifier: Apache-2.0
//
// Random numbers. An element depends on the seed and its own index alone (core/philox.h), so the
// launch shape does not matter and the CPU gives the same numbers.
#include "primitive/cuda/elementwise.cuh"
#include "primitive/cuda/random_launch.h"
#include "primitive/random_math.h"

namespace oneflow_lite {
namespace cuda {
namespace {

__device__ __forceinline__ float MinusLog(float u) {
  const TwoFloats log = LogOf(1.0f - u);
  return -(log.high + log.low);
}
__device__ __forceinline__ double MinusLog(double u) { return -log(1.0 - u); }

__device__ __forceinline__ void BoxMuller(float& u, float& v) { BoxMullerInFloats(u, v); }
__device__ __forceinline__ void BoxMuller(double& u, double& v) {
  const double r = sqrt(-2.0 * log(1.0 - u));
  double sine, cosine;
  sincospi(2.0 * v, &sine, &cosine);
  u = r * cosine;
  v = r * sine;
}

// The elements of one counter, for the real distributions.
template <RandomKind kKind, class T>
struct Real {
  using C = ComputeType<T>;
  static constexpr int kCount = std::is_same_v<C, double> ? 2 : 4;
  C a, b, end;

  explicit Real(const RandomNumbers& n)
      : a(static_cast<C>(n.a)),
        b(static_cast<C>(kKind == RandomKind::kUniform ? n.b - n.a : n.b)),
        end(static_cast<C>(n.b)) {}

  __device__ Pack<T, kCount> operator()(const PhiloxResult& r) const {
    C u[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if constexpr (std::is_same_v<C, double>) {
        u[i] = UniformDouble(r.v[2 * i], r.v[2 * i + 1]);
      } else {
        u[i] = UniformFloat(r.v[i]);
      }
    }
    if constexpr (kKind == RandomKind::kNormal) {
#pragma unroll
      for (int i = 0; i < kCount; i += 2) BoxMuller(u[i], u[i + 1]);
    }
    Pack<T, kCount> y;
#pragma unroll
    for (int i = 0; i < kCount; ++i) y.v[i] = Element(u[i]);
    return y;
  }
  __device__ T Element(C u) const {
    if constexpr (kKind == RandomKind::kUniform) {
      const T y = ConvertTo<T>(Stretched(u, b, a));
      return ConvertTo<C>(y) < end ? y : ConvertTo<T>(a);
    } else if constexpr (kKind == RandomKind::kNormal) {
      return ConvertTo<T>(Stretched(u, b, a));
    } else {
      return ConvertTo<T>((u == C(0) ? C(2.98023223876953125e-8) : MinusLog(u)) / b);
    }
  }
};

template <RandomKind kKind, class T>
struct Whole {
  static constexpr int kCount = 4;
  RandomNumbers n;
  explicit Whole(const RandomNumbers& numbers) : n(numbers) {}

  __device__ Pack<T, kCount> operator()(const PhiloxResult& r) const {
    Pack<T, kCount> y;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if constexpr (kKind == RandomKind::kIntegers) {
        y.v[i] = ConvertTo<T>(IntegerOf(r.v[i], n.low, n.count));
      } else if constexpr (kKind == RandomKind::kBernoulli) {
        y.v[i] = ConvertTo<T>(static_cast<int>(r.v[i] >> 8 < n.threshold));
      } else {
        y.v[i] = static_cast<T>(r.v[i]);
      }
    }
    return y;
  }
};

template <class T, class Elements>
struct RandomRun {
  static constexpr int kCount = Elements::kCount;
  RandomArguments arguments;
  Elements elements;
  T* y;

  template <int N>
  __device__ void Run(int64_t i) const {
    static_assert(N == 1 || N == kCount, "a counter's elements or one of them");
    uint64_t seed = arguments.seed, offset = arguments.offset;
    if (arguments.shift) seed += arguments.shift[0], offset += arguments.shift[1];
    const Pack<T, kCount> drawn =
        elements(Philox(seed, offset + static_cast<uint64_t>(i) / kCount));
    if constexpr (N == 1) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (i % kCount == k) y[i] = drawn.v[k];
      }
    } else {
      StorePack<N>(y + i, drawn);
    }
  }
};

template <class T, class Elements>
cudaError_t LaunchRandom(int64_t n, const RandomArguments& arguments, const RandomNumbers& numbers,
                         void* y, cudaStream_t stream) {
  const RandomRun<T, Elements> run{arguments, Elements(numbers), static_cast<T*>(y)};
  return ForPacks<Elements::kCount>(n, run, stream);
}

template <RandomKind kKind>
RandomLauncher OfFloats(DType dtype) {
  return VisitDeviceFloating<RandomLauncher>(dtype, [](auto tag) -> RandomLauncher {
    using T = typename decltype(tag)::type;
    return &LaunchRandom<T, Real<kKind, T>>;
  });
}
template <RandomKind kKind>
RandomLauncher OfAll(DType dtype) {
  return VisitDeviceAll<RandomLauncher>(dtype, [](auto tag) -> RandomLauncher {
    using T = typename decltype(tag)::type;
    return &LaunchRandom<T, Whole<kKind, T>>;
  });
}

}  // namespace

RandomLauncher FindRandom(RandomKind kind, DType dtype) {
  switch (kind) {
    case RandomKind::kUniform:
      return OfFloats<RandomKind::kUniform>(dtype);
    case RandomKind::kNormal:
      return OfFloats<RandomKind::kNormal>(dtype);
    case RandomKind::kExponential:
      return OfFloats<RandomKind::kExponential>(dtype);
    case RandomKind::kIntegers:
      return OfAll<RandomKind::kIntegers>(dtype);
    case RandomKind::kBernoulli:
      return OfAll<RandomKind::kBernoulli>(dtype);
    case RandomKind::kBits:
      return dtype == DType::kInt64 ? &LaunchRandom<int64_t, Whole<RandomKind::kBits, int64_t>>
                                    : nullptr;
  }
  return nullptr;
}

}  // namespace cuda
}  // namespace oneflow_lite
