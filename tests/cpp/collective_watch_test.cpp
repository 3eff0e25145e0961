// SPDX-License-Identifier: Apache-2.0
//
// The watch over what a device has been given, with events that end when the test says so.
#include "oneflow_lite/core/collective_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "primitive/collective.h"

namespace oneflow_lite {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

class FakeEvent final : public Event {
 public:
  Status Record(Stream&) override { return OkStatus(); }
  Status Wait(Stream&) override { return OkStatus(); }
  Status Synchronize() override { return OkStatus(); }
  StatusOr<bool> Query() override {
    ++asked;
    while (stuck) std::this_thread::sleep_for(milliseconds(1));
    if (fails) return Error(ErrorKind::kRuntime, "the device has failed");
    return ended.load();
  }
  StatusOr<float> ElapsedMs(Event&) override { return 0.0f; }

  std::atomic<bool> ended{false}, fails{false};
  std::atomic<bool> stuck{false};  // as while another thread of the process holds the device's lock
  std::atomic<int> asked{0};
};

template <class F>
bool Within(milliseconds limit, F&& f) {
  for (const auto end = Clock::now() + limit; Clock::now() < end;) {
    if (f()) return true;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return f();
}

constexpr seconds kLong{60};  // the machine may be busy
int line, other_line;

TEST(CollectiveWatchTest, TellsOfWorkThatDoesNotEndOnceAndOfNothingBehindIt) {
  CollectiveWatch watch(milliseconds(5));
  std::atomic<int> late{0}, behind{0}, beside{0};
  watch.Add(&line, MakeRef<FakeEvent>(), milliseconds(30), [&] { ++late; });
  watch.Add(&line, MakeRef<FakeEvent>(), milliseconds(30), [&] { ++behind; });
  watch.Add(&other_line, MakeRef<FakeEvent>(), milliseconds(60), [&] { ++beside; });
  EXPECT_TRUE(Within(kLong, [&] { return late == 1 && beside == 1; }));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(late, 1);
  EXPECT_EQ(behind, 0);
  EXPECT_EQ(beside, 1);
}

TEST(CollectiveWatchTest, WorkThatEndsIsForgotten) {
  CollectiveWatch watch(milliseconds(2));
  std::atomic<int> late{0};
  auto event = MakeRef<FakeEvent>();
  event->ended = true;
  watch.Add(&line, event, milliseconds(50), [&] { ++late; });
  EXPECT_TRUE(Within(kLong, [&] { return event->asked > 0; }));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(event->asked, 1);
  EXPECT_EQ(late, 0);
}

// A long queue is no failure: the time of each begins at the end of the one before.
TEST(CollectiveWatchTest, ProgressGivesTheNextItsWholeTime) {
  CollectiveWatch watch(milliseconds(2));
  constexpr milliseconds kTimeout{2000};
  std::atomic<int> late{0};
  std::vector<Ref<FakeEvent>> events;
  for (int i = 0; i < 4; ++i) {
    events.push_back(MakeRef<FakeEvent>());
    watch.Add(&line, events[i], kTimeout, [&] { ++late; });
  }
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(kTimeout * 6 / 10);
    events[i]->ended = true;
    EXPECT_TRUE(Within(kLong, [&] { return events[i + 1]->asked > 0; })) << i;
    EXPECT_EQ(late, 0) << i;
  }
  EXPECT_TRUE(Within(kLong, [&] { return late == 1; }));
}

TEST(CollectiveWatchTest, ADeviceThatFailsIsNotAskedAgain) {
  CollectiveWatch watch(milliseconds(2));
  constexpr milliseconds kTimeout{1000};
  std::atomic<int> late{0};
  auto first = MakeRef<FakeEvent>(), second = MakeRef<FakeEvent>();
  first->fails = first->stuck = true;  // it answers when the second one is there
  watch.Add(&line, first, kTimeout, [&] { ++late; });
  watch.Add(&line, second, kTimeout, [&] { ++late; });
  first->stuck = false;
  EXPECT_TRUE(Within(kLong, [&] { return first->asked > 0; }));
  std::this_thread::sleep_for(kTimeout + kTimeout / 4);
  EXPECT_EQ(first->asked, 1);
  EXPECT_EQ(late, 0);
}

TEST(CollectiveWatchTest, AfterStopNothingIsAsked) {
  CollectiveWatch watch(milliseconds(1));
  auto event = MakeRef<FakeEvent>();
  watch.Add(&line, event, kLong, [] {});
  EXPECT_TRUE(Within(kLong, [&] { return event->asked > 2; }));
  watch.Stop();
  const int asked = event->asked;
  watch.Add(&line, event, kLong, [] {});
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(event->asked, asked);
}

// What is told may take its time, and may ask for more to be watched.
TEST(CollectiveWatchTest, WhoIsToldMayAddAndTakeLong) {
  CollectiveWatch watch(milliseconds(1));
  std::atomic<bool> told{false}, again{false};
  watch.Add(&line, MakeRef<FakeEvent>(), milliseconds(5), [&] {
    std::this_thread::sleep_for(milliseconds(50));
    watch.Add(&line, MakeRef<FakeEvent>(), milliseconds(5), [&] { again = true; });
    told = true;
  });
  EXPECT_TRUE(Within(kLong, [&] { return told && again; }));
}

// A launch that waits for room in a full queue holds a lock that who asks an event needs.
TEST(CollectiveWatchTest, WorkWhoseEventDoesNotAnswerIsLateToo) {
  CollectiveWatch watch(milliseconds(5), milliseconds(50));
  std::atomic<int> late{0}, beside{0};
  auto event = MakeRef<FakeEvent>();
  event->stuck = true;
  watch.Add(&line, event, milliseconds(100), [&] { ++late; });
  EXPECT_TRUE(Within(kLong, [&] { return event->asked > 0; }));
  const auto before = Clock::now();
  watch.Add(&other_line, MakeRef<FakeEvent>(), milliseconds(100), [&] { ++beside; });
  EXPECT_LT(Clock::now() - before, seconds(10));  // who adds does not wait for the answer
  EXPECT_TRUE(Within(kLong, [&] { return late == 1 && beside == 1; }));
  watch.Stop();  // nor who stops
  event->stuck = false;
}

TEST(CollectiveWatchTest, AnAnswerThatComesInTimeCounts) {
  CollectiveWatch watch(milliseconds(5), milliseconds(2000));
  std::atomic<int> late{0};
  auto event = MakeRef<FakeEvent>();
  event->stuck = true;
  watch.Add(&line, event, milliseconds(20), [&] { ++late; });
  EXPECT_TRUE(Within(kLong, [&] { return event->asked > 0; }));
  std::this_thread::sleep_for(milliseconds(100));
  event->ended = true;
  event->stuck = false;
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(late, 0);
  EXPECT_EQ(event->asked, 1);
}

TEST(CollectiveWatchTest, ACallThatDoesNotReturnIsLate) {
  CollectiveWatch watch(milliseconds(5));
  std::atomic<int> late{0}, returned{0};
  const auto stays = watch.Call(milliseconds(30), [&] { ++late; });
  {
    const auto returns = watch.Call(milliseconds(30), [&] { ++returned; });
  }
  EXPECT_TRUE(Within(kLong, [&] { return late == 1; }));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(late, 1);
  EXPECT_EQ(returned, 0);
}

// An engine of a device that never does what it is given. The other member is never asked.
class Stuck : public Communicator {
 public:
  Stuck() : Communicator({DeviceType::kCPU, {0, 1}, 0}) {}
  Status Call() {
    float x = 0;
    return AllReduce(**CurrentStream(Device{}), &x, &x, 1, DType::kFloat32);
  }
  std::atomic<bool> aborted{false};

