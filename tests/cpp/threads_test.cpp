// SPDX-License-Identifier: Apache-2.0
//
// What several threads may do at once: first calls, registration, backward through one graph,
// gradients, memory. Meant for ThreadSanitizer (`make test-tsan`) as much as for the values.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "functional/binary.h"
#include "functional/creation.h"
#include "functional/layer_norm.h"
#include "functional/reduce.h"
#include "functional/softmax.h"
#include "functional/unary.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/kernel_registry.h"
#include "oneflow_lite/framework/op_registry.h"

namespace oneflow_lite {
namespace {

namespace F = functional;

// Runs f(0) to f(count - 1) in threads that start together.
template <class F>
void InThreads(int count, F&& f) {
  std::atomic<int> waiting{count};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      f(i);
    });
  }
  for (std::thread& t : threads) t.join();
}

Tensor Leaf(double value) {
  const Tensor t = F::Full({16}, value, DType::kFloat32).value();
  EXPECT_TRUE(autograd::SetRequiresGrad(t, true).ok());
  return t;
}

float First(const Tensor& t) { return t.data<float>()[0]; }

// Each of a process's first calls builds an expression, binds a kernel and makes primitives.
TEST(ThreadTest, FirstCalls) {
  std::vector<float> results(4);
  InThreads(4, [&](int i) {
    const Tensor x = F::Full({4, 8}, 0.5, DType::kFloat32).value();
    const Tensor y = F::Softmax(F::Exp(F::Mul(x, x).value()).value(), 1).value();
    results[i] = First(F::Sum(F::Add(y, x).value()).value());
  });
  for (const float r : results) EXPECT_NEAR(r, 4 + 16, 1e-5);
}

TEST(ThreadTest, OpsAreRegisteredWhileOthersRun) {
  constexpr int kOps = 50;
  static int runs = 0;  // names cannot be given back
  const std::string prefix = "thread_test::op" + std::to_string(++runs) + "_";
  const auto name = [&](int i) { return prefix + std::to_string(i); };
  std::atomic<int> registered{0};
  InThreads(4, [&](int thread) {
    for (int i = 0; i < kOps; ++i) {
      if (thread < 2) {  // both try each name: one of them gets it
        OpDef op;
        op.name = name(i);
        op.Input("in").Output("out");
        op.infer = [](InferContext& c) {
          c.SetOutput(0, c.shape(0), c.dtype(0));
          return OkStatus();
        };
        if (RegisterOp(std::move(op)).ok()) ++registered;
      } else {
        ASSERT_TRUE(F::Exp(F::Full({3}, 1, DType::kFloat64).value()).ok());
        ASSERT_TRUE(FindOp("softmax").ok());
        if (const auto op = FindOp(name(i)); op.ok()) EXPECT_EQ((*op)->def().name, name(i));
        ASSERT_GT(ListOps().size(), 10u);
        ASSERT_FALSE(ListKernels("softmax").empty());
      }
    }
  });
  EXPECT_EQ(registered, kOps);
}

TEST(ThreadTest, BackwardThroughOneGraphThatIsKept) {
  const Tensor x = Leaf(2);
  const Tensor y = F::Mul(F::Exp(x).value(), x).value();
  const Tensor loss = F::Sum(y).value();
  InThreads(4, [&](int) {
    for (int i = 0; i < 25; ++i) ASSERT_TRUE(autograd::Backward({loss}, {}, true).ok());
  });
  EXPECT_NEAR(First(autograd::Grad(x)) / (100 * 3 * std::exp(2.0)), 1, 1e-4);
}

// What is freed by the one is an error for the others, or still there.
TEST(ThreadTest, BackwardThroughOneGraphThatIsFreed) {
  for (int round = 0; round < 20; ++round) {
    const Tensor x = Leaf(1);
    Tensor y = x;
    for (int i = 0; i < 50; ++i) y = F::Mul(y, x).value();
    const Tensor loss = F::Sum(y).value();
    std::atomic<int> done{0};
    InThreads(3, [&](int) {
      const Status s = autograd::Backward({loss}, {});
      if (s.ok()) {
        ++done;
      } else {
        EXPECT_NE(s.message().find("a second time"), absl::string_view::npos) << s;
      }
    });
    EXPECT_GE(done, 1);
  }
}

// A logger reads .grad and an optimizer clears it while a pass adds to it.
TEST(ThreadTest, GradientsAreReadAndClearedMeanwhile) {
  const Tensor x = Leaf(1);
  std::atomic<bool> ended{false};
  InThreads(3, [&](int thread) {
    if (thread == 0) {
      for (int i = 0; i < 200; ++i) {
        const Tensor loss = F::Sum(F::Mul(x, x).value()).value();
        ASSERT_TRUE(autograd::Backward({loss}, {}, false, i % 2 == 0).ok());
      }
      ended = true;
    }
    while (!ended) {
      if (thread == 1) ASSERT_TRUE(autograd::SetGrad(x, {}).ok());
      const Tensor grad = autograd::Grad(x);
      if (grad.defined()) EXPECT_EQ(grad.shape(), x.shape());
    }
  });
  // A gradient with a graph keeps x, which keeps the gradient.
  ASSERT_TRUE(autograd::SetGrad(x, {}).ok());
}

// Each thread frees what another one made.
TEST(ThreadTest, MemoryIsPassedOn) {
  constexpr int kThreads = 4;
  std::mutex mutex;
  std::vector<Tensor> parcels;
  DeviceBackend* cpu = GetBackend(DeviceType::kCPU).value();
  const size_t before = cpu->Stats(0).allocated;
  InThreads(kThreads, [&](int thread) {
    for (int i = 0; i < 200; ++i) {
      Tensor made = F::Full({64 << (i % 5)}, thread, DType::kFloat32).value();
      Tensor taken;
      {
        std::lock_guard lock(mutex);
        parcels.push_back(std::move(made));
        if (parcels.size() > kThreads) taken = std::move(parcels.front());
        if (taken.defined()) parcels.erase(parcels.begin());
      }
      if (taken.defined()) EXPECT_EQ(taken.data<float>()[0], taken.data<float>()[63]);
      if (i % 50 == 0) cpu->EmptyCache(0);
    }
  });
  parcels.clear();
  EXPECT_EQ(cpu->Stats(0).allocated, before);
}

// Numbers of one generator: no two threads get the same ones.
TEST(ThreadTest, RandomNumbersAreNotHandedOutTwice) {
  std::vector<Tensor> made(4);
  InThreads(4, [&](int i) { made[i] = F::Rand({64}).value(); });
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < i; ++j) EXPECT_NE(First(made[i]), First(made[j]));
  }
}

}  // namespace
}  // namespace oneflow_lite
