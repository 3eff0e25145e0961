// SPDX-License-Identifier: Apache-2.0
#include "primitive/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "oneflow_lite/core/parallel.h"
#include "primitive/cpu/convert.h"
#include "primitive/cpu/philox_block.h"
#include "primitive/random_math.h"

namespace oneflow_lite {
namespace {

// log(w) of a multiple of 2^-24 in (0, 1], in double, to 40 bits: as LogOf.
double LogOfUniform(double w) {
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

  explicit NormalBlock(const PhiloxBlock& bits) {
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
void BoxMuller(double& u, double& v) {
  const double radius = std::sqrt(-2 * std::log(1 - u));
  const double turns = 4 * v, quarter = std::rint(turns);
  const double angle = (turns - quarter) * 1.5707963267948966;  // the difference is exact
  const auto q = static_cast<int>(quarter);
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const double to_u = q & 1 ? sine : cosine, to_v = q & 1 ? cosine : sine;
  u = radius * ((q + 1) & 2 ? -to_u : to_u);
  v = radius * (q & 2 ? -to_v : to_v);
}

float MinusLog(float u) { return static_cast<float>(-LogOfUniform(1.0 - u)); }
double MinusLog(double u) { return -std::log(1 - u); }

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

  void operator()(const uint32_t (&words)[4], T* y) const {
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
  T Element(C u) const {
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
T FromInteger(int64_t v) {
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

  void operator()(const uint32_t (&words)[4], T* y) const {
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
void Fill(int64_t n, uint64_t seed, uint64_t offset, const Elements& elements, T* y) {
  constexpr int64_t kCount = Elements::kCount, kBlock = kCount * kPhiloxLanes;
  constexpr int64_t kGrain = 256;  // blocks: some 10 us of work
  ParallelFor((n + kBlock - 1) / kBlock, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const PhiloxBlock bits(seed, offset + static_cast<uint64_t>(block * kPhiloxLanes));
      for (int lane = 0; lane < kPhiloxLanes; ++lane) {
        const int64_t at = block * kBlock + lane * kCount;
        if (at >= n) return;
        const uint32_t words[4] = {bits.words[0][lane], bits.words[1][lane], bits.words[2][lane],
                                   bits.words[3][lane]};
        if (at + kCount <= n) {
          elements(words, y + at);
        } else {
          T last[kCount];
          elements(words, last);
          std::copy(last, last + (n - at), y + at);
        }
      }
    }
  });
}

// The normals of float32 and narrower.
template <class T>
void FillNormal(int64_t n, uint64_t seed, uint64_t offset, const RandomNumbers& numbers, T* y) {
  const Real<RandomKind::kNormal, T> terms(numbers);
  constexpr int64_t kBlock = 4 * kPhiloxLanes, kGrain = 64;
  ParallelFor((n + kBlock - 1) / kBlock, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const NormalBlock normal(
          PhiloxBlock(seed, offset + static_cast<uint64_t>(block * kPhiloxLanes)));
      T made[kBlock];
      for (int i = 0; i < NormalBlock::kPairs; ++i) {
        made[2 * i] = terms.Element(static_cast<float>(normal.first[i]));
        made[2 * i + 1] = terms.Element(static_cast<float>(normal.second[i]));
      }
      std::copy(made, made + std::min(kBlock, n - block * kBlock), y + block * kBlock);
    }
  });
}

class CpuRandom final : public Random {
 public:
  explicit CpuRandom(const Spec& spec) : spec_(spec) {}

  Status Launch(Stream&, int64_t n, const PhiloxState& state, const RandomNumbers& numbers,
                void* y) const override {
    uint64_t seed = state.seed, offset = state.offset;
    if (state.shift) seed += state.shift[0], offset += state.shift[1];
    const auto fill = [&]<class Elements, class T>(Tag<T>, Tag<Elements>) {
      Fill(n, seed, offset, Elements(numbers), static_cast<T*>(y));
    };
    switch (spec_.kind) {
      case RandomKind::kUniform:
        VisitFloating(spec_.dtype,
                      [&]<class T>(Tag<T> t) { fill(t, Tag<Real<RandomKind::kUniform, T>>{}); });
        break;
      case RandomKind::kNormal:
        VisitFloating(spec_.dtype, [&]<class T>(Tag<T> t) {
          if constexpr (sizeof(T) == 8) {
            fill(t, Tag<Real<RandomKind::kNormal, T>>{});
          } else {
            FillNormal(n, seed, offset, numbers, static_cast<T*>(y));
          }
        });
        break;
      case RandomKind::kExponential:
        VisitFloating(spec_.dtype, [&]<class T>(Tag<T> t) {
          fill(t, Tag<Real<RandomKind::kExponential, T>>{});
        });
        break;
      case RandomKind::kIntegers:
        VisitAll(spec_.dtype,
                 [&]<class T>(Tag<T> t) { fill(t, Tag<Whole<RandomKind::kIntegers, T>>{}); });
        break;
      case RandomKind::kBernoulli:
        VisitAll(spec_.dtype,
                 [&]<class T>(Tag<T> t) { fill(t, Tag<Whole<RandomKind::kBernoulli, T>>{}); });
        break;
      case RandomKind::kBits:
        fill(Tag<int64_t>{}, Tag<Whole<RandomKind::kBits, int64_t>>{});
        break;
    }
    return OkStatus();
  }

 private:
  Spec spec_;
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
