// SPDX-License-Identifier: Apache-2.0
//
// Plain loops over blocks of counters, compiled once per instruction set, whose vectors the
// compiler takes. No product is contracted with a sum, so that all sets give the same bits.
#include "primitive/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/simd_targets.h"
#include "primitive/random_math.h"
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "primitive/cpu/random.cpp"
#include "primitive/cpu/foreach_target.h"
// clang-format on
#include "primitive/cpu/highway.h"
#include "primitive/cpu/philox_block-inl.h"

#ifndef OFL_PRIMITIVE_CPU_RANDOM_ONCE_
#define OFL_PRIMITIVE_CPU_RANDOM_ONCE_
namespace oneflow_lite {
// Fills blocks [begin, end) of n elements at y.
struct RandomFill {
  int64_t n;
  uint64_t seed, offset;
  const RandomNumbers& numbers;
  void* y;
};
struct RandomLoop {
  void (*run)(const RandomFill& fill, int64_t begin, int64_t end) = nullptr;
  int64_t block = 0;  // elements of one
};
}  // namespace oneflow_lite
#endif

HWY_BEFORE_NAMESPACE();
namespace oneflow_lite {
namespace HWY_NAMESPACE {
namespace {

// log(w) of a multiple of 2^-24 in (0, 1], in double, to 40 bits: as LogOf.
HWY_INLINE double LogOfUniform(double w) {
  constexpr int64_t kLowest = 0x3fe6a09e667f3bcd;  // sqrt(1/2)
  const int64_t exponent = (std::bit_cast<int64_t>(w) - kLowest) >> 52;
  const double m = std::bit_cast<double>(std::bit_cast<int64_t>(w) - exponent * (int64_t{1} << 52));
  const double s = (m - 1) / (m + 1), z = s * s;
  const double p =
      z *
      (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13))))));
  return static_cast<double>(exponent) * 0.6931471805599453 + (2 * s + 2 * s * p);
}

// Box and Muller's transform of the pairs of a block, of words 2i and 2i + 1 of each counter: in
// double, to 40 bits. Loops without branches, which the compiler turns into vectors.
struct NormalBlock {
  static constexpr int kPairs = 2 * kPhiloxLanes;
  double first[kPairs], second[kPairs];

  HWY_INLINE explicit NormalBlock(const PhiloxBlock& bits) {
    double radius[kPairs], turns[kPairs];
    for (int i = 0; i < kPhiloxLanes; ++i) {
      for (int pair = 0; pair < 2; ++pair) {
        const int at = 2 * i + pair;
        first[at] = 1.0 - static_cast<int32_t>(bits.words[2 * pair][i] >> 8) * 0x1p-24;
        turns[at] = static_cast<int32_t>(bits.words[2 * pair + 1][i] >> 8) * 0x1p-22;
      }
    }
    uint64_t word[kPairs];
    std::memcpy(word, first, sizeof(word));
    uint64_t exponent[kPairs], mantissa[kPairs];
    for (int i = 0; i < kPairs; ++i) {
      exponent[i] = (word[i] >> 52) | 0x4330000000000000;  // 2^52 + the exponent
      mantissa[i] = (word[i] & 0x000fffffffffffff) | 0x3ff0000000000000;
    }
    double e[kPairs], m[kPairs];
    std::memcpy(e, exponent, sizeof(e));
    std::memcpy(m, mantissa, sizeof(m));
    for (int i = 0; i < kPairs; ++i) {
      const bool large = m[i] > 1.4142135623730951;
      const double n = large ? m[i] * 0.5 : m[i];
      const double s = (n - 1) / (n + 1), z = s * s;
      const double p =
          z * (1.0 / 3 +
               z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13))))));
      const double log =
          (e[i] - 0x1p52 - (large ? 1022 : 1023)) * 0.6931471805599453 + (2 * s + 2 * s * p);
      radius[i] = std::sqrt(-2 * log);
    }
    for (int i = 0; i < kPairs; ++i) {
      const double quarter = (turns[i] + 0x1.8p52) - 0x1.8p52;  // the nearest whole number
      const double x = (turns[i] - quarter) * 1.5707963267948966, z = x * x;
      const double sine =
          x *
          (1 + z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 +
                                                     z * (1.0 / 362880 + z * (-1.0 / 39916800))))));
      const double cosine =
          1 + z * (-0.5 + z * (1.0 / 24 +
                               z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 +
                                                                         z * (1.0 / 479001600))))));
      const bool one = quarter == 1, two = quarter == 2, three = quarter == 3;
      const double to_first = one | three ? sine : cosine, to_second = one | three ? cosine : sine;
      first[i] = radius[i] * (one | two ? -to_first : to_first);
      second[i] = radius[i] * (two | three ? -to_second : to_second);
    }
  }
};
HWY_INLINE void BoxMuller(double& u, double& v) {
  const double radius = std::sqrt(-2 * std::log(1 - u));
  const double turns = 4 * v, quarter = std::rint(turns);
  const double angle = (turns - quarter) * 1.5707963267948966;  // the difference is exact
  const auto q = static_cast<int>(quarter);
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const double to_u = q & 1 ? sine : cosine, to_v = q & 1 ? cosine : sine;
  u = radius * ((q + 1) & 2 ? -to_u : to_u);
  v = radius * (q & 2 ? -to_v : to_v);
}

