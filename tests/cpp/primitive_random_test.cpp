// SPDX-License-Identifier: Apache-2.0
//
// Random numbers against Philox on the host, element by element; dropout against its draws.
#include <cmath>
#include <numbers>

#include "oneflow_lite/core/philox.h"
#include "primitive/dropout.h"
#include "primitive/random.h"
#include "primitive/random_math.h"
#include "primitive_testing.h"

namespace oneflow_lite {
namespace {

class RandomTest : public PrimitiveTest {
 protected:
  HostArray Rand(RandomKind kind, DType dtype, int64_t n, const PhiloxState& state,
                 const RandomNumbers& numbers = {}) {
    auto random = New<RandomFactory>({kind, dtype});
    Buffer out(*this, dtype, n, 1);
    EXPECT_TRUE(random->Launch(*stream_, n, state, numbers, out.data()).ok());
    return out.Read();
  }
};

TEST_P(RandomTest, BitsAndUniformsAreThoseOfPhilox) {
  const PhiloxState state{.seed = 0x123456789abcdefull, .offset = (1ull << 32) - 3};
  for (const int64_t n : {0, 1, 2, 5, 1023, 100003}) {
    const HostArray bits = Rand(RandomKind::kBits, DType::kInt64, n, state);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t want = Philox(state.seed, state.offset + i / 4).v[i % 4];
      ASSERT_EQ(bits.Int(i), want) << i;
    }
    for (const DType dtype : kFloatingTypes) {
      const HostArray y = Rand(RandomKind::kUniform, dtype, n, state);
      HostArray want(dtype, n);
      for (int64_t i = 0; i < n; ++i) {
        if (dtype == DType::kFloat64) {
          const PhiloxResult r = Philox(state.seed, state.offset + i / 2);
          want.Set(i, UniformDouble(r.v[2 * (i % 2)], r.v[2 * (i % 2) + 1]));
        } else {
          want.Set(i, UniformFloat(Philox(state.seed, state.offset + i / 4).v[i % 4]));
          if (want.Float(i) >= 1) want.Set(i, 0);
        }
      }
      EXPECT_TRUE(y == want) << Name(dtype) << " " << n;
    }
  }
}

TEST_P(RandomTest, NormalsAreBoxAndMullersOfTheUniforms) {
  const PhiloxState state{.seed = 7, .offset = 11};
  const int64_t n = 100003;
  for (const DType dtype : kFloatingTypes) {
    const DType source = ComputeType(dtype);
    const HostArray u = Rand(RandomKind::kUniform, source, n + 1, state);
    const HostArray y = Rand(RandomKind::kNormal, dtype, n, state);
    std::vector<double> want(n);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double r = std::sqrt(-2 * std::log(1 - u.Float(i / 2 * 2)));
      const double t = 2 * std::numbers::pi * u.Float(i / 2 * 2 + 1);
      want[i] = i % 2 ? r * std::sin(t) : r * std::cos(t);
      sum += y.Float(i);
      squares += y.Float(i) * y.Float(i);
    }
    const double bound = dtype == DType::kFloat64 ? 1e-13 : 1e-5;
    ExpectNear(
        y, want, [&](int64_t i) { return bound + (bound < 1e-9 ? 0 : StepOf(dtype, want[i])); },
        "normal");
    EXPECT_NEAR(sum / static_cast<double>(n), 0, 0.02);
    EXPECT_NEAR(squares / static_cast<double>(n), 1, 0.03);
  }
}

TEST_P(RandomTest, ShiftOnTheDeviceIsAdded) {
  HostArray shift(DType::kInt64, 2);
  shift.SetInt(0, 2);
  shift.SetInt(1, 5);
  Buffer on_device(*this, shift);
  const PhiloxState moving{
      .seed = 1, .offset = 4, .shift = static_cast<const uint64_t*>(on_device.data())};
  EXPECT_TRUE(Rand(RandomKind::kUniform, DType::kFloat32, 100, moving) ==
              Rand(RandomKind::kUniform, DType::kFloat32, 100, {.seed = 3, .offset = 9}));
}

TEST_P(RandomTest, IntegersAndTruthsAreThoseOfTheWords) {
  const PhiloxState state{.seed = 5, .offset = 9};
  for (const int64_t n : {1, 63, 64, 65, 5001}) {
    const HostArray bits = Rand(RandomKind::kBits, DType::kInt64, n, state);
    const RandomNumbers range{.low = -3, .count = 100};
    const HostArray whole = Rand(RandomKind::kIntegers, DType::kInt16, n, state, range);
    const HostArray all = Rand(RandomKind::kIntegers, DType::kInt64, n, state,
                               {.low = -7, .count = uint64_t{1} << 32});
    const RandomNumbers chance{.threshold = UniformThreshold(0.3)};
    const HostArray truth = Rand(RandomKind::kBernoulli, DType::kBool, n, state, chance);
    for (int64_t i = 0; i < n; ++i) {
      const auto word = static_cast<uint32_t>(bits.Int(i));
      ASSERT_EQ(whole.Int(i), -3 + static_cast<int64_t>((uint64_t{word} * 100) >> 32));
      ASSERT_EQ(all.Int(i), int64_t{word} - 7);
      ASSERT_EQ(truth.Int(i), static_cast<double>(UniformFloat(word)) < 0.3 ? 1 : 0);
    }
  }
}

