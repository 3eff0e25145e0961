// SPDX-License-Identifier: Apache-2.0
//
// The store through which ranks meet. Each wait has a time-out, so that no case can hang.
#include "oneflow_lite/core/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <future>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "oneflow_lite/core/world.h"

namespace oneflow_lite {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = StoreServer::Start("127.0.0.1", 0);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::shared_ptr<Store> Client() {
    auto store = Store::Connect("127.0.0.1", server_->port(), seconds(10));
    EXPECT_TRUE(store.ok()) << store.status();
    return *store;
  }
  std::unique_ptr<StoreServer> server_;
};

TEST_F(StoreTest, KeepsValues) {
  const auto a = Client(), b = Client();
  const std::string bytes("\0with zeros\0", 12);
  ASSERT_TRUE(a->Set("k", bytes).ok());
  EXPECT_EQ(*b->Get("k", seconds(1)), bytes);
  ASSERT_TRUE(b->Set("k", "").ok());
  EXPECT_EQ(*a->Get("k", seconds(1)), "");
  EXPECT_TRUE(*a->Delete("k"));
  EXPECT_FALSE(*a->Delete("k"));
  EXPECT_EQ(*a->Add("n", 5), 5);
  EXPECT_EQ(*b->Add("n", -7), -2);
  EXPECT_EQ(*b->Get("n", seconds(1)), "-2");
  const std::string large(9'000'000, 'x');  // more than a socket takes at once
  ASSERT_TRUE(a->Set("large", large).ok());
  EXPECT_EQ(*b->Get("large", seconds(10)), large);
}

TEST_F(StoreTest, WaitsForAKey) {
  const auto a = Client(), b = Client();
  auto value = std::async(std::launch::async, [&] { return a->Get("later", seconds(10)); });
  // The store serves others meanwhile, this client's other threads too.
  EXPECT_EQ(*a->Add("n", 1), 1);
  std::this_thread::sleep_for(milliseconds(20));
  ASSERT_TRUE(b->Set("later", "now").ok());
  EXPECT_EQ(*value.get(), "now");
}

TEST_F(StoreTest, TimesOut) {
  const auto store = Client();
  const auto begin = std::chrono::steady_clock::now();
  const auto missing = store->Get("missing", milliseconds(50));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("no \"missing\" after 0.05 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(4));
  EXPECT_TRUE(store->Set("works", "still").ok());
}

TEST_F(StoreTest, WaitsForNoRankThatHasLeft) {
  const auto store = Client(), other = Client();
  const std::vector<int> of = {0, 3};
  const auto begin = std::chrono::steady_clock::now();
  auto value = std::async(std::launch::async, [&] { return store->Get("k", seconds(60), of); });
  auto all = std::async(std::launch::async,
                        [&] { return store->Gather("g", 0, 2, "", seconds(60), nullptr, of); });
  std::this_thread::sleep_for(milliseconds(50));
  store->Left(2);  // whom none of them waits for
  ASSERT_TRUE(other->Set("what rank 3 wrote", "before it left").ok());
  store->Left(3);
  const Status ended = RankHasEnded(3);
  EXPECT_EQ(value.get().status(), ended);
  EXPECT_EQ(all.get().status(), ended);
  EXPECT_EQ(store->Get("k", seconds(60), of).status(), ended);
  EXPECT_EQ(store->Gather("g", 0, 2, "", seconds(60), nullptr, of).status(), ended);
  EXPECT_EQ(*store->Get("what rank 3 wrote", seconds(60), of), "before it left");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
  const auto missing = store->Get("k", milliseconds(50));  // of whom is not said
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("no \"k\" after 0.05 s"));
}

// In a network of its own, whose kernel gives ends of connections out of eight ports alone. The
// exit status: 0, 1 where a client took the port, 2 where there can be no such network.
int ConnectWhereNobodyListens(int port) {
  if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return 2;
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (ioctl(fd, SIOCSIFFLAGS, &loopback) != 0) return 2;
  std::ofstream range("/proc/sys/net/ipv4/ip_local_port_range");
  range << "40000 40007" << std::flush;
  if (!range) return 2;
  const auto nobody = Store::Connect("127.0.0.1", port, seconds(3));  // 60 tries
  const bool refused = absl::StrContains(nobody.status().message(), "refused");
  return refused && StoreServer::Start("127.0.0.1", port).ok() ? 0 : 1;
}

