// SPDX-License-Identifier: Apache-2.0
//
// fill and arange.
#include "primitive/creation.h"
#include "primitive_testing.h"

namespace oneflow_lite {
namespace {

using Strides = absl::InlinedVector<int64_t, 4>;

class CreationTest : public PrimitiveTest {};

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

INSTANTIATE_TEST_SUITE_P(, CreationTest, testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         DeviceName);

}  // namespace
}  // namespace oneflow_lite