 private:
  Status DoAllReduce(Stream&, const void*, void*, int64_t, DType, CollectiveReduce,
                     DType) override {
    return OkStatus();
  }
  Status DoAllGather(Stream&, const void*, void*, Counts, DType) override { return OkStatus(); }
  Status DoReduceScatter(Stream&, const void*, void*, Counts, DType, CollectiveReduce,
                         DType) override {
    return OkStatus();
  }
  Status DoAllToAll(Stream&, const void*, Counts, void*, Counts, DType) override {
    return OkStatus();
  }
  Status DoBroadcast(Stream&, const void*, void*, int64_t, DType, int) override {
    return OkStatus();
  }
  Status DoTransfers(Stream&, absl::Span<const Transfer>) override { return OkStatus(); }
  Status DoBarrier(Stream&) override { return OkStatus(); }
  Status Given(Stream& stream, const char* op, int64_t number) override {
    CollectiveWatch::Get().Add(&stream, MakeRef<FakeEvent>(), milliseconds(200),
                               [this, op, number] { GiveUp(op, number); });
    return OkStatus();
  }
  void Abort(std::optional<int>) override { aborted = true; }
};

// NCCL connects members at their first call of a size, and waits for them there.
class StuckInside final : public Stuck {
  Status DoAllReduce(Stream&, const void*, void*, int64_t, DType, CollectiveReduce,
                     DType) override {
    const auto watched = CollectiveWatch::Get().Call(
        milliseconds(200), [this, op = this->op(), number = number()] { GiveUp(op, number); });
    std::this_thread::sleep_for(kLong);
    return OkStatus();
  }
};

// All members ask alike for what their engine has no sum of: an argument that is wrong, which
// breaks nothing.
class WithoutInt16 final : public Stuck {
 public:
  Status Reduce(DType dtype) {
    int64_t x = 0;
    return AllReduce(**CurrentStream(Device{}), &x, &x, 1, dtype);
  }

