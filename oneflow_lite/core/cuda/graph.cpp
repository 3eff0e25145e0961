// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/cuda/graph.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "oneflow_lite/core/cuda/allocator.h"
#include "oneflow_lite/core/cuda/cuda_status.h"
#include "oneflow_lite/core/generator.h"

namespace oneflow_lite {
namespace {

class CudaGraph;

// The graphs that are capturing, by the id of their capture.
struct Captures {
  std::mutex mutex;
  std::unordered_map<uint64_t, CudaGraph*> graphs;
};
Captures& GetCaptures() {
  static auto* captures = new Captures;
  return *captures;
}

class CudaGraph final : public Graph {
 public:
  explicit CudaGraph(Device device) : device_(device) {}

  Status CaptureBegin(Stream& stream) override {
    if (capture_stream_ || exec_) {
      return Error(ErrorKind::kRuntime, "a graph captures once: make a new one to capture again");
    }
    if (stream.device() != device_) {
      return Error(ErrorKind::kRuntime, "a graph of ", device_.ToString(),
                   " cannot capture a stream of ", stream.device().ToString());
    }
    if (!NativeStream(stream)) {
      return Error(ErrorKind::kRuntime,
                   "the default stream cannot be captured: capture a stream of your own");
    }
    DeviceGuard guard(device_.index);
    // Thread-local: other threads may go on allocating and synchronising.
    OFL_RETURN_IF_ERROR(
        CudaStatus(cudaStreamBeginCapture(NativeStream(stream), cudaStreamCaptureModeThreadLocal),
                   "begin of capture"));
    capture_stream_ = Ref<Stream>(&stream);
    cudaStreamCaptureStatus status;
    unsigned long long id = 0;
    Status s =
        CudaStatus(cudaStreamGetCaptureInfo(NativeStream(stream), &status, &id), "capture info");
    if (!s.ok()) {
      Abandon();
      return s;
    }
    capture_id_ = id;
    pool_ = GetCudaAllocator(device_.index).BeginCapture(capture_id_);
    capturer_ = std::this_thread::get_id();
    begin_ = DefaultGenerator(device_)->BeginAside();
    Captures& captures = GetCaptures();
    std::lock_guard lock(captures.mutex);
    captures.graphs[capture_id_] = this;
    return OkStatus();
  }

  Status CaptureEnd() override {
    if (!capture_stream_) return Error(ErrorKind::kRuntime, "this graph is not capturing");
    DeviceGuard guard(device_.index);
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(NativeStream(*capture_stream_), &graph);
    const Generator::State end = Forget();
    // What the captured calls took is each replay's to take; a seed of theirs is everyone's.
    const bool seeded = end.seed != begin_.seed;
    random_counters_ = end.offset - (seeded ? 0 : begin_.offset);
    if (seeded) DefaultGenerator(device_)->set_state(end);
    OFL_RETURN_IF_ERROR(CudaStatus(ended, "capture"));
    size_t nodes = 0;
    cudaError_t made = cudaGraphGetNodes(graph, nullptr, &nodes);
    if (made == cudaSuccess && nodes > 0) made = cudaGraphInstantiate(&exec_, graph, 0);
    cudaGraphDestroy(graph);
    OFL_RETURN_IF_ERROR(CudaStatus(made, "graph instantiation"));
    if (nodes > 0) return OkStatus();
    return Error(ErrorKind::kRuntime, "nothing was captured on ", device_.ToString(),
                 ": the work went to another stream or device");
  }

