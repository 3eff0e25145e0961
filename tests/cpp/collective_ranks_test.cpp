// SPDX-License-Identifier: Apache-2.0
//
// The CPU's collectives among processes: this program starts itself again, once for each rank,
// which runs one of the tests named Rank. Two threads of each communicate at once, on lanes of
// their own. Made for ThreadSanitizer and AddressSanitizer; values are the business of the Python
// tests too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "oneflow_lite/core/world.h"
#include "primitive/collective.h"

extern char** environ;

namespace oneflow_lite {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr int kRanks = 3;
constexpr int kNoGloo = 77;  // the exit code of a rank that finds no engine

bool IsRank() { return std::getenv("OFL_TEST_IS_RANK") != nullptr; }

// A socket that rank 0 inherits, so that no other process takes its port.
int Listen(int* port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(fd, 64) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return -1;
  }
  *port = ntohs(address.sin_port);
  return fd;
}

pid_t Start(const std::string& test, int rank, int fd, int port, const char* timeout) {
  std::vector<std::string> words;  // of two for one name, the first counts
  const auto add = [&](const char* name, const std::string& value) {
    words.push_back(std::string(name) + "=" + value);
  };
  add("OFL_TEST_IS_RANK", "1");
  add("RANK", std::to_string(rank));
  add("WORLD_SIZE", std::to_string(kRanks));
  add("LOCAL_RANK", std::to_string(rank));
  add("LOCAL_WORLD_SIZE", std::to_string(kRanks));
  add("MASTER_ADDR", "127.0.0.1");
  add("OFL_MASTER_PORT", std::to_string(port));
  add("OFL_TIMEOUT", timeout);
  if (rank == 0) add("OFL_STORE_FD", std::to_string(fd));
  for (char** e = environ; *e; ++e) words.emplace_back(*e);
  std::vector<char*> environment;
  for (std::string& w : words) environment.push_back(w.data());
  environment.push_back(nullptr);
  std::string filter = "--gtest_filter=Rank." + test, self = "/proc/self/exe";
  char* arguments[] = {self.data(), filter.data(), nullptr};
  pid_t pid = 0;
  return posix_spawn(&pid, self.c_str(), nullptr, nullptr, arguments, environment.data()) ? -1
                                                                                          : pid;
}

// The exit codes of the ranks that run a test, negative signals of those that were killed.
std::vector<int> RunRanks(const std::string& test, const char* timeout) {
  int port = 0;
  const int fd = Listen(&port);
  EXPECT_GE(fd, 0);
  std::vector<pid_t> pids;
  for (int r = 0; r < kRanks; ++r) pids.push_back(Start(test, r, fd, port, timeout));
  close(fd);
  std::vector<int> codes;
  for (const pid_t pid : pids) {
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  }
  return codes;
}

void ExpectCodes(const std::string& test, const char* timeout, std::vector<int> expected) {
  if (IsRank()) GTEST_SKIP() << "this is a rank";
  const std::vector<int> codes = RunRanks(test, timeout);
  for (const int code : codes) {
    if (code == kNoGloo) GTEST_SKIP() << "this build has no Gloo";
  }
  EXPECT_EQ(codes, expected);
}

TEST(CollectiveRanksTest, TwoThreadsOfEachCommunicateAtOnce) {
  ExpectCodes("CommunicatesOnTwoLanes", "120", {0, 0, 0});
}
TEST(CollectiveRanksTest, TheMeanOfIntegersIsRefused) {
  ExpectCodes("RefusesTheMeanOfIntegers", "120", {0, 0, 0});
}
TEST(CollectiveRanksTest, OneThatIsKilledEndsTheOthers) {
  ExpectCodes("IsKilled", "120", {0, -SIGKILL, 0});
}
TEST(CollectiveRanksTest, OneThatHangsEndsTheOthersAtTheTimeOut) {
  ExpectCodes("Hangs", "5", {0, 0, 0});
}
TEST(CollectiveRanksTest, OneThatLeavesIsNotWaitedFor) { ExpectCodes("Leaves", "120", {0, 0, 0}); }