 private:
  Status CheckReducible(DType dtype) const override {
    return dtype == DType::kInt16 ? Error(ErrorKind::kNotImplemented, "no int16") : OkStatus();
  }
  Status Given(Stream&, const char*, int64_t) override { return OkStatus(); }
};

TEST(CollectiveWatchTest, ADTypeThatAnEngineRefusesLeavesItOfUse) {
  unsetenv("OFL_CHECK_COLLECTIVES");
  WithoutInt16 engine;
  const Status s = engine.Reduce(DType::kInt16);
  EXPECT_EQ(KindOf(s), ErrorKind::kNotImplemented);
  EXPECT_EQ(s.message(), "all_reduce(): no int16");
  EXPECT_TRUE(engine.Reduce(DType::kInt32).ok());
}

TEST(CollectiveWatchTest, ACallGivesTheErrorOfOneThatTheDeviceDidNotDo) {
  unsetenv("OFL_CHECK_COLLECTIVES");
  static auto* stuck = new Stuck;  // which the watch may still look at
  ASSERT_TRUE(stuck->Call().ok());
  ASSERT_TRUE(stuck->Call().ok());
  EXPECT_TRUE(Within(kLong, [] { return stuck->aborted.load(); }));
  for (int i = 0; i < 2; ++i) {
    const Status s = stuck->Call();
    EXPECT_THAT(std::string(s.message()),
                testing::HasSubstr("all_reduce, number 1, rank 0 of ranks [0, 1]: no end after"));
  }
}

TEST(CollectiveWatchDeathTest, AProcessThatCallsNothingIsEnded) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  unsetenv("OFL_CHECK_COLLECTIVES");
  const auto wait_for_ever = [] {
    auto* stuck = new Stuck;
    if (!stuck->Call().ok()) return;
    std::this_thread::sleep_for(kLong);
  };
  EXPECT_EXIT(wait_for_ever(), testing::ExitedWithCode(1), "number 1, .*: no end after");
}

TEST(CollectiveWatchDeathTest, AProcessThatTheEngineKeepsIsEnded) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  unsetenv("OFL_CHECK_COLLECTIVES");
  const auto wait_for_ever = [] { (void)(new StuckInside)->Call(); };
  EXPECT_EXIT(wait_for_ever(), testing::ExitedWithCode(1),
              "all_reduce, number 1, .*: no end after");
}

}  // namespace
}  // namespace oneflow_lite
