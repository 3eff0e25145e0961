// SPDX-License-Identifier: Apache-2.0
//
// What the core's CUDA half does while a graph captures, and between replays: memory that other
// streams read, copies from the host, random numbers. On streams that run when the test says so
// (fake_streams.h); needs no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "oneflow_lite/core/cuda/cuda_status.h"
#include "oneflow_lite/core/device_backend.h"
#include "oneflow_lite/core/generator.h"
#include "tests/cpp/fake_streams.h"

namespace oneflow_lite {
namespace {

using fake_streams::Enqueue;
using fake_streams::Finish;

constexpr size_t kBytes = 4096;

class CudaCapturesTest : public testing::Test {
 protected:
  void SetUp() override {
    backend_ = *GetBackend(DeviceType::kCUDA);
    stream_ = *backend_->NewStream(0);
    graph_ = *backend_->NewGraph(0);
  }
  void* Allocate(Stream& stream) { return *backend_->Allocate(kBytes, stream); }
  void Free(void* data, int index) { backend_->Free(data, kBytes, CudaDevice(index)); }
  static Device CudaDevice(int index) { return {DeviceType::kCUDA, static_cast<int16_t>(index)}; }
  void Begin() {
    const Status s = graph_->CaptureBegin(*stream_);
    ASSERT_TRUE(s.ok()) << s;
  }
  void End() {
    Enqueue(NativeStream(*stream_), [] {});  // a graph has some work
    const Status s = graph_->CaptureEnd();
    ASSERT_TRUE(s.ok()) << s;
  }
  void Replay(Stream& stream) {
    const Status s = graph_->Replay(stream);
    ASSERT_TRUE(s.ok()) << s;
  }

  DeviceBackend* backend_ = nullptr;
  Ref<Stream> stream_;
  Ref<Graph> graph_;
};

TEST_F(CudaCapturesTest, ABlockOfAnotherDeviceWaitsForTheStreamThatReadsIt) {
  const Ref<Stream> here = backend_->DefaultStream(1), reader = *backend_->NewStream(1);
  void* block = Allocate(*here);
  Enqueue(NativeStream(*reader), [] {});
  ASSERT_TRUE(backend_->RecordStream(block, *reader).ok());
  Begin();
  Free(block, 1);
  void* next = Allocate(*here);
  EXPECT_NE(next, block) << "the reader has not come that far";
  Finish(NativeStream(*reader));
  void* last = Allocate(*here);
  EXPECT_EQ(last, block);
  End();
  Free(next, 1);
  Free(last, 1);
}

TEST_F(CudaCapturesTest, AStreamMayBeForgottenDuringACapture) {
  cudaStream_t native = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), cudaSuccess);
  Ref<Stream> other = *backend_->ExternalStream(0, native);
  void* block = Allocate(*backend_->DefaultStream(0));
  void* own = Allocate(*other);
  for (void* used : {block, own}) {
    for (const Ref<Stream>& by : {other, backend_->DefaultStream(0)}) {
      ASSERT_TRUE(backend_->RecordStream(used, *by).ok());
    }
  }
  Begin();
  Free(block, 0);
  Free(own, 0);
  other = nullptr;
  cudaStreamDestroy(native);
  End();
  backend_->EmptyCache(0);
  EXPECT_EQ(fake_streams::UsesOfDestroyed(), 0);
}

TEST_F(CudaCapturesTest, AStreamThatAnotherLibraryCapturesMayBeForgotten) {
  cudaStream_t native = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), cudaSuccess);
  Ref<Stream> wrapped = *backend_->ExternalStream(0, native);
  ASSERT_EQ(cudaStreamBeginCapture(native, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  const int number = 3;
  void* to = Allocate(*backend_->DefaultStream(0));
  const Status copied = backend_->CopyFromHost(to, &number, sizeof(number), *wrapped);
  EXPECT_THAT(std::string(copied.message()), testing::HasSubstr("graph of another library"));
  wrapped = nullptr;
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(native, &graph), cudaSuccess);
  Free(to, 0);
}