// A count that no server can keep would end it, and with it all ranks.
TEST_F(StoreTest, RefusesToGatherFromCountsThatCannotBe) {
  const auto store = Client();
  for (const auto& [index, count] :
       {std::pair{0, 0}, {0, -5}, {-1, 2}, {2, 2}, {0, 2'000'000'000}}) {
    const auto values = store->Gather("g", index, count, "", milliseconds(100));
    ASSERT_FALSE(values.ok()) << index << " of " << count;
    EXPECT_THAT(std::string(values.status().message()), HasSubstr(absl::StrCat(count)));
  }
  const auto alone = store->Gather("g", 0, 1, "mine", seconds(1));  // nothing is left of those
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_THAT(*alone, ElementsAre("mine"));
}

TEST(Connection, DoesNotLeadToItself) {
  const pid_t child = fork();
  if (child == 0) _exit(ConnectWhereNobodyListens(40004));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no network of its own can be made here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(StoreTest, GathersInTheOrderOfIndices) {
  const auto a = Client(), b = Client(), c = Client();
  for (int round = 0; round < 20; ++round) {  // a key is free again after each
    auto one =
        std::async(std::launch::async, [&] { return b->Gather("g", 1, 3, "b", seconds(10)); });
    auto two =
        std::async(std::launch::async, [&] { return c->Gather("g", 2, 3, "c", seconds(10)); });
    EXPECT_THAT(*a->Gather("g", 0, 3, "a", seconds(10)), ElementsAre("a", "b", "c"));
    EXPECT_THAT(*one.get(), ElementsAre("a", "b", "c"));
    EXPECT_THAT(*two.get(), ElementsAre("a", "b", "c"));
  }
}

TEST_F(StoreTest, NamesWhoDoesNotCome) {
  const auto store = Client();
  std::vector<int> absent;
  EXPECT_FALSE(store->Gather("g", 1, 4, "", milliseconds(50), &absent).ok());
  EXPECT_THAT(absent, ElementsAre(0, 2, 3));
  const auto other = store->Gather("g", 0, 5, "", milliseconds(50));
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("gathered from 4 processes"));
}

TEST_F(StoreTest, TellsOfTheLoss) {
  const auto a = Client();
  ASSERT_TRUE(a->Join(0, 2).ok());
  {
    const auto b = Client();
    ASSERT_TRUE(b->Join(1, 2).ok());
    EXPECT_THAT(std::string(Client()->Join(1, 2).message()),
                HasSubstr("two processes with rank 1"));
    EXPECT_THAT(std::string(Client()->Join(1, 3).message()), HasSubstr("one of 3 processes"));
    ASSERT_TRUE(b->Post({StoreEvent::Kind::kFailed, 1, "no memory"}).ok());
  }
  const auto failed = a->NextEvent(seconds(10)), lost = a->NextEvent(seconds(10));
  ASSERT_TRUE(failed.ok() && *failed && lost.ok() && *lost);
  EXPECT_EQ((*failed)->kind, StoreEvent::Kind::kFailed);
  EXPECT_EQ((*failed)->text, "no memory");
  EXPECT_EQ((*lost)->kind, StoreEvent::Kind::kLost);
  EXPECT_EQ((*lost)->rank, 1);
  const auto none = a->NextEvent(milliseconds(20));
  EXPECT_TRUE(none.ok() && !*none);
}

TEST_F(StoreTest, WhoLeavesIsNotLost) {
  const auto a = Client();
  ASSERT_TRUE(a->Join(0, 2).ok());
  {
    const auto b = Client();
    ASSERT_TRUE(b->Join(1, 2).ok());
    EXPECT_FALSE(server_->WaitUntilLeft(milliseconds(20)));
    ASSERT_TRUE(b->Post({StoreEvent::Kind::kLeft, 1, ""}).ok());
  }
  const auto left = a->NextEvent(seconds(10));
  ASSERT_TRUE(left.ok() && *left);
  EXPECT_EQ((*left)->kind, StoreEvent::Kind::kLeft);
  EXPECT_FALSE(*a->NextEvent(milliseconds(100)));
  ASSERT_TRUE(a->Post({StoreEvent::Kind::kLeft, 0, ""}).ok());
  EXPECT_TRUE(server_->WaitUntilLeft(seconds(10)));
}

TEST_F(StoreTest, AnInterruptionEndsWhatWaits) {
  const auto store = Client();
  auto value = std::async(std::launch::async, [&] { return store->Get("never", seconds(60)); });
  std::this_thread::sleep_for(milliseconds(20));
  store->Interrupt(Error(ErrorKind::kRuntime, "rank 3 failed"));
  EXPECT_EQ(value.get().status().message(), "rank 3 failed");
  EXPECT_EQ(store->Set("k", "v").message(), "rank 3 failed");
}

TEST_F(StoreTest, TheEndOfTheServerIsAnError) {
  const auto store = Client();
  ASSERT_TRUE(store->Join(1, 2).ok());
  auto value = std::async(std::launch::async, [&] { return store->Get("never", seconds(60)); });
  std::this_thread::sleep_for(milliseconds(20));
  server_.reset();
  EXPECT_THAT(std::string(value.get().status().message()), HasSubstr("connection was lost"));
  EXPECT_FALSE(store->NextEvent(seconds(10)).ok());
}

TEST_F(StoreTest, APortInUseIsAnError) {
  const auto again = StoreServer::Start("127.0.0.1", server_->port());
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("cannot listen at port"));
  EXPECT_FALSE(StoreServer::StartOn(0).ok());
}

// What launchers write, one of them at a time.
class EnvironmentTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }
  void Put(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    names_.push_back(name);
  }
  std::vector<std::string> names_;
};