HWY_INLINE float MinusLog(float u) { return static_cast<float>(-LogOfUniform(1.0 - u)); }
HWY_INLINE double MinusLog(double u) { return -std::log(1 - u); }

// The elements of one counter, of its four words, for the real distributions.
template <RandomKind kKind, class T>
struct Real {
  using C = ComputeOf<T>;
  static constexpr int kCount = sizeof(C) == 8 ? 2 : 4;
  C a, b, end;
  explicit Real(const RandomNumbers& n)
      : a(static_cast<C>(n.a)),
        b(static_cast<C>(kKind == RandomKind::kUniform ? n.b - n.a : n.b)),
        end(static_cast<C>(n.b)) {}

  HWY_INLINE void operator()(const uint32_t (&words)[4], T* y) const {
    C u[kCount];
    for (int i = 0; i < kCount; ++i) {
      if constexpr (sizeof(C) == 8) {
        u[i] = UniformDouble(words[2 * i], words[2 * i + 1]);
      } else {
        u[i] = UniformFloat(words[i]);
      }
    }
    if constexpr (kKind == RandomKind::kNormal && sizeof(C) == 8) BoxMuller(u[0], u[1]);
    for (int i = 0; i < kCount; ++i) y[i] = Element(u[i]);
  }
  HWY_INLINE T Element(C u) const {
    if constexpr (kKind == RandomKind::kUniform) {
      const T y = static_cast<T>(Stretched(u, b, a));
      return static_cast<C>(y) < end ? y : static_cast<T>(a);
    } else if constexpr (kKind == RandomKind::kNormal) {
      return static_cast<T>(Stretched(u, b, a));
    } else {
      return static_cast<T>((u == 0 ? C(0x1p-25) : MinusLog(u)) / b);
    }
  }
};

template <class T>
HWY_INLINE T FromInteger(int64_t v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else {
    return static_cast<T>(static_cast<ComputeOf<T>>(v));
  }
}

template <RandomKind kKind, class T>
struct Whole {
  static constexpr int kCount = 4;
  RandomNumbers n;
  explicit Whole(const RandomNumbers& numbers) : n(numbers) {}

  HWY_INLINE void operator()(const uint32_t (&words)[4], T* y) const {
    for (int i = 0; i < kCount; ++i) {
      if constexpr (kKind == RandomKind::kIntegers) {
        y[i] = FromInteger<T>(IntegerOf(words[i], n.low, n.count));
      } else if constexpr (kKind == RandomKind::kBernoulli) {
        y[i] = FromInteger<T>(words[i] >> 8 < n.threshold);
      } else {
        y[i] = static_cast<T>(words[i]);
      }
    }
  }
};

template <class T, class Elements>
void Fill(const RandomFill& fill, int64_t begin, int64_t end) {
  constexpr int64_t kCount = Elements::kCount, kBlock = kCount * kPhiloxLanes;
  const Elements elements(fill.numbers);
  T* y = static_cast<T*>(fill.y);
  for (int64_t block = begin; block < end; ++block) {
    const PhiloxBlock bits(fill.seed, fill.offset + static_cast<uint64_t>(block * kPhiloxLanes));
    for (int lane = 0; lane < kPhiloxLanes; ++lane) {
      const int64_t at = block * kBlock + lane * kCount;
      if (at >= fill.n) return;
      const uint32_t words[4] = {bits.words[0][lane], bits.words[1][lane], bits.words[2][lane],
                                 bits.words[3][lane]};
      if (at + kCount <= fill.n) {
        elements(words, y + at);
      } else {
        T last[kCount];
        elements(words, last);
        std::copy(last, last + (fill.n - at), y + at);
      }
    }
  }
}

