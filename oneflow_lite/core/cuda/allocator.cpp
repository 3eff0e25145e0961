// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/cuda/allocator.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "oneflow_lite/core/cuda/cuda_status.h"

namespace oneflow_lite {
namespace {

// The sizes are those of PyTorch's caching allocator: programs that come from there find their
// memory cut in the same way.
constexpr size_t kGranule = 512;           // every block is a multiple of it
constexpr size_t kSmallRequest = 1 << 20;  // up to here from small segments
constexpr size_t kSmallSegment = 2 << 20;
constexpr size_t kMediumRequest = 10 << 20;  // up to here several share a segment
constexpr size_t kMediumSegment = 20 << 20;
constexpr size_t kSegmentGranule = 2 << 20;  // larger ones have a segment each, rounded to this
constexpr size_t kLargeRemainder = 1 << 20;  // a large block is cut if more than this is left

size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

size_t SegmentBytes(size_t size) {
  if (size <= kSmallRequest) return kSmallSegment;
  if (size < kMediumRequest) return kMediumSegment;
  return RoundUp(size, kSegmentGranule);
}

// Waiting for a stream that a graph captures would end the capture.
bool IsCapturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) cudaGetLastError();
  return status != cudaStreamCaptureStatusNone;
}

bool CachingIsWanted() {
  const char* no = std::getenv("OFL_NO_CUDA_MEMORY_CACHING");
  return !no || std::string_view(no) != "1";
}

}  // namespace

struct CudaAllocator::Block {
  char* data = nullptr;
  size_t size = 0;
  cudaStream_t stream = nullptr;
  Pool* pool = nullptr;
  bool small = false;
  bool allocated = false;
  Block* left = nullptr;  // neighbours in the segment, by address
  Block* right = nullptr;
  std::vector<cudaStream_t> used_on;  // other streams, told by RecordStream
  int pending_events = 0;
};

bool CudaAllocator::BySizeOnStream::operator()(const Block* a, const Block* b) const {
  if (a->stream != b->stream) return a->stream < b->stream;
  if (a->size != b->size) return a->size < b->size;
  return a->data < b->data;
}

struct CudaAllocator::Pool {
  FreeList free[2];  // large, small
  int segments = 0;
  bool graph_gone = false;
};

CudaAllocator::CudaAllocator(int device)
    : device_(device), caches_(CachingIsWanted()), shared_pool_(new Pool) {}

CudaAllocator& GetCudaAllocator(int index) {
  static const auto* allocators = [] {
    auto* list = new std::vector<CudaAllocator*>;
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) cudaGetLastError();
    for (int i = 0; i < count; ++i) list->push_back(new CudaAllocator(i));
    return list;
  }();
  return *(*allocators)[index];
}

StatusOr<void*> CudaAllocator::Allocate(size_t nbytes, cudaStream_t stream, bool fresh) {
  std::lock_guard lock(mutex_);
  if (nbytes > (size_t{1} << 62)) return OutOfMemory(nbytes);
  const size_t size = RoundUp(std::max<size_t>(nbytes, 1), caches_ ? kGranule : 1);
  const bool small = size <= kSmallRequest;
  Pool* pool = PoolFor(stream);
  if (captures_.empty() && !held_back_.empty()) ReleaseHeldBack(/*wait=*/false);
  Block* block = caches_ && !fresh ? TakeFree(pool, size, small, stream) : nullptr;
  if (!block) {
    StatusOr<Block*> made = NewSegment(pool, size, small, stream);
    if (!made.ok()) {
      return KindOf(made.status()) == ErrorKind::kOutOfMemory ? OutOfMemory(nbytes) : made.status();
    }
    block = *made;
  }
  const size_t least = small ? kGranule : kLargeRemainder + 1;
  if (block->size - size >= least) block = Split(block, size);
  block->allocated = true;
  allocated_blocks_[block->data] = block;
  allocated_ += block->size;
  peak_ = std::max(peak_, allocated_);
  return block->data;
}

void CudaAllocator::Free(void* data) {
  std::lock_guard lock(mutex_);
  const auto it = allocated_blocks_.find(data);
  OFL_CHECK(it != allocated_blocks_.end());
  Block* block = it->second;
  allocated_blocks_.erase(it);
  block->allocated = false;
  allocated_ -= block->size;
  if (block->used_on.empty()) {
    ReturnToPool(block);
  } else if (!captures_.empty()) {
    freed_in_capture_.push_back(block);
  } else {
    HoldBack(block);
  }
}

