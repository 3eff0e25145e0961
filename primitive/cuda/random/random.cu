// SPDX-License-Identifier: Apache-2.0
//
// Random numbers. An element depends on the seed and its own index alone (core/philox.h), so the
// launch shape does not matter and the CPU gives the same numbers.
#include "primitive/cuda/random/launch.h"
#include "primitive/cuda/random/philox.cuh"
#include "primitive/cuda/strided/elements.cuh"
#include "primitive/random_math.h"

namespace oneflow_lite {
namespace cuda {
namespace {

// -log(1 - u), but half the least one above 0 in its place: in the few instructions that results of
// 16 bits need, or within 1.3 units in the last place.
constexpr double kLeastLog = 2.98023223876953125e-8;
template <bool kNear>
__device__ __forceinline__ float MinusLog(float u) {
  const float y = -(kNear ? NearLogOf(1.0f - u) : LogOfNormal(1.0f - u));
  return fmaxf(y, static_cast<float>(kLeastLog));
}
template <bool kNear>
__device__ __forceinline__ double MinusLog(double u) {
  return u == 0 ? kLeastLog : -log(1.0 - u);
}

template <bool kNear>
__device__ __forceinline__ void BoxMuller(float& u, float& v) {
  if constexpr (kNear) {
    NearBoxMuller(u, v);
  } else {
    BoxMullerInFloats(u, v);
  }
}
template <bool kNear>
__device__ __forceinline__ void BoxMuller(double& u, double& v) {
  const double r = sqrt(-2.0 * log(1.0 - u));
  double sine, cosine;
  sincospi(2.0 * v, &sine, &cosine);
  u = r * cosine;
  v = r * sine;
}

template <class C>
__device__ __noinline__ C Quotient(C x, C b) {
  return x / b;
}

template <class T>
inline constexpr bool kIsNear = sizeof(T) == 2;

// The elements of one counter, for the real distributions.
template <RandomKind kKind, class T>
struct Real {
  using C = ComputeType<T>;
  static constexpr int kCount = std::is_same_v<C, double> ? 2 : 4;
  C a, b, end;
  C over;  // 1 / b, 0 where products with it may not be normal

