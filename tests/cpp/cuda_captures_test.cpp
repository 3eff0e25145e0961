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
  wrapped = nullptr;
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(native, &graph), cudaSuccess);
}

}  // namespace
}  // namespace oneflow_lite
