// SPDX-License-Identifier: Apache-2.0
//
// The CUDA half of the core: allocator, streams, events, graphs, copies. Every test skips where
// there is no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include "oneflow_lite/core/device_backend.h"
#include "primitive/creation.h"
#include "primitive/softmax.h"

namespace oneflow_lite {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class CudaCoreTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto backend = GetBackend(DeviceType::kCUDA);
    if (!backend.ok()) GTEST_SKIP() << backend.status().message();
    backend_ = *backend;
    default_ = backend_->DefaultStream(0);
    ASSERT_TRUE(backend_->Synchronize(0).ok());
    backend_->EmptyCache(0);
    backend_->ResetPeak(0);
  }

  void* Allocate(size_t nbytes, Stream& stream) {
    const auto p = backend_->Allocate(nbytes, stream);
    EXPECT_TRUE(p.ok()) << p.status();
    return p.ok() ? *p : nullptr;
  }
  void Free(void* p) { backend_->Free(p, 0, kDevice); }
  Ref<Stream> NewStream() {
    auto stream = backend_->NewStream(0);
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *stream;
  }
  void Fill(Stream& stream, float value, void* y, int64_t n) {
    const auto fill = NewPrimitive<FillFactory>(DeviceType::kCUDA, {.dtype = DType::kFloat32});
    ASSERT_TRUE(fill.ok()) << fill.status();
    const auto g = MakeElementwise<1>(Shape{n}, {ContiguousStrides(Shape{n})});
    const Status s = (*fill)->Launch(stream, g, static_cast<double>(value), y);
    ASSERT_TRUE(s.ok()) << s;
  }
  std::vector<float> Read(Stream& stream, const void* x, int64_t n) {
    std::vector<float> host(n, -1);
    const Status s = backend_->CopyToHost(host.data(), x, n * sizeof(float), stream);
    EXPECT_TRUE(s.ok()) << s;
    return host;
  }
  void Write(Stream& stream, void* y, const std::vector<float>& host) {
    const Status s = backend_->CopyFromHost(y, host.data(), host.size() * sizeof(float), stream);
    ASSERT_TRUE(s.ok()) << s;
  }
  // Some tens of milliseconds of work.
  void KeepBusy(Stream& stream) {
    constexpr size_t kBytes = 256 * kMiB;
    if (!busy_) {
      busy_ = Allocate(2 * kBytes, *default_);
      Fill(*default_, 0, busy_, 2 * kBytes / sizeof(float));
    }
    ASSERT_TRUE(default_->Synchronize().ok());
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(
          backend_->CopyOnDevice(busy_, static_cast<char*>(busy_) + kBytes, kBytes, stream).ok());
    }
  }
  void TearDown() override {
    if (!backend_) return;
    EXPECT_TRUE(backend_->Synchronize(0).ok());
    if (busy_) Free(busy_);
    default_ = nullptr;
  }

  static constexpr Device kDevice{DeviceType::kCUDA, 0};
  DeviceBackend* backend_ = nullptr;
  Ref<Stream> default_;
  void* busy_ = nullptr;
};

TEST_F(CudaCoreTest, PropertiesAreThoseOfADevice) {
  ASSERT_GE(backend_->DeviceCount(), 1);
  const DeviceProperties& p = backend_->Properties(0);
  EXPECT_FALSE(p.name.empty());
  EXPECT_GE(p.compute_capability, 70);
  EXPECT_GT(p.multiprocessors, 0);
  EXPECT_GE(p.shared_memory_per_block, size_t{48} << 10);
  EXPECT_GT(p.total_memory, kMiB);
  EXPECT_FALSE(GetBackend(Device{DeviceType::kCUDA, 999}).ok());
}

TEST_F(CudaCoreTest, FreedMemoryIsUsedAgainOnTheSameStreamOnly) {
  const Ref<Stream> side = NewStream();
  void* a = Allocate(5 * kMiB, *default_);
  Free(a);
  void* b = Allocate(5 * kMiB, *side);
  EXPECT_NE(b, a);
  void* c = Allocate(5 * kMiB, *default_);
  EXPECT_EQ(c, a);
  Free(b);
  Free(c);
}