TEST_F(EnvironmentTest, NothingIsAWorldOfOne) {
  const auto w = ReadWorld({});
  ASSERT_TRUE(w.ok()) << w.status();
  EXPECT_EQ(w->rank, 0);
  EXPECT_EQ(w->size, 1);
}

TEST_F(EnvironmentTest, Torchrun) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"RANK", "5"},
                                                        {"WORLD_SIZE", "8"},
                                                        {"LOCAL_RANK", "1"},
                                                        {"LOCAL_WORLD_SIZE", "4"},
                                                        {"MASTER_ADDR", "10.0.0.1"},
                                                        {"MASTER_PORT", "29400"},
                                                        {"OFL_TIMEOUT", "2.5"}}) {
    Put(name, value);
  }
  const auto w = ReadWorld({});
  ASSERT_TRUE(w.ok()) << w.status();
  EXPECT_THAT((std::vector<int>{w->rank, w->size, w->local_rank, w->local_size, w->port}),
              ElementsAre(5, 8, 1, 4, 29401));
  EXPECT_EQ(w->timeout, milliseconds(2500));
  Put("OFL_MASTER_PORT", "30000");
  EXPECT_EQ(ReadWorld({})->port, 30000);
  EXPECT_EQ(ReadWorld({.rank = 2, .port = 7})->port, 7);
}

TEST_F(EnvironmentTest, OpenMpiAndSlurm) {
  Put("SLURM_PROCID", "3");
  EXPECT_EQ(ReadWorld({})->size, 1) << "a batch script is no task of a step";
  Put("SLURM_STEP_NUM_TASKS", "4");
  Put("SLURM_LOCALID", "1");
  Put("SLURM_STEP_TASKS_PER_NODE", "2(x2)");
  EXPECT_THAT(std::string(ReadWorld({}).status().message()), HasSubstr("MASTER_ADDR is not set"));
  Put("MASTER_ADDR", "node0");
  EXPECT_EQ(ReadWorld({})->rank, 3);
  EXPECT_EQ(ReadWorld({})->local_size, 2);
  Put("OMPI_COMM_WORLD_RANK", "1");
  Put("OMPI_COMM_WORLD_SIZE", "2");
  EXPECT_EQ(ReadWorld({})->rank, 1);
  EXPECT_EQ(ReadWorld({})->size, 2);
}

TEST_F(EnvironmentTest, WhatMakesNoSenseIsAnError) {
  Put("RANK", "1");
  EXPECT_THAT(std::string(ReadWorld({}).status().message()), HasSubstr("WORLD_SIZE"));
  Put("WORLD_SIZE", "two");
  EXPECT_THAT(std::string(ReadWorld({}).status().message()), HasSubstr("WORLD_SIZE is \"two\""));
  EXPECT_EQ(WorldSize(), 1);
  Put("WORLD_SIZE", "1");
  EXPECT_THAT(std::string(ReadWorld({}).status().message()), HasSubstr("rank 1 of a world of 1"));
}

}  // namespace
}  // namespace oneflow_lite