TEST_F(CudaCapturesTest, ReplaysReadWhatTheHostHadInTheCapture) {
  std::vector<int> numbers(100'000), few(300);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::iota(few.begin(), few.end(), 0);
  const std::vector<int> want = numbers, want_few = few;
  const size_t bytes = numbers.size() * sizeof(int);
  auto* many = static_cast<int*>(*backend_->Allocate(bytes, *stream_));
  auto* some = static_cast<int*>(Allocate(*stream_));
  Begin();
  void* before = Allocate(*stream_);  // of the graph's memory, for a kernel of it
  Enqueue(NativeStream(*stream_), [=] { std::memset(before, 255, kBytes); });
  Free(before, 0);
  ASSERT_TRUE(backend_->CopyFromHost(many, numbers.data(), bytes, *stream_).ok());
  for (size_t i = 0; i < few.size(); ++i) {
    ASSERT_TRUE(backend_->CopyFromHost(some + i, &few[i], sizeof(int), *stream_).ok());
  }
  int got = 0;
  const Status read = backend_->CopyToHost(&got, some, sizeof(got), *stream_);
  EXPECT_THAT(std::string(read.message()), testing::HasSubstr("cannot be captured"));
  End();
  few.assign(few.size(), 7);
  numbers.assign(numbers.size(), 7);
  for (int replay = 0; replay < 2; ++replay) {
    std::memset(some, 0, kBytes);
    std::memset(many, 0, bytes);
    Replay(*stream_);
    Finish(NativeStream(*stream_));
    EXPECT_EQ(std::vector<int>(some, some + few.size()), want_few);
    EXPECT_EQ(std::vector<int>(many, many + want.size()), want);
  }
  Free(some, 0);
  Free(many, 0);
}

// The places in the sequence that the captured calls of a graph draw from in each replay.
TEST_F(CudaCapturesTest, NoNumberIsDrawnTwice) {
  const Ref<Generator> generator = DefaultGenerator(CudaDevice(0));
  generator->Seed(5);
  std::vector<uint64_t> seen;
  const auto draw = [&] {
    const uint64_t* shift = *stream_->RandomShift();
    const uint64_t offset = generator->Take(10).offset;
    Enqueue(NativeStream(*stream_), [=, &seen] { seen.push_back(offset + shift[1]); });
  };
  Begin();
  draw();
  std::thread([&] {
    seen.push_back(generator->Take(10).offset);
    EXPECT_FALSE(stream_->RandomShift().ok());
  }).join();
  draw();
  End();
  for (int replay = 0; replay < 2; ++replay) {
    Replay(*stream_);
    Finish(NativeStream(*stream_));
  }
  EXPECT_THAT(seen, testing::ElementsAre(0, 10, 20, 30, 40));
  EXPECT_EQ(generator->state().offset, 50u);
}

TEST_F(CudaCapturesTest, AReplayKeepsItsNumbersWhileAnotherStreamAsksForOne) {
  const Ref<Generator> generator = DefaultGenerator(CudaDevice(0));
  generator->Seed(5);
  std::vector<uint64_t> seen;
  Begin();
  const uint64_t* shift = *stream_->RandomShift();
  const uint64_t offset = generator->Take(10).offset;
  Enqueue(NativeStream(*stream_), [=, &seen] { seen.push_back(offset + shift[1]); });
  End();
  const Ref<Stream> other = *backend_->NewStream(0);
  Replay(*stream_);
  Replay(*other);
  Finish(NativeStream(*other));
  Finish(NativeStream(*stream_));
  EXPECT_THAT(seen, testing::ElementsAre(0, 10));
}

TEST_F(CudaCapturesTest, NothingCapturedIsAnError) {
  Begin();
  Enqueue(NativeStream(*backend_->DefaultStream(1)), [] {});
  const Status s = graph_->CaptureEnd();
  EXPECT_THAT(std::string(s.message()), testing::HasSubstr("nothing was captured on cuda:0"));
  EXPECT_FALSE(graph_->Replay(*stream_).ok());
}

TEST_F(CudaCapturesTest, ASeedOfTheCaptureStays) {
  const Ref<Generator> generator = DefaultGenerator(CudaDevice(0));
  generator->Seed(5);
  Begin();
  generator->Seed(6);
  generator->Take(3);
  End();
  EXPECT_EQ(generator->state().seed, 6u);
}

}  // namespace
}  // namespace oneflow_lite