  Status Replay(Stream& stream) override {
    if (!exec_) return Error(ErrorKind::kRuntime, "this graph has not captured anything");
    if (stream.device() != device_) {
      return Error(ErrorKind::kRuntime, "a graph of ", device_.ToString(),
                   " cannot run on a stream of ", stream.device().ToString());
    }
    DeviceGuard guard(device_.index);
    if (shift_) OFL_RETURN_IF_ERROR(TakeRandom(stream));
    OFL_RETURN_IF_ERROR(CudaStatus(cudaGraphLaunch(exec_, NativeStream(stream)), "graph launch"));
    if (shift_) OFL_RETURN_IF_ERROR(MarkLaunch(stream));
    if (after_.empty() || stream.capturing()) return OkStatus();
    for (const auto& [key, after] : after_) OFL_RETURN_IF_ERROR(after(stream));
    return OkStatus();
  }
  void AfterReplays(const void* key, std::function<Status(Stream&)> after) {
    after_[key] = std::move(after);
  }

  // In the graph's own memory, once a random kernel asks. A replay's numbers are written before it
  // begins, so that no kernel of the graph may have used that memory before.
  StatusOr<const uint64_t*> RandomShift() {
    if (std::this_thread::get_id() != capturer_) {
      return Error(ErrorKind::kRuntime,
                   "random numbers are captured in the thread alone that began the capture: those "
                   "of others are not the replays'");
    }
    if (!shift_) {
      OFL_ASSIGN_OR_RETURN(shift_, GetCudaAllocator(device_.index)
                                       .Allocate(sizeof(uint64_t[2]),
                                                 NativeStream(*capture_stream_), /*fresh=*/true));
    }
    return static_cast<const uint64_t*>(shift_);
  }

  // Written past the capture, at once, to where no kernel of the graph may have written before.
  StatusOr<const void*> Keep(const void* bytes, size_t nbytes) {
    const size_t size = (nbytes + kKeptAlignment - 1) / kKeptAlignment * kKeptAlignment;
    if (size > kept_room_) {
      const size_t room = std::max(size, kKeptAtOnce);
      OFL_ASSIGN_OR_RETURN(void* kept,
                           GetCudaAllocator(device_.index)
                               .Allocate(room, NativeStream(*capture_stream_), /*fresh=*/true));
      kept_.push_back(kept);
      kept_next_ = static_cast<char*>(kept);
      kept_room_ = room;
    }
    DeviceGuard guard(device_.index);
    OFL_RETURN_IF_ERROR(CopyPastCapture(kept_next_, bytes, nbytes));
    kept_room_ -= size;
    return std::exchange(kept_next_, kept_next_ + size);
  }

 private:
  static constexpr size_t kKeptAlignment = 256, kKeptAtOnce = 64 << 10;

  ~CudaGraph() override {
    DeviceGuard guard(device_.index);
    if (capture_stream_) Abandon();
    if (exec_) cudaGraphExecDestroy(exec_);  // one that still runs is freed when it has ended
    if (launched_) cudaEventDestroy(launched_);
    if (shift_) GetCudaAllocator(device_.index).Free(shift_);
    for (void* kept : kept_) GetCudaAllocator(device_.index).Free(kept);
    if (pool_) GetCudaAllocator(device_.index).ReleasePool(pool_);
  }
  void Abandon() {
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(NativeStream(*capture_stream_), &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    Forget();
  }
  // The capture has ended; returns where its calls left the random numbers.
  Generator::State Forget() {
    capture_stream_ = nullptr;
    if (!pool_) return {};
    GetCudaAllocator(device_.index).EndCapture(capture_id_);
    {
      Captures& captures = GetCaptures();
      std::lock_guard lock(captures.mutex);
      captures.graphs.erase(capture_id_);
    }
    return DefaultGenerator(device_)->EndAside(capturer_);
  }
  // On a stream of its own, which no graph captures.
  static Status CopyPastCapture(void* to, const void* from, size_t nbytes) {
    RelaxedCapture relaxed;
    cudaStream_t side = nullptr;
    OFL_RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), "new stream"));
    cudaError_t error = cudaMemcpyAsync(to, from, nbytes, cudaMemcpyHostToDevice, side);
    if (error == cudaSuccess) error = cudaStreamSynchronize(side);
    cudaStreamDestroy(side);
    return CudaStatus(error, "copy from the host");
  }
  // Moves the captured random kernels to where the generator is, and that past their numbers. A
  // replay that still runs on another stream keeps its own.
  Status TakeRandom(Stream& stream) {
    if (stream.capturing()) {
      return Error(ErrorKind::kRuntime,
                   "a graph with random numbers cannot be captured in another");
    }
    if (launched_ && launched_on_ != NativeStream(stream)) {
      OFL_RETURN_IF_ERROR(CudaStatus(cudaStreamWaitEvent(NativeStream(stream), launched_, 0),
                                     "wait for the replay before"));
    }
    const Generator::State now = DefaultGenerator(device_)->Take(random_counters_);
    const uint64_t shift[2] = {now.seed - begin_.seed, now.offset - begin_.offset};
    return CudaStatus(
        cudaMemcpyAsync(shift_, shift, sizeof(shift), cudaMemcpyHostToDevice, NativeStream(stream)),
        "place in the random numbers");
  }
  Status MarkLaunch(Stream& stream) {
    if (!launched_) {
      OFL_RETURN_IF_ERROR(CudaStatus(cudaEventCreateWithFlags(&launched_, cudaEventDisableTiming),
                                     "event of a replay"));
    }
    launched_on_ = NativeStream(stream);
    return CudaStatus(cudaEventRecord(launched_, launched_on_), "event of a replay");
  }