void CudaAllocator::RecordStream(void* data, cudaStream_t stream) {
  std::lock_guard lock(mutex_);
  const auto it = allocated_blocks_.find(data);
  if (it == allocated_blocks_.end() || it->second->stream == stream) return;
  auto& used_on = it->second->used_on;
  if (std::find(used_on.begin(), used_on.end(), stream) == used_on.end()) used_on.push_back(stream);
}

void CudaAllocator::EmptyCache() {
  std::lock_guard lock(mutex_);
  if (captures_.empty()) ReleaseHeldBack(/*wait=*/true);
  ReleaseSegments(shared_pool_.get());
}

MemoryStats CudaAllocator::Stats() {
  std::lock_guard lock(mutex_);
  return {allocated_, reserved_, peak_};
}

void CudaAllocator::ResetPeak() {
  std::lock_guard lock(mutex_);
  peak_ = allocated_;
}

CudaAllocator::Pool* CudaAllocator::BeginCapture(uint64_t capture_id) {
  std::lock_guard lock(mutex_);
  graph_pools_.push_back(std::make_unique<Pool>());
  Pool* pool = graph_pools_.back().get();
  captures_[capture_id] = pool;
  return pool;
}

void CudaAllocator::EndCapture(uint64_t capture_id) {
  std::lock_guard lock(mutex_);
  captures_.erase(capture_id);
  if (!captures_.empty()) return;
  for (Block* block : freed_in_capture_) HoldBack(block);
  freed_in_capture_.clear();
}

void CudaAllocator::ReleasePool(Pool* pool) {
  std::lock_guard lock(mutex_);
  pool->graph_gone = true;
  if (captures_.empty()) ReleaseHeldBack(/*wait=*/true);
  ReleaseSegments(pool);  // what tensors still hold follows when they are freed
}

void CudaAllocator::ForgetStream(cudaStream_t stream) {
  if (!stream) return;
  DeviceGuard guard(device_);
  RelaxedCapture relaxed;
  if (!IsCapturing(stream) && cudaStreamSynchronize(stream) != cudaSuccess) cudaGetLastError();
  std::lock_guard lock(mutex_);
  if (captures_.empty()) ReleaseHeldBack(/*wait=*/false);
  const auto forget = [stream](Block* block) {
    if (block->stream == stream) block->stream = nullptr;
    std::erase(block->used_on, stream);
  };
  for (auto& [data, block] : allocated_blocks_) forget(block);
  for (auto& [event, block] : held_back_) forget(block);
  for (Block* block : freed_in_capture_) forget(block);
  for (FreeList& list : shared_pool_->free) {
    std::vector<Block*> blocks;
    for (Block* block : list) {
      if (block->stream == stream) blocks.push_back(block);
    }
    for (Block* block : blocks) {
      list.erase(block);
      block->stream = nullptr;
      ReturnToPool(block);
    }
  }
}

CudaAllocator::Pool* CudaAllocator::PoolFor(cudaStream_t stream) {
  if (captures_.empty() || !stream) return shared_pool_.get();
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  if (cudaStreamGetCaptureInfo(stream, &status, &id) != cudaSuccess) cudaGetLastError();
  if (status != cudaStreamCaptureStatusActive) return shared_pool_.get();
  const auto it = captures_.find(id);
  return it == captures_.end() ? shared_pool_.get() : it->second;
}

// The smallest free block of the stream that is large enough.
CudaAllocator::Block* CudaAllocator::TakeFree(Pool* pool, size_t size, bool small,
                                              cudaStream_t stream) {
  FreeList& list = pool->free[small];
  Block key;
  key.stream = stream;
  key.size = size;
  const auto it = list.lower_bound(&key);
  if (it == list.end() || (*it)->stream != stream) return nullptr;
  Block* block = *it;
  list.erase(it);
  return block;
}

StatusOr<CudaAllocator::Block*> CudaAllocator::NewSegment(Pool* pool, size_t size, bool small,
                                                          cudaStream_t stream) {
  DeviceGuard guard(device_);
  RelaxedCapture relaxed;
  const size_t bytes = caches_ ? SegmentBytes(size) : size;
  void* data = nullptr;
  cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    if (captures_.empty()) ReleaseHeldBack(/*wait=*/true);
    ReleaseSegments(shared_pool_.get());
    error = cudaMalloc(&data, bytes);
  }
  OFL_RETURN_IF_ERROR(CudaStatus(error, "memory allocation"));
  auto* block = new Block;
  block->data = static_cast<char*>(data);
  block->size = bytes;
  block->stream = stream;
  block->pool = pool;
  block->small = small;
  reserved_ += bytes;
  ++pool->segments;
  return block;
}

