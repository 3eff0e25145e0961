// SPDX-License-Identifier: Apache-2.0
//
// Who keeps what in a graph: hooks that come and go, chains that are freed, what a collector is
// told. Meant for ThreadSanitizer (`make test-tsan`) and AddressSanitizer, too.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "framework_testing.h"
#include "functional/binary.h"
#include "functional/creation.h"
#include "functional/reduce.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"
#include "oneflow_lite/framework/owned.h"

namespace oneflow_lite {
namespace {

constexpr int kLong = 200000;

GradHook Nothing() {
  return [](const Tensor&) -> StatusOr<Tensor> { return Tensor(); };
}
Tensor SumOfSquares(const Tensor& x) { return F::Sum(F::Mul(x, x).value()).value(); }

// Runs f on a thread with a stack of 256 KB, which 200,000 nested destructors do not fit.
template <class F>
void OnSmallStack(F f) {
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 256 << 10);
  pthread_t thread;
  const auto run = [](void* f) -> void* { return (*static_cast<F*>(f))(), nullptr; };
  ASSERT_EQ(pthread_create(&thread, &attr, run, &f), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attr);
}

// x.grad.grad.grad...
TEST(AutogradMemory, ChainsOfGradientsAreFreed) {
  Tensor head = FromList({1}, {1});
  for (int i = 0; i < kLong; ++i) {
    Tensor next = head.Detach();
    ASSERT_TRUE(autograd::SetGrad(next, head).ok());
    head = next;
  }
  OnSmallStack([&] { head = Tensor(); });
}

TEST(AutogradMemory, ChainsOfGradientsWithHistoryAreFreed) {
  Tensor head = F::Neg(FromList({1}, {1}, true)).value();
  for (int i = 0; i < kLong; ++i) {
    Tensor next = F::Neg(head.Detach()).value();
    ASSERT_TRUE(autograd::SetRequiresGrad(next, true).ok());
    next = F::Neg(next).value();
    ASSERT_TRUE(autograd::SetGrad(next, head).ok());
    head = next;
  }
  OnSmallStack([&] { head = Tensor(); });
}

// A hook that holds a tensor with a hook that holds a tensor...
TEST(AutogradMemory, ChainsOfHooksAreFreed) {
  Tensor head = FromList({1}, {1}, true);
  for (int i = 0; i < kLong; ++i) {
    Tensor next = FromList({1}, {1}, true);
    if (i % 2) next = F::Neg(next).value();
    const auto hook = [head](const Tensor&) -> StatusOr<Tensor> { return head; };
    ASSERT_TRUE(autograd::AddHook(next, hook).ok());
    head = next;
  }
  OnSmallStack([&] { head = Tensor(); });
}

TEST(AutogradMemory, ChainsThroughViewsAndPackedTensorsAreFreed) {
  Tensor head = FromList({1}, {1}, true);
  for (int i = 0; i < kLong; ++i) {
    SavedTensorHooksGuard guard(
        {[&](const Tensor&) -> StatusOr<std::shared_ptr<void>> {
           return std::make_shared<Tensor>(head);
         },
         [](void* p) -> StatusOr<Tensor> { return *static_cast<Tensor*>(p); }, nullptr, nullptr});
    const Tensor x = FromList({1}, {1}, true);
    head = F::View(F::Mul(x, x).value(), {1, 1}).value();  // whose base has the history
  }
  OnSmallStack([&] { head = Tensor(); });
}

// Memory of somebody else that is a tensor's, as through NumPy.
TEST(AutogradMemory, ChainsOfForeignMemoryAreFreed) {
  Tensor head = FromList({1}, {1});
  for (int i = 0; i < kLong; ++i) {
    auto* held = new Tensor(head);
    const auto release = [](void* t) { delete static_cast<Tensor*>(t); };
    head = Tensor(MakeRef<TensorImpl>(
        Storage::FromExternal(head.data(), head.nbytes(), Device{}, release, held), Shape{1},
        Dims{1}, 0, DType::kFloat32));
  }
  OnSmallStack([&] { head = Tensor(); });
}

TEST(AutogradMemory, HooksRunAsThePassDoes) {
  std::vector<bool> seen;
  const GradHook note = [&](const Tensor&) -> StatusOr<Tensor> {
    seen.push_back(GradEnabled());
    return Tensor();
  };
  const Tensor x = FromList({2}, {1, 2}, true);
  ASSERT_TRUE(autograd::AddHook(x, note).ok());
  ASSERT_TRUE(autograd::AddPostHook(x, note).ok());
  for (const bool create_graph : {false, true}) {
    seen.clear();
    const Tensor y = F::Mul(x, x).value();
    ASSERT_TRUE(autograd::AddHook(y, note).ok());
    ASSERT_TRUE(autograd::Backward({F::Sum(y).value()}, {}, false, create_graph).ok());
    EXPECT_EQ(seen, std::vector<bool>(3, create_graph));
    EXPECT_EQ(autograd::RequiresGrad(autograd::Grad(x)), create_graph);
    ASSERT_TRUE(autograd::SetGrad(x, {}).ok());
  }
}

TEST(AutogradMemory, AHookMayAddTakeAwayAndRunBackward) {
  const Tensor x = FromList({2}, {1, 2}, true);
  const Tensor y = F::Mul(x, x).value();
  std::vector<HookHandle> handles;
  int calls = 0;
  const auto hook = [&](const Tensor&) -> StatusOr<Tensor> {
    ++calls;
    for (HookHandle& handle : handles) handle.Remove();
    for (int i = 0; i < 50; ++i) handles.push_back(autograd::AddHook(y, Nothing()).value());
    const Tensor z = [&] {
      GradGuard grad(true);
      return SumOfSquares(x);
    }();
    OFL_RETURN_IF_ERROR(autograd::Backward({z}, {}));
    return Tensor();
  };
  for (int i = 0; i < 3; ++i) handles.push_back(autograd::AddHook(y, hook).value());
  ASSERT_TRUE(autograd::Backward({F::Sum(y).value()}, {}).ok());
  EXPECT_EQ(calls, 3);  // those that were there when the pass came to the node
}

TEST(AutogradMemory, HooksComeAndGoWhileOthersRunBackward) {
  const Tensor x = FromList({2}, {1, 2}, true);
  const Tensor y = F::Mul(x, x).value(), loss = F::Sum(y).value();
  std::atomic<int> calls{0}, running{4};
  const GradHook hook = [&, kept = std::make_shared<int>(1)](const Tensor&) -> StatusOr<Tensor> {
    calls += *kept;
    return Tensor();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) EXPECT_TRUE(autograd::Backward({loss}, {}, true).ok());
      --running;
    });
    threads.emplace_back([&, i] {
      const Tensor& t = i ? x : y;
      std::vector<HookHandle> handles;
      for (int n = 0; n < 400; ++n) {
        handles.push_back(autograd::AddHook(t, hook).value());
        handles.push_back(autograd::AddPostHook(x, hook).value());
        if (n % 3 == 0) handles.clear();  // forgotten: those stay
        if (handles.size() > 8) handles[n % 8].Remove();
        if (n % 40 == 0) MakeRef<HookTable>()->Remove(n);
      }
      --running;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(running, 0);
}

TEST(AutogradMemory, ANodeThatSavedNothingRunsAgain) {
  const Tensor x = FromList({2}, {1, 2}, true);
  const Tensor sum = F::Sum(F::Add(F::Neg(x).value(), x).value()).value();
  ASSERT_TRUE(autograd::Backward({sum}, {}).ok());
  ASSERT_TRUE(autograd::Backward({sum}, {}).ok());
  ExpectList(autograd::Grad(x), {0, 0});
}

// ---------------------------------------------------------------------------------------------

std::shared_ptr<void> Foreign(int name) { return std::make_shared<int>(name); }

class Names : public OwnedWalk {
 public:
  static std::multiset<int> Of(const Tensor& t) { return Names().Next(t); }
  // What another tensor of the same collection adds.
  std::multiset<int> Next(const Tensor& t) {
    found_.clear();
    From(t);
    return found_;
  }

 private:
  void OnForeign(const std::shared_ptr<void>& object) override {
    found_.insert(*static_cast<const int*>(object.get()));
  }
  void OnSlot(void*) override {}
  std::multiset<int> found_;
};
using Set = std::multiset<int>;

TEST(AutogradMemory, TheWalkFindsWhatATensorAloneKeeps) {
  Tensor x = FromList({2}, {1, 2}, true);
  ASSERT_TRUE(autograd::AddHook(x, Nothing(), Foreign(1)).ok());
  ASSERT_TRUE(autograd::AddPostHook(x, Nothing(), Foreign(2)).ok());
  EXPECT_EQ(Names::Of(x), (Set{1, 2}));
  {
    const Tensor other = x;
    EXPECT_EQ(Names::Of(x), Set{}) << "another reference";
  }
  Tensor y = F::Mul(x, x).value();
  ASSERT_TRUE(autograd::AddHook(y, Nothing(), Foreign(3)).ok());
  EXPECT_EQ(Names::Of(x), Set{}) << "the graph keeps it, too";
  EXPECT_EQ(Names::Of(y), Set{3});
  Tensor z = F::Add(F::Mul(y, y).value(), y).value();
  EXPECT_EQ(Names::Of(y), Set{});
  EXPECT_EQ(Names::Of(z), Set{}) << "y is held outside";
  const Ref<Node> node = autograd::GradFn(y);
  y = Tensor();
  EXPECT_EQ(Names::Of(z), Set{}) << "its node is";
  const_cast<Ref<Node>&>(node) = nullptr;
  EXPECT_EQ(Names::Of(z), Set{3}) << "reached three ways, and by those alone";
  x = Tensor();
  EXPECT_EQ(Names::Of(z), (Set{1, 2, 3}));
  ASSERT_TRUE(autograd::Backward({F::Sum(z).value()}, {}, true).ok());
  EXPECT_EQ(Names::Of(z), (Set{1, 2, 3}));
}

TEST(AutogradMemory, TheWalkCountsOverAllTensorsOfACollection) {
  Tensor a, b, c;
  {
    const Tensor x = FromList({2}, {1, 2}, true);
    const Tensor y = F::Mul(x, x).value();
    ASSERT_TRUE(autograd::AddHook(x, Nothing(), Foreign(1)).ok());
    ASSERT_TRUE(autograd::AddHook(y, Nothing(), Foreign(2)).ok());
    a = F::Exp(y).value(), b = F::Mul(y, y).value(), c = F::Neg(x).value();
  }
  ASSERT_TRUE(autograd::AddHook(b, Nothing(), Foreign(3)).ok());
  {
    Names walk;
    EXPECT_EQ(walk.Next(a), Set{});
    EXPECT_EQ(walk.Next(b), (Set{2, 3}));
    EXPECT_EQ(walk.Next(c), Set{1});
    for (int repetition = 0; repetition < 2; ++repetition) {
      walk.Repeat();
      EXPECT_EQ(walk.Next(a), (Set{1, 2}));
      EXPECT_EQ(walk.Next(c), Set{});
      EXPECT_EQ(walk.Next(b), Set{3});
    }
  }
  Names walk;
  EXPECT_EQ(walk.Next(a), Set{});
  EXPECT_EQ(walk.Next(c), Set{});
  walk.Repeat();
  EXPECT_EQ(walk.Next(a), Set{}) << "b is of no object of this collection";
}

TEST(AutogradMemory, TheWalkPassesGradientsAndBases) {
  const Tensor x = FromList({2}, {1, 2}, true);
  {
    const Tensor g = F::Mul(FromList({2}, {1, 2}, true), FromList({2}, {1, 2})).value();
    ASSERT_TRUE(autograd::AddHook(g, Nothing(), Foreign(1)).ok());
    ASSERT_TRUE(autograd::SetGrad(x, g).ok());
  }
  EXPECT_EQ(Names::Of(x), Set{1});
  const Tensor view = [] {
    const Tensor base = FromList({2}, {1, 2}, true);
    const Tensor made = F::Select(base, 0, 0).value();
    EXPECT_TRUE(autograd::AddHook(base, Nothing(), Foreign(2)).ok());
    EXPECT_TRUE(autograd::AddHook(made, Nothing(), Foreign(3)).ok());
    return made;
  }();
  EXPECT_EQ(Names::Of(view), (Set{2, 3}));
  const Tensor y = F::Neg(FromList({2}, {1, 2}, true)).value();
  ASSERT_TRUE(autograd::RetainGrad(y).ok());
  {
    const Tensor g = FromList({2}, {1, 2}, true);
    ASSERT_TRUE(autograd::AddHook(g, Nothing(), Foreign(4)).ok());
    ASSERT_TRUE(autograd::SetGrad(y, g).ok());
  }
  EXPECT_EQ(Names::Of(y), Set{4});
}

TEST(AutogradMemory, TheWalkPassesPackedTensors) {
  const Tensor x = FromList({2}, {1, 2}, true);
  Tensor y, other;
  {
    SavedTensorHooks hooks;
    int count = 0;
    hooks.pack = [&](const Tensor&) -> StatusOr<std::shared_ptr<void>> { return Foreign(++count); };
    hooks.unpack = [](void*) -> StatusOr<Tensor> { return Tensor(); };
    hooks.foreign_pack = Foreign(10);
    hooks.foreign_unpack = Foreign(20);
    SavedTensorHooksGuard guard(std::move(hooks));
    y = F::Mul(x, x).value();
    other = F::Exp(x).value();
    EXPECT_EQ(Names::Of(y), (Set{1, 2})) << "the functions are in force";
  }
  EXPECT_EQ(Names::Of(y), (Set{1, 2})) << "the functions belong to both";
  other = Tensor();
  EXPECT_EQ(Names::Of(y), (Set{1, 2, 10, 20}));
}

// The collection of a language whose lock is a mutex: what it saw at first it sees again, whatever
// threads without the lock do with tensors that they count.
TEST(AutogradMemory, AWalkHearsOfNoLessTheSecondTime) {
  const Tensor x = FromList({2}, {1, 2}, true);
  std::mutex lock;
  std::vector<Tensor> held(8);
  std::atomic<int> running{3};
  const auto make = [&](int name) {
    const Tensor y = F::Mul(FromList({2}, {1, 2}, true), x).value();
    EXPECT_TRUE(autograd::AddHook(y, Nothing(), Foreign(name)).ok());
    return F::Add(F::Mul(y, y).value(), y).value();
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (int n = 0; n < 150; ++n) {
        Tensor t;
        {
          std::lock_guard with(lock);
          Tensor& slot = held[(n * 5 + thread) % held.size()];
          if (!slot.defined() || n % 4 == 0) slot = make(n);
          t = slot;
        }
        EXPECT_TRUE(autograd::Backward({F::Sum(t).value()}, {}, true).ok());
        t = Tensor();
      }
      --running;
    });
  }
  while (running > 0) {
    std::lock_guard with(lock);
    std::vector<Set> first;
    for (const Tensor& t : held) first.push_back(Names::Of(t));
    for (size_t i = 0; i < held.size(); ++i) {
      const Set second = Names::Of(held[i]);
      EXPECT_TRUE(std::includes(second.begin(), second.end(), first[i].begin(), first[i].end()));
    }
  }
  for (std::thread& t : threads) t.join();
  ASSERT_TRUE(autograd::SetGrad(x, {}).ok());
}

}  // namespace
}  // namespace oneflow_lite
