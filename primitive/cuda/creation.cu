// SPDX-License-Identifier: Apache-2.0
//
// Constants, sequences and random numbers. A random element depends on the seed and its own index
// alone (core/philox.h), so the launch shape does not matter and the CPU gives the same numbers.
#include "oneflow_lite/core/philox.h"
#include "primitive/cuda/elementwise.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

template <class Word>
struct FillRun {
  Word value;
  Word* y;

  template <int N>
  __device__ void Run(int64_t i) const {
    Pack<Word, N> p;
#pragma unroll
    for (int k = 0; k < N; ++k) p.v[k] = value;
    StorePack<N>(y + i, p);
  }
  __device__ void At(const int64_t (&offset)[1]) const { y[offset[0]] = value; }
};

template <class Word>
cudaError_t LaunchFill(const Strided<1>& g, ScalarBits value, void* y, cudaStream_t stream) {
  const FillRun<Word> run{static_cast<Word>(value), static_cast<Word*>(y)};
  if (g.contiguous) return ForPacks<kPackSize<Word>>(g.numel, run, stream);
  return ForElements(g, run, stream);
}

template <class T>
struct ArangeRun {
  ArangeArguments arguments;
  T* y;

  template <int N>
  __device__ void Run(int64_t i) const {
    Pack<T, N> p;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if constexpr (std::is_integral_v<T>) {
        p.v[k] = ConvertTo<T>(arguments.int_start + (i + k) * arguments.int_step);
      } else {
        p.v[k] = ConvertTo<T>(arguments.start + static_cast<double>(i + k) * arguments.step);
      }
    }
    StorePack<N>(y + i, p);
  }
};

template <class T>
cudaError_t LaunchArange(int64_t n, const ArangeArguments& arguments, void* y,
                         cudaStream_t stream) {
  return ForPacks<kPackSize<T>>(n, ArangeRun<T>{arguments, static_cast<T*>(y)}, stream);
}

// The elements that share one Philox counter, in the compute type (int64 for bits).
template <Distribution distribution, class C>
struct Sample {
  static constexpr int kCount = std::is_same_v<C, double> ? 2 : 4;
  C v[kCount];

  __device__ explicit Sample(const PhiloxResult& r) {
    if constexpr (distribution == Distribution::kBits) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) v[k] = static_cast<C>(r.v[k]);
    } else {
      if constexpr (std::is_same_v<C, double>) {
        v[0] = UniformDouble(r.v[0], r.v[1]);
        v[1] = UniformDouble(r.v[2], r.v[3]);
      } else {
#pragma unroll
        for (int k = 0; k < kCount; ++k) v[k] = UniformFloat(r.v[k]);
      }
      if constexpr (distribution == Distribution::kNormal) {
#pragma unroll
        for (int k = 0; k < kCount; k += 2) BoxMuller(v[k], v[k + 1]);
      }
    }
  }

  // Box and Muller, "A Note on the Generation of Random Normal Deviates" (1958).
  static __device__ void BoxMuller(float& u, float& v) {
    const float r = sqrtf(-2.0f * logf(1.0f - u));
    float sine, cosine;
    sincospif(2.0f * v, &sine, &cosine);
    u = r * cosine;
    v = r * sine;
  }
  static __device__ void BoxMuller(double& u, double& v) {
    const double r = sqrt(-2.0 * log(1.0 - u));
    double sine, cosine;
    sincospi(2.0 * v, &sine, &cosine);
    u = r * cosine;
    v = r * sine;
  }
};

template <Distribution distribution, class T>
struct RandomRun {
  using C = ComputeType<T>;
  using Samples = Sample<distribution, C>;
  RandomArguments arguments;
  T* y;

  __device__ T Element(C c) const {
    const T t = ConvertTo<T>(c);
    // A uniform just below 1 may round to 1 in 16 bits, which is outside [0, 1).
    if constexpr (distribution == Distribution::kUniform && sizeof(T) == 2) {
      if (ConvertTo<C>(t) == C(1)) return ConvertTo<T>(C(0));
    }
    return t;
  }

  template <int N>
  __device__ void Run(int64_t i) const {
    static_assert(N == 1 || N == Samples::kCount, "a counter's elements or one of them");
    uint64_t seed = arguments.seed, offset = arguments.offset;
    if (arguments.shift) seed += arguments.shift[0], offset += arguments.shift[1];
    const Samples samples(Philox(seed, offset + static_cast<uint64_t>(i) / Samples::kCount));
    if constexpr (N == 1) {
#pragma unroll
      for (int k = 0; k < Samples::kCount; ++k) {
        if (i % Samples::kCount == k) y[i] = Element(samples.v[k]);
      }
    } else {
      Pack<T, N> p;
#pragma unroll
      for (int k = 0; k < N; ++k) p.v[k] = Element(samples.v[k]);
      StorePack<N>(y + i, p);
    }
  }
};

template <Distribution distribution, class T>
cudaError_t LaunchRandom(int64_t n, const RandomArguments& arguments, void* y,
                         cudaStream_t stream) {
  using Run = RandomRun<distribution, T>;
  return ForPacks<Run::Samples::kCount>(n, Run{arguments, static_cast<T*>(y)}, stream);
}

template <Distribution distribution>
RandomLauncher FloatingRandom(DType dtype) {
  return VisitDeviceFloating<RandomLauncher>(dtype, [](auto tag) -> RandomLauncher {
    return &LaunchRandom<distribution, typename decltype(tag)::type>;
  });
}

}  // namespace

FillLauncher FindFill(DType dtype) {
  switch (SizeOf(dtype)) {
    case 1:
      return &LaunchFill<uint8_t>;
    case 2:
      return &LaunchFill<uint16_t>;
    case 4:
      return &LaunchFill<uint32_t>;
    default:
      return &LaunchFill<uint64_t>;
  }
}

ArangeLauncher FindArange(DType dtype) {
  return VisitDeviceAll<ArangeLauncher>(dtype, [](auto tag) -> ArangeLauncher {
    return &LaunchArange<typename decltype(tag)::type>;
  });
}

RandomLauncher FindRandom(Distribution distribution, DType dtype) {
  switch (distribution) {
    case Distribution::kUniform:
      return FloatingRandom<Distribution::kUniform>(dtype);
    case Distribution::kNormal:
      return FloatingRandom<Distribution::kNormal>(dtype);
    case Distribution::kBits:
      return dtype == DType::kInt64 ? &LaunchRandom<Distribution::kBits, int64_t> : nullptr;
  }
  return nullptr;
}

}  // namespace cuda
}  // namespace oneflow_lite
