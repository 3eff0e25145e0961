// SPDX-License-Identifier: Apache-2.0
#include "primitive/random.h"

#include <algorithm>
#include <bit>
#include <cmath>

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
      z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z / 13)))));
  return static_cast<double>(exponent) * 0.6931471805599453 + (2 * s + 2 * s * p);
}

// A pair of uniforms as a pair of normals. In double, rounded once, for floats.
void BoxMuller(float& u, float& v) {
  const double radius = std::sqrt(-2 * LogOfUniform(1.0 - u));
  const double turns = 4.0 * v;
  const auto quarter = static_cast<int>(turns + 0.5);
  const double x = (turns - quarter) * 1.5707963267948966, z = x * x;
  const double sine =
      x * (1 + z * (-1.0 / 6 +
                    z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z / -39916800.0)))));
  const double cosine =
      1 + z * (-0.5 +
               z * (1.0 / 24 +
                    z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z / 479001600.0)))));
  const double to_u = quarter & 1 ? sine : cosine, to_v = quarter & 1 ? cosine : sine;
  u = static_cast<float>(radius * ((quarter + 1) & 2 ? -to_u : to_u));
  v = static_cast<float>(radius * (quarter & 2 ? -to_v : to_v));
}
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
    if constexpr (kKind == RandomKind::kNormal) {
      for (int i = 0; i < kCount; i += 2) BoxMuller(u[i], u[i + 1]);
    }
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
        VisitFloating(spec_.dtype,
                      [&]<class T>(Tag<T> t) { fill(t, Tag<Real<RandomKind::kNormal, T>>{}); });
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