TEST_F(CudaCoreTest, BlocksAreAlignedDisjointAndCounted) {
  const MemoryStats before = backend_->Stats(0);
  std::vector<std::pair<char*, size_t>> blocks;
  for (size_t nbytes : {size_t{1}, size_t{511}, size_t{513}, size_t{4096}, kMiB - 1, kMiB + 1,
                        3 * kMiB, 11 * kMiB, 33 * kMiB}) {
    blocks.emplace_back(static_cast<char*>(Allocate(nbytes, *default_)), nbytes);
  }
  size_t asked = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks[i].first) % 256, 0u);
    asked += blocks[i].second;
    for (size_t j = 0; j < i; ++j) {
      const auto [p, n] = blocks[i];
      const auto [q, m] = blocks[j];
      EXPECT_TRUE(p + n <= q || q + m <= p);
    }
  }
  const MemoryStats held = backend_->Stats(0);
  EXPECT_GE(held.allocated - before.allocated, asked);
  EXPECT_GE(held.reserved, held.allocated);
  EXPECT_GE(held.peak_allocated, held.allocated);
  for (const auto& [p, n] : blocks) Free(p);
  EXPECT_EQ(backend_->Stats(0).allocated, before.allocated);
  EXPECT_GT(backend_->Stats(0).reserved, before.reserved);
  backend_->EmptyCache(0);
  EXPECT_EQ(backend_->Stats(0).reserved, before.reserved);
}

TEST_F(CudaCoreTest, NeighboursJoinWhenFreed) {
  // Four quarters of one 20 MiB segment; once all are free, the whole fits again without a new one.
  void* p[4];
  for (void*& q : p) q = Allocate(5 * kMiB, *default_);
  const size_t reserved = backend_->Stats(0).reserved;
  for (int i : {2, 0, 3, 1}) Free(p[i]);
  void* whole = Allocate(9 * kMiB, *default_);
  EXPECT_EQ(whole, p[0]);
  EXPECT_EQ(backend_->Stats(0).reserved, reserved);
  Free(whole);
}

TEST_F(CudaCoreTest, OutOfMemoryIsAnErrorTheProgramSurvives) {
  for (size_t nbytes : {size_t{1} << 45, size_t{1} << 63}) {
    const auto p = backend_->Allocate(nbytes, *default_);
    ASSERT_FALSE(p.ok());
    EXPECT_EQ(KindOf(p.status()), ErrorKind::kOutOfMemory);
    EXPECT_THAT(std::string(p.status().message()), testing::HasSubstr("cuda:0"));
  }
  void* p = Allocate(4096, *default_);
  Fill(*default_, 2.5f, p, 1024);
  EXPECT_THAT(Read(*default_, p, 1024), testing::Each(2.5f));
  Free(p);
}

TEST_F(CudaCoreTest, CachedMemoryIsGivenUpBeforeRunningOut) {
  const size_t half = backend_->Properties(0).total_memory / 2;
  Free(Allocate(half, *default_));  // stays cached
  const Ref<Stream> side = NewStream();
  void* p = Allocate(half + half / 4, *side);  // would not fit beside it
  Free(p);
  backend_->EmptyCache(0);
}

TEST_F(CudaCoreTest, RecordStreamHoldsABlockBackUntilTheUseHasEnded) {
  const Ref<Stream> side = NewStream();
  void* a = Allocate(3 * kMiB, *default_);
  KeepBusy(*side);
  Fill(*side, 7, a, 1024);
  ASSERT_TRUE(backend_->RecordStream(a, *side).ok());
  Free(a);
  void* b = Allocate(3 * kMiB, *default_);
  EXPECT_NE(b, a) << "the side stream still uses the block";
  ASSERT_TRUE(side->Synchronize().ok());
  void* c = Allocate(3 * kMiB, *default_);
  EXPECT_EQ(c, a);
  Free(b);
  Free(c);
}

