// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/fake_streams.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

using Work = std::function<void()>;

// The runtime's handles are pointers to these. None is freed, so that a use of a destroyed one is
// seen.
struct CUgraph_st {
  std::vector<Work> nodes;
};
struct CUgraphExec_st {
  std::vector<Work> nodes;
};
struct CUstream_st {
  std::deque<Work> work;
  CUgraph_st* captures = nullptr;
  unsigned long long capture_id = 0;
  bool valid = true;  // the capture
  bool destroyed = false;
};
struct CUevent_st {
  CUstream_st* on = nullptr;
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);  // of the last record
  bool captured = false;
};

namespace {

int uses_of_destroyed = 0;
unsigned long long captures_begun = 0;
thread_local int current = 0;
thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
thread_local std::vector<CUstream_st*> capturing;  // by this thread, not relaxed

CUstream_st* Of(cudaStream_t stream) {
  static CUstream_st defaults[2];
  if (!stream) return defaults + current;
  uses_of_destroyed += stream->destroyed;
  return stream;
}
// For calls that are refused in a thread that captures, unless it says that it knows better.
bool IsRefused() {
  if (mode == cudaStreamCaptureModeRelaxed || capturing.empty()) return false;
  for (CUstream_st* stream : capturing) stream->valid = false;
  return true;
}
void Add(CUstream_st* stream, Work work) {
  if (stream->captures) {
    stream->captures->nodes.push_back(std::move(work));
  } else {
    stream->work.push_back(std::move(work));
  }
}
void RunOne(CUstream_st* stream) {
  const Work work = std::move(stream->work.front());
  stream->work.pop_front();
  work();
}
void RunUntil(CUstream_st* stream, const bool& reached) {
  while (!reached) RunOne(stream);
}

}  // namespace

namespace fake_streams {

void Enqueue(cudaStream_t stream, Work kernel) { Add(Of(stream), std::move(kernel)); }
void Finish(cudaStream_t stream) {
  for (CUstream_st* s = Of(stream); !s->work.empty();) RunOne(s);
}
int UsesOfDestroyed() { return uses_of_destroyed; }

}  // namespace fake_streams

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 2;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  current = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaErrorNotSupported; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "fake"; }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorStreamCaptureUnsupported ? "not permitted in a capture" : "fake error";
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* other) {
  std::swap(mode, *other);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  if (IsRefused()) return cudaErrorStreamCaptureUnsupported;
  *data = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  return *data ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* data) {
  if (IsRefused()) return cudaErrorStreamCaptureUnsupported;
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 34;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void*) {
  attributes->type = cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
// Pageable memory is staged at once, but a node of a graph reads it in every replay.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  CUstream_st* s = Of(stream);
  if (kind == cudaMemcpyHostToDevice && !s->captures) {
    const std::vector<char> staged(static_cast<const char*>(from),
                                   static_cast<const char*>(from) + bytes);
    Add(s, [=] { std::memcpy(to, staged.data(), bytes); });
  } else {
    Add(s, [=] { std::memcpy(to, from, bytes); });
  }
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  Add(Of(stream), [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Of(stream)->destroyed = true;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  CUstream_st* s = Of(stream);
  if (s->captures) s->valid = false;
  if (s->captures || IsRefused()) return cudaErrorStreamCaptureUnsupported;
  fake_streams::Finish(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  unsigned long long id = 0;
  return cudaStreamGetCaptureInfo(stream, status, &id, nullptr, nullptr, nullptr, nullptr);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, size_t*) {
  CUstream_st* s = Of(stream);
  *id = s->capture_id;
  *status = !s->captures ? cudaStreamCaptureStatusNone
            : s->valid   ? cudaStreamCaptureStatusActive
                         : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode begun_as) {
  CUstream_st* s = Of(stream);
  s->captures = new CUgraph_st;
  s->capture_id = ++captures_begun;
  s->valid = true;
  if (begun_as != cudaStreamCaptureModeRelaxed) capturing.push_back(s);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  CUstream_st* s = Of(stream);
  capturing.erase(std::remove(capturing.begin(), capturing.end(), s), capturing.end());
  *graph = s->valid ? s->captures : nullptr;
  s->captures = nullptr;
  return s->valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  Add(Of(stream), [on = event->on, reached = event->reached] { RunUntil(on, *reached); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->on = Of(stream);
  event->captured = event->on->captures != nullptr;
  if (event->captured) return cudaSuccess;
  event->reached = std::make_shared<bool>(false);
  Add(event->on, [reached = event->reached] { *reached = true; });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (IsRefused()) return cudaErrorStreamCaptureUnsupported;
  if (event->captured) return cudaErrorCapturedEvent;
  return *event->reached ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (IsRefused()) return cudaErrorStreamCaptureUnsupported;
  if (event->captured) return cudaErrorCapturedEvent;
  RunUntil(event->on, *event->reached);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t) { return cudaErrorNotSupported; }

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  *count = graph->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  Add(Of(stream), [=] {
    for (const Work& node : exec->nodes) node();
  });
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }

}  // extern "C"