// The normals of float32 and narrower.
template <class T>
void FillNormal(const RandomFill& fill, int64_t begin, int64_t end) {
  const Real<RandomKind::kNormal, T> terms(fill.numbers);
  constexpr int64_t kBlock = 4 * kPhiloxLanes;
  T* y = static_cast<T*>(fill.y);
  for (int64_t block = begin; block < end; ++block) {
    const NormalBlock normal(
        PhiloxBlock(fill.seed, fill.offset + static_cast<uint64_t>(block * kPhiloxLanes)));
    T made[kBlock];
    for (int i = 0; i < NormalBlock::kPairs; ++i) {
      made[2 * i] = terms.Element(static_cast<float>(normal.first[i]));
      made[2 * i + 1] = terms.Element(static_cast<float>(normal.second[i]));
    }
    std::copy(made, made + std::min(kBlock, fill.n - block * kBlock), y + block * kBlock);
  }
}

template <class T, class Elements>
RandomLoop LoopOf() {
  return {&Fill<T, Elements>, Elements::kCount * kPhiloxLanes};
}
template <RandomKind kKind>
RandomLoop RealLoop(DType dtype) {
  return VisitFloating(dtype, []<class T>(Tag<T>) -> RandomLoop {
    if constexpr (kKind == RandomKind::kNormal && sizeof(T) < 8) {
      return {&FillNormal<T>, 4 * kPhiloxLanes};
    } else {
      return LoopOf<T, Real<kKind, T>>();
    }
  });
}
template <RandomKind kKind>
RandomLoop WholeLoop(DType dtype) {
  return VisitAll(dtype, []<class T>(Tag<T>) { return LoopOf<T, Whole<kKind, T>>(); });
}

}  // namespace

RandomLoop FindLoop(RandomKind kind, DType dtype) {
  switch (kind) {
    case RandomKind::kUniform:
      return RealLoop<RandomKind::kUniform>(dtype);
    case RandomKind::kNormal:
      return RealLoop<RandomKind::kNormal>(dtype);
    case RandomKind::kExponential:
      return RealLoop<RandomKind::kExponential>(dtype);
    case RandomKind::kIntegers:
      return WholeLoop<RandomKind::kIntegers>(dtype);
    case RandomKind::kBernoulli:
      return WholeLoop<RandomKind::kBernoulli>(dtype);
    case RandomKind::kBits:
      return LoopOf<int64_t, Whole<RandomKind::kBits, int64_t>>();
  }
  return {};
}

}  // namespace HWY_NAMESPACE
}  // namespace oneflow_lite
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneflow_lite {
namespace {

HWY_EXPORT(FindLoop);

class CpuRandom final : public Random {
 public:
  explicit CpuRandom(const Spec& spec)
      : loop_(HWY_DYNAMIC_DISPATCH(FindLoop)(spec.kind, spec.dtype)) {}

  Status Launch(Stream&, int64_t n, const PhiloxState& state, const RandomNumbers& numbers,
                void* y) const override {
    RandomFill fill{n, state.seed, state.offset, numbers, y};
    if (state.shift) fill.seed += state.shift[0], fill.offset += state.shift[1];
    constexpr int64_t kGrain = 128;  // blocks: some 10 us of work
    ParallelFor((n + loop_.block - 1) / loop_.block, kGrain,
                [&](int64_t begin, int64_t end) { loop_.run(fill, begin, end); });
    return OkStatus();
  }

 private:
  RandomLoop loop_;
};

StatusOr<std::unique_ptr<Random>> NewRandom(const Random::Spec& spec) {
  const bool any = spec.kind == RandomKind::kIntegers || spec.kind == RandomKind::kBernoulli;
  const bool there =
      spec.kind == RandomKind::kBits ? spec.dtype == DType::kInt64 : any || IsFloating(spec.dtype);
  if (!there) return NoPrimitiveFor(Random::kName, DeviceType::kCPU, spec.dtype);
  return std::make_unique<CpuRandom>(spec);
}

const bool registered = RegisterPrimitive<Random>(DeviceType::kCPU, &NewRandom);

}  // namespace
}  // namespace oneflow_lite
#endif  // HWY_ONCE