TEST_F(CudaCoreTest, EventsOrderStreams) {
  constexpr int64_t kN = 1 << 20;
  const Ref<Stream> first = NewStream(), second = NewStream();
  EXPECT_NE(first->native(), second->native());
  void* x = Allocate(kN * sizeof(float), *first);
  void* y = Allocate(kN * sizeof(float), *second);
  const auto begin = backend_->NewEvent(0, true), end = backend_->NewEvent(0, true);
  ASSERT_TRUE(begin.ok() && end.ok());
  EXPECT_FALSE((*begin)->ElapsedMs(**end).ok()) << "not recorded yet";
  ASSERT_TRUE((*begin)->Record(*first).ok());
  KeepBusy(*first);
  Fill(*first, 42, x, kN);
  ASSERT_TRUE((*end)->Record(*first).ok());
  EXPECT_FALSE(*(*end)->Query());
  ASSERT_TRUE((*end)->Wait(*second).ok());
  ASSERT_TRUE(backend_->CopyOnDevice(y, x, kN * sizeof(float), *second).ok());
  EXPECT_THAT(Read(*second, y, kN), testing::Each(42.0f));
  ASSERT_TRUE((*end)->Synchronize().ok());
  EXPECT_TRUE(*(*end)->Query());
  EXPECT_GT(*(*begin)->ElapsedMs(**end), 0.0f);
  Free(x);
  Free(y);
}

TEST_F(CudaCoreTest, CopiesKeepEveryByteAtAnyOffset) {
  std::vector<unsigned char> host(100003), back(host.size());
  std::iota(host.begin(), host.end(), 0);
  auto* a = static_cast<unsigned char*>(Allocate(2 * host.size(), *default_));
  auto* b = static_cast<unsigned char*>(Allocate(2 * host.size(), *default_));
  for (size_t offset : {0, 1, 7, 4099}) {
    ASSERT_TRUE(backend_->CopyFromHost(a + offset, host.data(), host.size(), *default_).ok());
    ASSERT_TRUE(backend_->CopyOnDevice(b + 3, a + offset, host.size(), *default_).ok());
    ASSERT_TRUE(backend_->CopyToHost(back.data(), b + 3, host.size(), *default_).ok());
    EXPECT_EQ(host, back);
  }
  EXPECT_TRUE(backend_->CopyToHost(nullptr, nullptr, 0, *default_).ok());
  Free(a);
  Free(b);
}

TEST_F(CudaCoreTest, ThreadsWorkOnStreamsOfTheirOwn) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      const Ref<Stream> stream = NewStream();
      for (int i = 0; i < 100; ++i) {
        const int64_t n = 1 + (i * 7919 + t) % 50000;
        void* p = Allocate(n * sizeof(float), *stream);
        Fill(*stream, static_cast<float>(t), p, n);
        EXPECT_THAT(Read(*stream, p, n), testing::Each(static_cast<float>(t)));
        Free(p);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaCoreTest, ExternalStreamsAreWrapped) {
  const Ref<Stream> owner = NewStream();
  {
    const auto wrapped = backend_->ExternalStream(0, owner->native());
    ASSERT_TRUE(wrapped.ok());
    EXPECT_EQ((*wrapped)->native(), owner->native());
    void* p = Allocate(4096, **wrapped);
    Fill(**wrapped, 3, p, 1024);
    EXPECT_THAT(Read(**wrapped, p, 1024), testing::Each(3.0f));
    Free(p);
  }
  Free(Allocate(4096, *owner));
}

class CudaGraphTest : public CudaCoreTest {
 protected:
  static constexpr int64_t kRows = 64, kCols = 100, kN = kRows * kCols;

  // y = softmax(x) through a temporary that is allocated and freed on the way.
  void SoftmaxTwice(Stream& stream, const void* x, void* y) {
    const auto softmax =
        NewPrimitive<SoftmaxFactory>(DeviceType::kCUDA, {.dtype = DType::kFloat32});
    ASSERT_TRUE(softmax.ok()) << softmax.status();
    void* t = Allocate(kN * sizeof(float), stream);
    const SoftmaxShape shape{.rows = kRows, .cols = kCols};
    EXPECT_TRUE((*softmax)->Launch(stream, shape, x, t, nullptr).ok());
    EXPECT_TRUE((*softmax)->Launch(stream, shape, t, y, nullptr).ok());
    Free(t);
  }
  std::vector<float> Input(int seed) {
    std::vector<float> x(kN);
    for (int64_t i = 0; i < kN; ++i) x[i] = std::sin(0.37f * static_cast<float>(i + seed));
    return x;
  }
};