  Device device_;
  Ref<Stream> capture_stream_;  // set while capturing
  uint64_t capture_id_ = 0;
  std::thread::id capturer_;
  CudaAllocator::Pool* pool_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  void* shift_ = nullptr;           // two uint64_t, where there are random kernels
  Generator::State begin_;          // of the default generator, when the capture began
  uint64_t random_counters_ = 0;    // that a replay takes
  cudaEvent_t launched_ = nullptr;  // behind the last replay, where there are random kernels
  cudaStream_t launched_on_ = nullptr;
  std::vector<void*> kept_;    // what the host's bytes are in
  char* kept_next_ = nullptr;  // in the last of them, and how many bytes there are
  size_t kept_room_ = 0;
  std::map<const void*, std::function<Status(Stream&)>> after_;
};

// The id of what captures the stream.
StatusOr<uint64_t> CaptureOf(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  OFL_RETURN_IF_ERROR(
      CudaStatus(cudaStreamGetCaptureInfo(NativeStream(stream), &status, &id), "capture info"));
  return id;
}

}  // namespace

StatusOr<const uint64_t*> RandomShiftOfCapture(uint64_t capture_id) {
  Captures& captures = GetCaptures();
  std::lock_guard lock(captures.mutex);
  const auto it = captures.graphs.find(capture_id);
  if (it == captures.graphs.end()) return nullptr;
  return it->second->RandomShift();
}

StatusOr<const void*> KeptByCapture(const Stream& stream, const void* bytes, size_t nbytes) {
  OFL_ASSIGN_OR_RETURN(const uint64_t id, CaptureOf(stream));
  Captures& captures = GetCaptures();
  std::lock_guard lock(captures.mutex);
  const auto it = captures.graphs.find(id);
  if (it == captures.graphs.end()) {
    return Error(ErrorKind::kRuntime,
                 "a copy from the host cannot be captured in a graph of another library: its "
                 "replays would read what that memory holds by then; copy before the capture");
  }
  return it->second->Keep(bytes, nbytes);
}

Status AfterReplays(const Stream& stream, const void* key, std::function<Status(Stream&)> after) {
  OFL_ASSIGN_OR_RETURN(const uint64_t id, CaptureOf(stream));
  Captures& captures = GetCaptures();
  std::lock_guard lock(captures.mutex);
  const auto it = captures.graphs.find(id);
  if (it != captures.graphs.end()) it->second->AfterReplays(key, std::move(after));
  return OkStatus();
}

StatusOr<Ref<Graph>> NewCudaGraph(Device device) { return Ref<Graph>(MakeRef<CudaGraph>(device)); }

}  // namespace oneflow_lite