  explicit Real(const RandomNumbers& n)
      : a(static_cast<C>(n.a)),
        b(static_cast<C>(kKind == RandomKind::kUniform ? n.b - n.a : n.b)),
        end(static_cast<C>(n.b)),
        over(static_cast<C>(n.b > 0x1p-100 && n.b < 0x1p100 ? 1 / n.b : 0)) {}

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
      for (int i = 0; i < kCount; i += 2) BoxMuller<kIsNear<T>>(u[i], u[i + 1]);
    } else if constexpr (kKind == RandomKind::kExponential) {
#pragma unroll
      for (C& v : u) v = MinusLog<kIsNear<T>>(v);
      DivideByB(u);
    }
    Pack<T, kCount> y;
#pragma unroll
    for (int i = 0; i < kCount; ++i) y.v[i] = Element(u[i]);
    return y;
  }
  // Quotients in three instructions where they can be had so.
  __device__ void DivideByB(C (&x)[kCount]) const {
    if (std::is_same_v<C, double> || over == C(0)) {
#pragma unroll
      for (C& v : x) v = Quotient(v, b);
    } else {
#pragma unroll
      for (C& v : x) {
        const C quotient = v * over;
        v = kIsNear<T> ? quotient : fma(fma(-quotient, b, v), over, quotient);
      }
    }
  }
  __device__ T Element(C u) const {
    if constexpr (kKind == RandomKind::kUniform) {
      const T y = ConvertTo<T>(Stretched(u, b, a));
      return ConvertTo<C>(y) < end ? y : ConvertTo<T>(a);
    } else if constexpr (kKind == RandomKind::kNormal) {
      return ConvertTo<T>(Stretched(u, b, a));
    } else {
      return ConvertTo<T>(u);
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
    for (int i = 0; i < kCount; ++i) y.v[i] = Element(r.v[i]);
    return y;
  }
  __device__ T Element(uint32_t bits) const {
    if constexpr (kKind == RandomKind::kIntegers) {
      return ConvertTo<T>(IntegerOf(bits, n.low, n.count));
    } else if constexpr (kKind == RandomKind::kBernoulli) {
      return ConvertTo<T>(static_cast<int>(bits >> 8 < n.threshold));
    } else {
      return static_cast<T>(bits);
    }
  }
};

// The four elements of a counter that are wider than 16 bytes together. Two threads side by side
// exchange halves, so that a store of the warp fills whole sectors: the first one the elements of
// the even thread, the second one those of the odd one. All 32 threads take part.
template <class T, class Elements>
__device__ __forceinline__ void StorePairs(const Elements& elements, const PhiloxResult& r, T* y) {
  const bool odd = (threadIdx.x & 1) != 0;
  const uint32_t first = __shfl_xor_sync(0xffffffffu, odd ? r.v[0] : r.v[2], 1);
  const uint32_t second = __shfl_xor_sync(0xffffffffu, odd ? r.v[1] : r.v[3], 1);
  const uint32_t words[2][2] = {{odd ? first : r.v[0], odd ? second : r.v[1]},
                                {odd ? r.v[2] : first, odd ? r.v[3] : second}};
  T* even = y - (odd ? 2 : 0);
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const Pack<T, 2> pack{{elements.Element(words[k][0]), elements.Element(words[k][1])}};
    StoreAlignedPack(even + 4 * k, pack);
  }
}

// A thread draws at least kCounters, whose keys are the same, and stores 16 bytes at a time.
constexpr int kCounters = 4;
template <class T, class Elements>
struct RandomShare {
  static constexpr int kBytes = Elements::kCount * static_cast<int>(sizeof(T));  // of a counter
  static constexpr int kJoined = kBytes < kPackBytes ? kPackBytes / kBytes : 1;  // of a store
  static constexpr int kPack = kJoined * Elements::kCount;
  static constexpr int kTurns = kCounters / kJoined > 0 ? kCounters / kJoined : 1;
};

template <class T, class Elements>
__global__ void __launch_bounds__(kElementwiseThreads)
    RandomKernel(int64_t n, RandomArguments a, const __grid_constant__ Elements elements, T* y) {
  using Share = RandomShare<T, Elements>;
  constexpr int kCount = Elements::kCount, kPack = Share::kPack;
  uint64_t seed = a.seed, offset = a.offset;
  if (a.shift) seed += a.shift[0], offset += a.shift[1];
  const PhiloxKeys keys(seed);
#pragma unroll
  for (int turn = 0; turn < Share::kTurns; ++turn) {
    const int64_t thread =
        (int64_t{blockIdx.x} * Share::kTurns + turn) * kElementwiseThreads + threadIdx.x;
    const int64_t i = thread * kPack, counter = thread * Share::kJoined;
    Pack<T, kPack> pack;
#pragma unroll
    for (int k = 0; k < Share::kJoined; ++k) {
      const PhiloxResult r = keys.Draw(offset + static_cast<uint64_t>(counter + k));
      if constexpr (Share::kBytes > kPackBytes) {
        const int64_t end = (thread - threadIdx.x % 32 + 32) * kPack;  // of the warp
        if (end <= n && BytesPastBoundary(y) == 0) {
          StorePairs(elements, r, y + i);
          continue;
        }
      }
      const Pack<T, kCount> drawn = elements(r);
#pragma unroll
      for (int e = 0; e < kCount; ++e) pack.v[k * kCount + e] = drawn.v[e];
      if (Share::kBytes > kPackBytes || i + kPack > n) {
#pragma unroll
        for (int e = 0; e < kCount; ++e) {
          if (i + k * kCount + e < n) y[i + k * kCount + e] = drawn.v[e];
        }
      }
    }
    if constexpr (Share::kBytes <= kPackBytes) {
      if (i + kPack <= n) StorePack<kPack>(y + i, pack);
    }
  }
}

template <class T, class Elements>
cudaError_t LaunchRandom(int64_t n, const RandomArguments& arguments, const RandomNumbers& numbers,
                         void* y, cudaStream_t stream) {
  using Share = RandomShare<T, Elements>;
  if (n <= 0) return cudaSuccess;
  const int64_t blocks = CeilDiv(n, int64_t{Share::kPack} * Share::kTurns * kElementwiseThreads);
  return Launch(RandomKernel<T, Elements>, blocks, kElementwiseThreads, 0, stream, n, arguments,
                Elements(numbers), static_cast<T*>(y));
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