// What the ranks run.

std::shared_ptr<Communicator> Connect(int lane) {
  std::vector<int> all(kRanks);
  std::iota(all.begin(), all.end(), 0);
  auto c = GetCommunicator(DeviceType::kCPU, all, lane);
  if (c.ok()) return *std::move(c);
  const std::string message(c.status().message());
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(message.find("which is not there") != std::string::npos ? kNoGloo : 1);
}

Stream& CpuStream() { return **CurrentStream(Device{}); }

std::vector<float> Filled(int64_t count, int rank) {
  std::vector<float> x(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    x[i] = static_cast<float>(rank + 1) * static_cast<float>(i % 7);
  return x;
}

// Each collective, short and longer than what goes in one step.
void CommunicateOn(Communicator& c, int64_t count) {
  Stream& stream = CpuStream();
  const int rank = c.rank();
  constexpr float kSum = 6;  // of 1, 2, 3
  std::vector<float> x = Filled(count, rank), y(x.size());
  ASSERT_TRUE(c.AllReduce(stream, x.data(), y.data(), count, DType::kFloat32).ok());
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(y[i], kSum * static_cast<float>(i % 7));
  ASSERT_TRUE(
      c.AllReduce(stream, x.data(), y.data(), count, DType::kFloat32, CollectiveReduce::kMean)
          .ok());
  for (int64_t i = 0; i < count; ++i) ASSERT_EQ(y[i], kSum / kRanks * static_cast<float>(i % 7));

  std::vector<float> z = x, flag = {static_cast<float>(rank)};
  const Communicator::Range ranges[] = {{z.data(), count}, {nullptr, 0}, {flag.data(), 1}};
  ASSERT_TRUE(c.AllReduceRanges(stream, ranges, DType::kFloat32, CollectiveReduce::kMean).ok());
  ASSERT_EQ(z, y);
  ASSERT_EQ(flag[0], 1.0f);  // of 0, 1, 2

  std::vector<int64_t> counts(kRanks, count);
  counts[1] = 0;
  counts[2] = count + 1;
  const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  std::vector<float> whole(static_cast<size_t>(all)), mine(static_cast<size_t>(count + 1), rank);
  ASSERT_TRUE(c.AllGather(stream, mine.data(), whole.data(), counts, DType::kFloat32).ok());
  ASSERT_EQ(whole.front(), 0.0f);
  ASSERT_EQ(whole.back(), 2.0f);

  std::vector<float> ones(static_cast<size_t>(all), 1);
  ASSERT_TRUE(c.ReduceScatter(stream, ones.data(), mine.data(), counts, DType::kFloat32).ok());
  if (rank != 1) ASSERT_EQ(mine[0], kRanks);

  const std::vector<int64_t> even(kRanks, count);
  std::vector<float> sent(static_cast<size_t>(count * kRanks), rank), got(sent.size());
  ASSERT_TRUE(c.AllToAll(stream, sent.data(), even, got.data(), even, DType::kFloat32).ok());
  for (int r = 0; r < kRanks; ++r) ASSERT_EQ(got[count * r], r);

  ASSERT_TRUE(c.Broadcast(stream, x.data(), x.data(), count, DType::kFloat32, 2).ok());
  ASSERT_EQ(x[1], 3.0f);

  ASSERT_TRUE(c.GroupBegin().ok());
  ASSERT_TRUE(c.Send(stream, x.data(), count, DType::kFloat32, (rank + 1) % kRanks).ok());
  ASSERT_TRUE(c.Recv(stream, y.data(), count, DType::kFloat32, (rank + 2) % kRanks).ok());
  ASSERT_TRUE(c.GroupEnd().ok());
  ASSERT_EQ(y, x);
  ASSERT_TRUE(c.Barrier(stream).ok());
}

Status ReduceForEver(Communicator& c) {
  std::vector<float> x(1000, 1);
  while (true) {
    const Status s =
        c.AllReduce(CpuStream(), x.data(), x.data(), 1000, DType::kFloat32, CollectiveReduce::kMax);
    if (!s.ok()) return s;
  }
}

// On two threads, until both have an error, which says so.
template <class M>
void ExpectFailure(const M& says) {
  const auto main_lane = Connect(0), other_lane = Connect(1);
  Status other;
  std::thread beside([&] { other = ReduceForEver(*other_lane); });
  const Status s = ReduceForEver(*main_lane);
  beside.join();
  EXPECT_THAT(std::string(s.message()), says);
  EXPECT_THAT(std::string(other.message()), says);
}

TEST(Rank, CommunicatesOnTwoLanes) {
  if (!IsRank()) GTEST_SKIP() << "one of several processes";
  const auto main_lane = Connect(0), other_lane = Connect(1);
  std::thread beside([&] {
    for (const int64_t count : {100000, 10, 3000}) CommunicateOn(*other_lane, count);
  });
  for (const int64_t count : {10, 3000, 100000}) CommunicateOn(*main_lane, count);
  beside.join();
}

TEST(Rank, RefusesTheMeanOfIntegers) {
  if (!IsRank()) GTEST_SKIP() << "one of several processes";
  const auto c = Connect(0);
  const std::vector<int64_t> counts(kRanks, 1);
  int32_t x[kRanks] = {1, 2, 3};
  bool b = true;
  constexpr auto kMean = CollectiveReduce::kMean;
  EXPECT_THAT(std::string(c->AllReduce(CpuStream(), x, x, 3, DType::kInt32, kMean).message()),
              HasSubstr("all_reduce(): the mean of int32 is not of that dtype"));
  EXPECT_THAT(std::string(c->AllReduce(CpuStream(), &b, &b, 1, DType::kBool, kMean).message()),
              HasSubstr("all_reduce(): the mean of bool is not of that dtype"));
  EXPECT_THAT(
      std::string(c->ReduceScatter(CpuStream(), x, x, counts, DType::kInt32, kMean).message()),
      HasSubstr("reduce_scatter(): the mean of int32 is not of that dtype"));
  const Communicator::Range range = {x, 3};
  EXPECT_THAT(
      std::string(c->AllReduceRanges(CpuStream(), {&range, 1}, DType::kInt32, kMean).message()),
      HasSubstr("all_reduce(): the mean of int32 is not of that dtype"));
  CommunicateOn(*c, 10);  // the ranks go on
}

TEST(Rank, IsKilled) {
  if (!IsRank()) GTEST_SKIP() << "one of several processes";
  CommunicateOn(*Connect(0), 10);
  CommunicateOn(*Connect(1), 10);
  if (Rank() == 1) {
    // The others have come to the end of these calls, and fail in one of their own.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    raise(SIGKILL);
  }
  ExpectFailure(HasSubstr("rank 1 failed: its process ended without a word"));
}

TEST(Rank, Hangs) {
  if (!IsRank()) GTEST_SKIP() << "one of several processes";
  CommunicateOn(*Connect(0), 10);
  Connect(1);
  if (Rank() == 1) {
    while (ReportedFailure(std::chrono::seconds(1)).empty()) {
    }
    return;
  }
  ExpectFailure(AnyOf(HasSubstr("no end after 5 s"), HasSubstr("failed: all_reduce(max)")));
}

TEST(Rank, Leaves) {
  if (!IsRank()) GTEST_SKIP() << "one of several processes";
  CommunicateOn(*Connect(0), 10);
  Connect(1);
  if (Rank() == 1) return;
  ExpectFailure(AnyOf(HasSubstr("rank 1 has ended"), HasSubstr("failed: all_reduce(max)")));
}

}  // namespace
}  // namespace oneflow_lite
