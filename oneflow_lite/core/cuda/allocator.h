// SPDX-License-Identifier: Apache-2.0
//
// The caching allocator of one CUDA device. Memory comes from cudaMalloc in segments, which are cut
// into blocks; a freed block joins its free neighbours and waits for the next request on the same
// stream, so that a step after the first calls neither cudaMalloc nor cudaFree, both of which
// synchronise the device.
//
// A block belongs to the stream it was allocated on. Work on that stream may use it again at once
// after Free; use on other streams must be told by RecordStream, and then the block is held back
// until events on those streams have passed.
//
// While a graph is captured, allocations on the capturing streams come from a pool of the graph's
// own, which nobody else uses as long as the graph lives: a replay finds its addresses untouched.
//
// With OFL_NO_CUDA_MEMORY_CACHING=1 in the environment every block is a cudaMalloc of its bytes
// alone and goes back by cudaFree: slow, but compute-sanitizer sees what is read behind its end.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "oneflow_lite/core/device_backend.h"

namespace oneflow_lite {

// cudaMalloc, cudaFree and event queries are refused in a thread that captures; they do not touch
// the captured streams, so they may be let through.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

class CudaAllocator {
 public:
  struct Pool;

  explicit CudaAllocator(int device);
  CudaAllocator(const CudaAllocator&) = delete;
  CudaAllocator& operator=(const CudaAllocator&) = delete;

  // All functions are thread-safe. Allocate aligns to 512 bytes; uncached memory, to 256.
  // fresh: memory that nobody was given before, in a capture or else.
  StatusOr<void*> Allocate(size_t nbytes, cudaStream_t stream, bool fresh = false);
  void Free(void* data);
  // Memory that is not this allocator's is ignored: its owner orders its use.
  void RecordStream(void* data, cudaStream_t stream);
  void EmptyCache();
  MemoryStats Stats();
  void ResetPeak();

  // From BeginCapture to EndCapture, work under the capture id allocates from the pool returned;
  // the caller gives it back by ReleasePool when the graph is gone.
  Pool* BeginCapture(uint64_t capture_id);
  void EndCapture(uint64_t capture_id);
  void ReleasePool(Pool* pool);

  // The stream's owner may destroy it after this call: waits for its work and moves what belongs to
  // it to the default stream.
  void ForgetStream(cudaStream_t stream);

 private:
  struct Block;
  struct BySizeOnStream {
    bool operator()(const Block* a, const Block* b) const;
  };
  using FreeList = std::set<Block*, BySizeOnStream>;

  // All below with mutex_ held.
  Pool* PoolFor(cudaStream_t stream);
  Block* TakeFree(Pool* pool, size_t size, bool small, cudaStream_t stream);
  StatusOr<Block*> NewSegment(Pool* pool, size_t size, bool small, cudaStream_t stream);
  Block* Split(Block* block, size_t size);
  void ReturnToPool(Block* block);
  Block* MergeWith(Block* left, Block* right);
  void HoldBack(Block* block);
  void ReleaseHeldBack(bool wait);
  void ReleaseSegments(Pool* pool);
  Status OutOfMemory(size_t nbytes);

  const int device_;
  const bool caches_;
  std::mutex mutex_;
  std::unordered_map<void*, Block*> allocated_blocks_;
  std::unique_ptr<Pool> shared_pool_;
  std::vector<std::unique_ptr<Pool>> graph_pools_;
  std::unordered_map<uint64_t, Pool*> captures_;
  std::deque<std::pair<cudaEvent_t, Block*>> held_back_;  // in the order of recording
  std::vector<Block*> freed_in_capture_;  // their events must wait until no capture is under way
  std::vector<cudaEvent_t> idle_events_;
  size_t allocated_ = 0, reserved_ = 0, peak_ = 0;
};

// The allocator of device `index`; lives forever. Precondition: the device is there.
CudaAllocator& GetCudaAllocator(int index);

}  // namespace oneflow_lite