TEST_F(CudaGraphTest, ReplayRunsWhatWasCapturedOnNewData) {
  const Ref<Stream> stream = NewStream();
  void* x = Allocate(kN * sizeof(float), *stream);
  void* y = Allocate(kN * sizeof(float), *stream);
  void* expected = Allocate(kN * sizeof(float), *stream);
  const auto graph = backend_->NewGraph(0);
  ASSERT_TRUE(graph.ok());
  EXPECT_FALSE((*graph)->Replay(*stream).ok()) << "nothing captured yet";
  Write(*stream, x, Input(0));
  ASSERT_TRUE((*graph)->CaptureBegin(*stream).ok());
  EXPECT_TRUE(stream->capturing());
  SoftmaxTwice(*stream, x, y);
  ASSERT_TRUE((*graph)->CaptureEnd().ok());
  EXPECT_FALSE(stream->capturing());

  // What others allocate now must not be the graph's temporary.
  std::vector<void*> others;
  for (int i = 0; i < 200; ++i) {
    others.push_back(Allocate(kN * sizeof(float), *stream));
    Fill(*stream, -1, others.back(), kN);
  }
  for (int seed : {1, 2, 3}) {
    Write(*stream, x, Input(seed));
    ASSERT_TRUE((*graph)->Replay(*stream).ok());
    SoftmaxTwice(*stream, x, expected);
    EXPECT_EQ(Read(*stream, y, kN), Read(*stream, expected, kN));
  }
  for (void* p : others) {
    EXPECT_THAT(Read(*stream, p, kN), testing::Each(-1.0f));
    Free(p);
  }
  for (void* p : {x, y, expected}) Free(p);
}

TEST_F(CudaGraphTest, MemoryOfAGraphLivesAsLongAsTheGraph) {
  const Ref<Stream> stream = NewStream();
  void* x = Allocate(kN * sizeof(float), *stream);
  void* y = Allocate(kN * sizeof(float), *stream);
  const size_t before = backend_->Stats(0).reserved;
  auto graph = backend_->NewGraph(0);
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE((*graph)->CaptureBegin(*stream).ok());
  SoftmaxTwice(*stream, x, y);
  void* kept = Allocate(kN * sizeof(float), *stream);  // outlives the graph
  ASSERT_TRUE((*graph)->CaptureEnd().ok());
  backend_->EmptyCache(0);
  EXPECT_GT(backend_->Stats(0).reserved, before);
  ASSERT_TRUE(stream->Synchronize().ok());
  *graph = nullptr;
  EXPECT_GT(backend_->Stats(0).reserved, before);
  Free(kept);
  EXPECT_EQ(backend_->Stats(0).reserved, before);
  Free(x);
  Free(y);
}

TEST_F(CudaGraphTest, WrongUseIsAnErrorAndLeavesTheDeviceUsable) {
  const auto graph = backend_->NewGraph(0);
  ASSERT_TRUE(graph.ok());
  EXPECT_FALSE((*graph)->CaptureBegin(*default_).ok());
  EXPECT_FALSE((*graph)->CaptureEnd().ok());
  const Ref<Stream> stream = NewStream();
  ASSERT_TRUE((*graph)->CaptureBegin(*stream).ok());
  EXPECT_FALSE((*graph)->CaptureBegin(*stream).ok());
  EXPECT_FALSE(stream->Synchronize().ok()) << "this ends the capture with an error";
  EXPECT_FALSE((*graph)->CaptureEnd().ok());
  void* p = Allocate(4096, *stream);
  Fill(*stream, 1, p, 1024);
  EXPECT_THAT(Read(*stream, p, 1024), testing::Each(1.0f));
  Free(p);
}

}  // namespace
}  // namespace oneflow_lite