// The two normals of u and v that `transform` gives are within so many units in the last place.
template <class F>
void ExpectNormals(F&& transform, long double units) {
  for (uint64_t counter = 0; counter < 200000; ++counter) {
    const PhiloxResult r = Philox(3, counter);
    float u = UniformFloat(r.v[0]), v = UniformFloat(r.v[1]);
    if (counter < 64) u = static_cast<float>(counter) * 0x1p-24f;
    if (counter % 64 == 1) v = static_cast<float>(counter % 9) / 8;
    if (v >= 1) v = 0;
    const long double radius = std::sqrt(-2 * std::log(1 - static_cast<long double>(u)));
    const long double angle = 2 * std::numbers::pi_v<long double> * v;
    const long double want[] = {radius * std::cos(angle), radius * std::sin(angle)};
    transform(u, v);
    const float got[] = {u, v};
    for (int k = 0; k < 2; ++k) {
      const auto near = static_cast<float>(want[k]);
      if (std::fabs(near) < 1e-18f) {  // the sine of a whole turn
        ASSERT_LT(std::fabs(got[k]), 1e-18f);
        continue;
      }
      const long double ulp = std::nextafter(std::fabs(near), 100.f) - std::fabs(near);
      ASSERT_LE(std::fabs(got[k] - want[k]), units * ulp) << counter << " " << k;
    }
  }
}
// What CUDA computes in floats, on the host.
TEST(BoxMuller, InFloatsIsExactButForTheLastPlace) {
  ExpectNormals([](float& u, float& v) { BoxMullerInFloats(u, v); }, 2);
}
TEST(BoxMuller, For16BitsIsExactButForThreeBits) {
  ExpectNormals([](float& u, float& v) { NearBoxMuller(u, v); }, 8);
}
TEST(Log, OfAllUniforms) {
  for (uint32_t k = 1; k < 1u << 24; k += k < 4096 ? 1 : 37) {
    const float w = 1.0f - static_cast<float>(k) * 0x1p-24f;
    const double want = std::log(static_cast<double>(w));
    const auto near = static_cast<float>(-want);
    const double ulp = static_cast<double>(std::nextafter(near, 100.f)) - near;
    ASSERT_LE(std::fabs(LogOfNormal(w) - want), 1.3 * ulp) << k;
    ASSERT_LE(std::fabs(NearLogOf(w) - want), 6 * ulp) << k;
  }
}

TEST_P(RandomTest, DropoutKeepsWhatItsDrawsSay) {
  const PhiloxState state{.seed = 11, .offset = 2};
  for (const DType dtype : kFloatingTypes) {
    auto dropout = New<DropoutFactory>({dtype});
    // Around a counter, a pack of 16 bytes, and a block of the CPU.
    for (const int64_t n : {1, 3, 4, 7, 8, 9, 63, 64, 65, 4099}) {
      for (const int64_t inner : {1, 3, 8, 40}) {
        HostArray x(dtype, n);
        for (int64_t i = 0; i < n; ++i) x.Set(i, static_cast<double>(i % 100 + 1));
        Buffer in(*this, x), out(*this, dtype, n, 1), back(*this, dtype, n, 1);
        Buffer drawn(*this, DType::kInt64, 2);
        const DropoutNumbers numbers{
            .p = 0.4, .scale = 2, .kept = 0.5, .dropped = -1, .inner = inner};
        ASSERT_TRUE(dropout
                        ->Launch(*stream_, n, state, numbers, in.data(), out.data(),
                                 static_cast<uint64_t*>(drawn.data()))
                        .ok());
        ASSERT_TRUE(dropout
                        ->LaunchBackward(*stream_, n, numbers, in.data(),
                                         static_cast<const uint64_t*>(drawn.data()), back.data())
                        .ok());
        const HostArray y = out.Read(), dx = back.Read(), place = drawn.Read();
        EXPECT_EQ(place.Int(0), 11);
        EXPECT_EQ(place.Int(1), 2);
        for (int64_t i = 0; i < n; ++i) {
          const int64_t k = i / inner;
          const bool keep = UniformFloat(Philox(11, 2 + k / 4).v[k % 4]) >= 0.4;
          HostArray want(dtype, 2);
          want.Set(0, keep ? 2 * x.Float(i) + 0.5 : -1);
          want.Set(1, keep ? 2 * x.Float(i) : 0);
          ASSERT_EQ(y.Float(i), want.Float(0)) << Name(dtype) << " " << n << " " << inner;
          ASSERT_EQ(dx.Float(i), want.Float(1)) << Name(dtype) << " " << n << " " << inner;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, RandomTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);

}  // namespace
}  // namespace oneflow_lite