// Cuts `size` bytes off the front; the rest becomes a free block.
CudaAllocator::Block* CudaAllocator::Split(Block* block, size_t size) {
  auto* rest = new Block;
  rest->data = block->data + size;
  rest->size = block->size - size;
  rest->stream = block->stream;
  rest->pool = block->pool;
  rest->small = block->small;
  rest->left = block;
  rest->right = block->right;
  if (rest->right) rest->right->left = rest;
  block->right = rest;
  block->size = size;
  rest->pool->free[rest->small].insert(rest);
  return block;
}

void CudaAllocator::ReturnToPool(Block* block) {
  const auto joins = [block](const Block* other) {
    return other && !other->allocated && other->pending_events == 0 && other->used_on.empty() &&
           other->stream == block->stream;
  };
  FreeList& list = block->pool->free[block->small];
  if (joins(block->left)) {
    list.erase(block->left);
    block = MergeWith(block->left, block);
  }
  if (joins(block->right)) {
    list.erase(block->right);
    block = MergeWith(block, block->right);
  }
  list.insert(block);
  Pool* pool = block->pool;
  if (pool->graph_gone || (!caches_ && pool == shared_pool_.get())) ReleaseSegments(pool);
}

CudaAllocator::Block* CudaAllocator::MergeWith(Block* left, Block* right) {
  left->size += right->size;
  left->right = right->right;
  if (left->right) left->right->left = left;
  delete right;
  return left;
}

// Puts an event on each stream that used the block; it returns when all have passed.
void CudaAllocator::HoldBack(Block* block) {
  DeviceGuard guard(device_);
  RelaxedCapture relaxed;
  for (cudaStream_t stream : block->used_on) {
    cudaEvent_t event = nullptr;
    if (!idle_events_.empty()) {
      event = idle_events_.back();
      idle_events_.pop_back();
    } else if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) {
      cudaGetLastError();
      event = nullptr;
    }
    if (event && cudaEventRecord(event, stream) == cudaSuccess) {
      ++block->pending_events;
      held_back_.emplace_back(event, block);
      continue;
    }
    // No event, no way to wait on the device: wait here. Where not even that can be done, nobody
    // knows when the use has ended, and the block never returns.
    cudaGetLastError();
    if (event) idle_events_.push_back(event);
    if (IsCapturing(stream) || cudaStreamSynchronize(stream) != cudaSuccess) {
      cudaGetLastError();
      ++block->pending_events;
    }
  }
  block->used_on.clear();
  if (block->pending_events == 0) ReturnToPool(block);
}

void CudaAllocator::ReleaseHeldBack(bool wait) {
  DeviceGuard guard(device_);
  RelaxedCapture relaxed;
  for (auto it = held_back_.begin(); it != held_back_.end();) {
    const auto [event, block] = *it;
    const cudaError_t error = wait ? cudaEventSynchronize(event) : cudaEventQuery(event);
    if (error != cudaSuccess) {
      cudaGetLastError();
      if (error == cudaErrorNotReady) return;  // later ones have most likely not passed either
      ++it;                                    // whether it has passed, nobody knows
      continue;
    }
    it = held_back_.erase(it);
    idle_events_.push_back(event);
    if (--block->pending_events == 0) ReturnToPool(block);
  }
}

// Gives back the segments that are one free block, and with its last segment the pool of a graph
// that is gone.
void CudaAllocator::ReleaseSegments(Pool* pool) {
  DeviceGuard guard(device_);
  RelaxedCapture relaxed;
  for (FreeList& list : pool->free) {
    for (auto it = list.begin(); it != list.end();) {
      Block* block = *it;
      if (block->left || block->right) {
        ++it;
        continue;
      }
      it = list.erase(it);
      if (cudaFree(block->data) != cudaSuccess) cudaGetLastError();
      reserved_ -= block->size;
      --pool->segments;
      delete block;
    }
  }
  if (pool->graph_gone && pool->segments == 0) {
    std::erase_if(graph_pools_, [pool](const auto& p) { return p.get() == pool; });
  }
}

Status CudaAllocator::OutOfMemory(size_t nbytes) {
  size_t free = 0, total = 0;
  DeviceGuard guard(device_);
  RelaxedCapture relaxed;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) cudaGetLastError();
  return Error(ErrorKind::kOutOfMemory, "out of memory on cuda:", device_, ": ", nbytes,
               " bytes were asked for; of the device's ", total, " bytes ", free,
               " are free, tensors of this process hold ", allocated_);
}

}  // namespace oneflow_lite
