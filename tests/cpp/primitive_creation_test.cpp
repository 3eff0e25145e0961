// SPDX-License-Identifier: Apache-2.0
//
// fill, arange and random: the random numbers against Philox on the host, element by element.
#include <numbers>

#include "oneflow_lite/core/philox.h"
#include "primitive/creation.h"
#include "primitive_testing.h"

namespace oneflow_lite {
namespace {

using Strides = absl::InlinedVector<int64_t, 4>;

class CreationTest : public PrimitiveTest {
 protected:
  HostArray Rand(Distribution distribution, DType dtype, int64_t n, const PhiloxState& state) {
    auto random = New<RandomFactory>({distribution, dtype});
    Buffer out(*this, dtype, n, 1);
    EXPECT_TRUE(random->Launch(*stream_, n, state, out.data()).ok());
    return out.Read();
  }
};

TEST_P(CreationTest, Fill) {
  for (const DType dtype : kAllTypes) {
    auto fill = New<FillFactory>({dtype});
    for (const Scalar value : {Scalar(true), Scalar(3), Scalar(-2), Scalar(1.5)}) {
      if (dtype == DType::kUInt8 && value.to<double>() < 0) continue;
      for (const int64_t n : {0, 1, 100, 70001}) {
        Buffer out(*this, dtype, n, 1);
        const Strides shape = {n}, one = {1};
        ASSERT_TRUE(
            fill->Launch(*stream_, MakeElementwise<1>(shape, {one}), value, out.data()).ok());
        HostArray want(dtype, n);
        for (int64_t i = 0; i < n; ++i) {
          if (dtype == DType::kBool) {
            want.SetInt(i, 1);
          } else {
            want.Set(i, value.to<double>());
          }
        }
        EXPECT_TRUE(out.Read() == want) << Name(dtype) << " " << n;
      }
    }
    // A padded, transposed destination: what lies between stays.
    Buffer out(*this, dtype, 6 * 10);
    HostArray want = out.Read();
    for (int64_t i = 0; i < 5; ++i) {
      for (int64_t j = 0; j < 6; ++j) want.SetInt(j * 10 + i, 1);
    }
    const Strides shape = {5, 6}, strides = {1, 10};
    const auto g = MakeElementwise<1>(shape, {strides});
    ASSERT_TRUE(fill->Launch(*stream_, g, Scalar(1), out.data()).ok());
    EXPECT_TRUE(out.Read() == want) << Name(dtype);
  }
}

TEST_P(CreationTest, Arange) {
  for (const DType dtype : kAllTypes) {
    if (dtype == DType::kBool) continue;
    auto arange = New<ArangeFactory>({dtype});
    const int64_t n = SizeOf(dtype) == 1 ? 40 : SizeOf(dtype) == 2 ? 300 : 100001;
    Buffer out(*this, dtype, n, 1);
    ASSERT_TRUE(arange->Launch(*stream_, n, Scalar(2), Scalar(3), out.data()).ok());
    HostArray want(dtype, n);
    for (int64_t i = 0; i < n; ++i) want.Set(i, 2.0 + 3.0 * static_cast<double>(i));
    EXPECT_TRUE(out.Read() == want) << Name(dtype);
  }
  auto arange = New<ArangeFactory>({DType::kFloat64});
  Buffer out(*this, DType::kFloat64, 1000);
  ASSERT_TRUE(arange->Launch(*stream_, 1000, Scalar(0.5), Scalar(-0.1), out.data()).ok());
  const HostArray y = out.Read();
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_NEAR(y.Float(i), 0.5 - 0.1 * static_cast<double>(i), 1e-13);
  }
}

TEST_P(CreationTest, BitsAndUniformsAreThoseOfPhilox) {
  const PhiloxState state{.seed = 0x123456789abcdefull, .offset = (1ull << 32) - 3};
  for (const int64_t n : {0, 1, 2, 5, 1023, 100003}) {
    const HostArray bits = Rand(Distribution::kBits, DType::kInt64, n, state);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t want = Philox(state.seed, state.offset + i / 4).v[i % 4];
      ASSERT_EQ(bits.Int(i), want) << i;
    }
    for (const DType dtype : kFloatingTypes) {
      const HostArray y = Rand(Distribution::kUniform, dtype, n, state);
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

TEST_P(CreationTest, NormalsAreBoxAndMullersOfTheUniforms) {
  const PhiloxState state{.seed = 7, .offset = 11};
  const int64_t n = 100003;
  for (const DType dtype : kFloatingTypes) {
    const DType source = ComputeType(dtype);
    const HostArray u = Rand(Distribution::kUniform, source, n + 1, state);
    const HostArray y = Rand(Distribution::kNormal, dtype, n, state);
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

TEST_P(CreationTest, ShiftOnTheDeviceIsAdded) {
  HostArray shift(DType::kInt64, 2);
  shift.SetInt(0, 2);
  shift.SetInt(1, 5);
  Buffer on_device(*this, shift);
  const PhiloxState moving{
      .seed = 1, .offset = 4, .shift = static_cast<const uint64_t*>(on_device.data())};
  EXPECT_TRUE(Rand(Distribution::kUniform, DType::kFloat32, 100, moving) ==
              Rand(Distribution::kUniform, DType::kFloat32, 100, {.seed = 3, .offset = 9}));
}

INSTANTIATE_TEST_SUITE_P(, CreationTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);

}  // namespace
}  // namespace oneflow_lite
