// SPDX-License-Identifier: Apache-2.0
//
// Expressions of elements from C++: their text, their gradients, and the functor on each device.
#include "functional/fused_elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/reduce.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/expression_types.h"
#include "oneflow_lite/framework/autograd.h"
#include "primitive/nvrtc.h"

namespace oneflow_lite {
namespace {

using functional::FuseElements;

TEST(ExpressionTest, ItsTextIsReadAsItself) {
  for (const char* text :
       {"x: x", "x, y: x * sigmoid(y)", "x: t = exp(x); t, t * t, -t ** 3",
        "t0: t1 = t0 + 0.1; t1 * t1 - inf", "n: n & 3 | ~n", "x: -2 ** 0.5 * x"}) {
    const StatusOr<Expression> e = Expression::Parse(text);
    ASSERT_TRUE(e.ok()) << e.status();
    const StatusOr<Expression> again = Expression::Parse(e->Text());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->Text(), e->Text());
    EXPECT_EQ(again->steps().size(), e->steps().size());
  }
}

TEST(ExpressionTest, EachStepIsThereOnce) {
  const auto e = Expression::Parse("x, y: a = exp(x) * y; b = exp(x) * y; dead = log(y); a + b");
  ASSERT_TRUE(e.ok());
  EXPECT_EQ(e->steps().size(), 5u);  // x, y, exp, mul, add
}

TEST(ExpressionTest, AGradientIsAnExpression) {
  const auto e = Expression::Parse("x, y: x * exp(y)");
  ASSERT_TRUE(e.ok());
  const auto g = Differentiate(*e, {{0, 1}, {DType::kBool, DType::kFloat16}, {0}});
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ(g->parameters(), (std::vector<std::string>{"d0", "x0", "x1"}));
  EXPECT_EQ(g->outputs().size(), 2u);
  // exp(y) is computed once: d exp(y), and d x exp(y).
  EXPECT_EQ(g->steps().size(), 3u + 1 + 1 + 2 + 1);
}

TEST(ExpressionTest, PromotesAsFunctionsDo) {
  const auto e = Expression::Parse("x, n, s: x * n, n / 2, n + s, n > s, x + s");
  ASSERT_TRUE(e.ok());
  const ElementType half{DType::kFloat16, ElementType::kTensor};
  const ElementType whole{DType::kInt32, ElementType::kTensor};
  const auto typed = Typed(*e, {half, whole, {DType::kFloat64, ElementType::kNumber}});
  ASSERT_TRUE(typed.ok()) << typed.status();
  EXPECT_EQ(typed->outputs, (std::vector<DType>{DType::kFloat16, DType::kFloat32, DType::kFloat32,
                                                DType::kBool, DType::kFloat16}));
}

class FusedElementsTest : public testing::TestWithParam<DeviceType> {
 protected:
  void SetUp() override {
    const auto backend = GetBackend(Device{GetParam(), 0});
    if (!backend.ok()) GTEST_SKIP() << std::string(backend.status().message());
    AddToolkitFolders({OFL_SOURCE_FOLDER});  // the headers, where the library is not installed
  }

  Tensor Of(const std::vector<float>& values, Dims shape) const {
    Tensor t = *Tensor::Empty(Shape(shape), DType::kFloat32, Device{});
    std::copy(values.begin(), values.end(), t.data<float>());
    return *functional::To(t, Device{GetParam(), 0}, DType::kFloat32);
  }
  static std::vector<float> ValuesOf(const Tensor& t) {
    const Tensor host = *functional::Contiguous(*functional::To(t, Device{}, DType::kFloat32));
    return {host.data<float>(), host.data<float>() + host.numel()};
  }
};

TEST_P(FusedElementsTest, GivesTheValuesAndTheirGradients) {
  const Tensor x = Of({1, -2, 3, 4, 0.5, -6}, {2, 3}), y = Of({0, 1, -1}, {3});
  ASSERT_TRUE(autograd::SetRequiresGrad(x, true).ok());
  ASSERT_TRUE(autograd::SetRequiresGrad(y, true).ok());
  const auto results = FuseElements("x, y, s: x * sigmoid(y) + s, x > s", {x, y, Scalar(0.5)});
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 2u);
  EXPECT_EQ((*results)[1].dtype(), DType::kBool);
  const std::vector<float> xs = ValuesOf(x), ys = ValuesOf(y), got = ValuesOf((*results)[0]);
  ASSERT_TRUE(autograd::Backward({*functional::Sum((*results)[0])}, {}).ok());
  const std::vector<float> dx = ValuesOf(autograd::Grad(x)), dy = ValuesOf(autograd::Grad(y));
  for (int col = 0; col < 3; ++col) {
    const float s = 1 / (1 + std::exp(-ys[col]));
    EXPECT_NEAR(dy[col], (xs[col] + xs[3 + col]) * s * (1 - s), 1e-5f);
    for (int i = col; i < 6; i += 3) {
      EXPECT_NEAR(got[i], xs[i] * s + 0.5f, 1e-5f);
      EXPECT_NEAR(dx[i], s, 1e-6f);
    }
  }
}

TEST_P(FusedElementsTest, SaysWhatIsWrong) {
  const Tensor x = Of({1, 2}, {2});
  const auto unknown = FuseElements("x: soft(x)", {x});
  EXPECT_EQ(KindOf(unknown.status()), ErrorKind::kValue);
  EXPECT_NE(unknown.status().message().find("soft() cannot be fused; allowed are abs"),
            absl::string_view::npos);
  EXPECT_EQ(KindOf(FuseElements("x, y: x", {x}).status()), ErrorKind::kType);
  EXPECT_EQ(KindOf(FuseElements("x: x", {Tensor()}).status()), ErrorKind::kType);
}

INSTANTIATE_TEST_SUITE_P(Devices, FusedElementsTest,
                         testing::Values(DeviceType::kCPU, DeviceType::kCUDA),
                         [](const auto& info) {
                           return info.param == DeviceType::kCPU ? "cpu" : "cuda";
                         });

}  // namespace
}  // namespace oneflow_lite
