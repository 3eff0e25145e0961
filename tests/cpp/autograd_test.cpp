// SPDX-License-Identifier: Apache-2.0
//
// Autograd, driven from C++: subsets of gradients, second order, in-place history and views, saved
// tensors, threads.
#include "oneflow_lite/framework/autograd.h"

#include <gtest/gtest.h>

#include <thread>

#include "framework_testing.h"
#include "functional/binary.h"
#include "functional/creation.h"
#include "functional/reduce.h"
#include "functional/softmax.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/framework/dispatch.h"

namespace oneflow_lite {
namespace {

TEST(Autograd, SubsetsOfRequiresGrad) {
  for (int subset = 1; subset < 4; ++subset) {
    const Tensor a = FromList({2}, {2, 3}, subset & 1), b = FromList({2}, {5, 7}, subset & 2);
    ASSERT_TRUE(autograd::Backward({F::Sum(F::Mul(a, b).value()).value()}, {}).ok());
    if (subset & 1)
      ExpectList(autograd::Grad(a), {5, 7});
    else
      EXPECT_FALSE(autograd::Grad(a).defined());
    if (subset & 2)
      ExpectList(autograd::Grad(b), {2, 3});
    else
      EXPECT_FALSE(autograd::Grad(b).defined());
  }
}

TEST(Autograd, GradientsAddUpAndDoNotShareMemory) {
  const Tensor a = FromList({2}, {1, 2}, true), b = FromList({2}, {3, 4}, true);
  const Tensor loss = F::Sum(F::Add(a, b).value()).value();
  ASSERT_TRUE(autograd::Backward({loss}, {}, true).ok());
  ASSERT_TRUE(F::MulInto(autograd::Grad(a), Scalar(10)).ok());
  ExpectList(autograd::Grad(b), {1, 1});
  ASSERT_TRUE(autograd::Backward({loss}, {}).ok());
  ExpectList(autograd::Grad(a), {11, 11});
  ExpectList(autograd::Grad(b), {2, 2});
}

TEST(Autograd, SecondTimeNeedsRetainGraph) {
  const Tensor x = FromList({2}, {1, 2}, true);
  const Tensor loss = F::Sum(F::Mul(x, x).value()).value();
  ASSERT_TRUE(autograd::Backward({loss}, {}).ok());
  const Status s = autograd::Backward({loss}, {});
  EXPECT_EQ(KindOf(s), ErrorKind::kRuntime);
  EXPECT_NE(s.message().find("retain_graph"), absl::string_view::npos) << s;
}

TEST(Autograd, SecondOrder) {
  const Tensor x = FromList({1}, {3}, true);
  const Tensor cube = F::Mul(F::Mul(x, x).value(), x).value();
  const Tensor g = autograd::Gradients({cube}, {x}, {}, true, true).value()[0];
  ExpectList(g, {27});
  ExpectList(autograd::Gradients({g}, {x}, {}).value()[0], {18});
}

TEST(Autograd, SavedTensorChangedInPlaceIsAnError) {
  const Tensor x = FromList({2}, {1, 2}, true), w = FromList({2}, {3, 4});
  const Tensor y = F::Mul(x, w).value();
  ASSERT_TRUE(F::AddInto(w, Scalar(1)).ok());
  const Status s = autograd::Backward({F::Sum(y).value()}, {});
  EXPECT_EQ(KindOf(s), ErrorKind::kRuntime);
  EXPECT_NE(s.message().find("changed in place"), absl::string_view::npos) << s;
}

TEST(Autograd, SavedOutputDoesNotOwnItsNode) {
  Ref<Node> node;
  {
    const Tensor x = FromList({2}, {1, 2}, true);
    const Tensor y = F::Exp(x).value();
    node = autograd::GradFn(y);
  }
  EXPECT_EQ(node->use_count(), 1);
}

TEST(Autograd, LeafMayNotBeChangedInPlace) {
  const Tensor x = FromList({2}, {1, 2}, true);
  EXPECT_EQ(KindOf(F::MulInto(x, Scalar(2)).status()), ErrorKind::kRuntime);
  EXPECT_EQ(KindOf(F::ZeroInto(F::Select(x, 0, 0).value()).status()), ErrorKind::kRuntime);
  GradGuard no_grad(false);
  ASSERT_TRUE(F::MulInto(x, Scalar(2)).ok());
  ExpectList(x, {2, 4});
}

TEST(Autograd, InPlaceChangesRebaseHistory) {
  const Tensor x = FromList({2}, {2, 3}, true), w = FromList({2}, {5, 7}, true);
  const Tensor y = F::Mul(x, Scalar(2)).value();  // 4 6
  ASSERT_TRUE(F::MulInto(y, w).ok());             // 20 42
  ASSERT_TRUE(autograd::Backward({F::Sum(y).value()}, {}).ok());
  ExpectList(autograd::Grad(x), {10, 14});
  ExpectList(autograd::Grad(w), {4, 6});
}

TEST(Autograd, InPlaceChangeOfAViewReachesItsBase) {
  const Tensor x = FromList({2, 2}, {1, 2, 3, 4}, true), w = FromList({2}, {5, 7}, true);
  const Tensor y = F::Mul(x, Scalar(1)).value();
  const Tensor row = F::Select(y, 0, 0).value(), other = F::Select(y, 0, 1).value();
  ASSERT_TRUE(F::MulInto(row, w).ok());  // y = [[5, 14], [3, 4]]
  const Tensor squares = F::Mul(y, y).value();
  ASSERT_TRUE(autograd::Backward({F::Sum(squares).value()}, {}, true).ok());
  ExpectList(autograd::Grad(x), {50, 196, 6, 8});
  ExpectList(autograd::Grad(w), {10, 56});
  // Views cut before and after the change speak of the new values.
  ExpectList(row, {5, 14});
  ASSERT_TRUE(autograd::SetGrad(x, {}).ok());
  ASSERT_TRUE(autograd::Backward({F::Sum(F::Add(row, other).value()).value()}, {}).ok());
  ExpectList(autograd::Grad(x), {5, 7, 1, 1});
}

TEST(Autograd, WritingIntoAPlainTensorRecords) {
  const Tensor out = F::Zeros({3}).value();
  const Tensor w = FromList({1}, {5}, true);
  const Tensor slot = F::Slice(out, 0, 1, 2).value();
  ASSERT_TRUE(F::CopyInto(slot, F::Mul(w, Scalar(2)).value()).ok());
  EXPECT_TRUE(autograd::RequiresGrad(out));
  const Tensor weights = FromList({3}, {1, 10, 100});
  ASSERT_TRUE(autograd::Backward({F::Sum(F::Mul(out, weights).value()).value()}, {}).ok());
  ExpectList(autograd::Grad(w), {20});
}

// A tenth of them under ThreadSanitizer and AddressSanitizer, whose frames are larger and whose
// calls take ten times as long: a recursion of 84 bytes a node would still overflow the stack.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kManyNodes = 100000;
#else
constexpr int kManyNodes = 1000000;
#endif

TEST(Autograd, MillionNodesAreFreed) {
  const Tensor x = FromList({1}, {1}, true);
  Tensor y = x;
  for (int i = 0; i < kManyNodes; ++i) y = F::Neg(y).value();
  ASSERT_TRUE(autograd::Backward({y}, {}).ok());
  ExpectList(autograd::Grad(x), {1});
  Tensor z = x;
  for (int i = 0; i < kManyNodes; ++i) z = F::Exp(F::Mul(z, Scalar(0)).value()).value();
  z = Tensor();  // a chain that was never walked, through saved tensors
}

TEST(Autograd, SavedTensorHooksPackAndUnpack) {
  int packed = 0, unpacked = 0;
  const Tensor x = FromList({2}, {1, 2}, true);
  Tensor y;
  {
    SavedTensorHooksGuard guard({[&](const Tensor& t) -> StatusOr<std::shared_ptr<void>> {
                                   ++packed;
                                   return std::make_shared<Tensor>(F::Clone(t).value());
                                 },
                                 [&](void* p) -> StatusOr<Tensor> {
                                   ++unpacked;
                                   return *static_cast<Tensor*>(p);
                                 }});
    y = F::Mul(x, x).value();
  }
  EXPECT_EQ(packed, 2);
  const Tensor g = autograd::Gradients({F::Sum(y).value()}, {x}, {}, true, true).value()[0];
  EXPECT_EQ(unpacked, 2);
  ExpectList(g, {2, 4});
  ExpectList(autograd::Gradients({F::Sum(g).value()}, {x}, {}).value()[0], {2, 2});
}

TEST(Autograd, TwoThreadsTrainAtOnce) {
  const Tensor shared = FromList({4}, {1, 2, 3, 4}, true);
  const auto work = [&] {
    for (int i = 0; i < 200; ++i) {
      const Tensor y = F::Softmax(F::Mul(shared, Scalar(2)).value(), 0).value();
      const Tensor loss = F::Sum(F::Mul(y, y).value()).value();
      ASSERT_TRUE(autograd::Backward({loss}, {}).ok());
    }
  };
  std::thread a(work), b(work);
  a.join();
  b.join();
  const std::vector<float> sum = ToList(autograd::Grad(shared));
  ASSERT_TRUE(autograd::SetGrad(shared, {}).ok());
  work();
  work();
  const std::vector<float> serial = ToList(autograd::Grad(shared));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(sum[i], serial[i], 1e-3f);
}

TEST(Autograd, BackwardInsideBackward) {
  const Tensor x = FromList({2}, {1, 2}, true), inner = FromList({2}, {3, 4}, true);
  const Tensor y = F::Mul(x, Scalar(3)).value();
  ASSERT_TRUE(autograd::AddHook(y, [&](const Tensor&) -> StatusOr<Tensor> {
                GradGuard grad(true);
                OFL_ASSIGN_OR_RETURN(Tensor z, F::Mul(inner, inner));
                OFL_ASSIGN_OR_RETURN(Tensor loss, F::Sum(z));
                OFL_RETURN_IF_ERROR(autograd::Backward({loss}, {}));
                return Tensor();
              }).ok());
  ASSERT_TRUE(autograd::Backward({F::Sum(y).value()}, {}).ok());
  ExpectList(autograd::Grad(x), {3, 3});
  ExpectList(autograd::Grad(inner), {6, 8});
}

}  // namespace
}  // namespace oneflow_lite
