// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/cuda/graph.h"

#include <cuda_runtime_api.h>

#include "oneflow_lite/core/cuda/allocator.h"
#include "oneflow_lite/core/cuda/cuda_status.h"

namespace oneflow_lite {
namespace {

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
    return OkStatus();
  }

  Status CaptureEnd() override {
    if (!capture_stream_) return Error(ErrorKind::kRuntime, "this graph is not capturing");
    DeviceGuard guard(device_.index);
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(NativeStream(*capture_stream_), &graph);
    capture_stream_ = nullptr;
    GetCudaAllocator(device_.index).EndCapture(capture_id_);
    OFL_RETURN_IF_ERROR(CudaStatus(ended, "capture"));
    const cudaError_t made = cudaGraphInstantiate(&exec_, graph, 0);
    cudaGraphDestroy(graph);
    return CudaStatus(made, "graph instantiation");
  }

  Status Replay(Stream& stream) override {
    if (!exec_) return Error(ErrorKind::kRuntime, "this graph has not captured anything");
    if (stream.device() != device_) {
      return Error(ErrorKind::kRuntime, "a graph of ", device_.ToString(),
                   " cannot run on a stream of ", stream.device().ToString());
    }
    DeviceGuard guard(device_.index);
    return CudaStatus(cudaGraphLaunch(exec_, NativeStream(stream)), "graph launch");
  }

 private:
  ~CudaGraph() override {
    DeviceGuard guard(device_.index);
    if (capture_stream_) Abandon();
    if (exec_) cudaGraphExecDestroy(exec_);  // one that still runs is freed when it has ended
    if (pool_) GetCudaAllocator(device_.index).ReleasePool(pool_);
  }
  void Abandon() {
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(NativeStream(*capture_stream_), &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    capture_stream_ = nullptr;
    if (pool_) GetCudaAllocator(device_.index).EndCapture(capture_id_);
  }

  Device device_;
  Ref<Stream> capture_stream_;  // set while capturing
  uint64_t capture_id_ = 0;
  CudaAllocator::Pool* pool_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace

StatusOr<Ref<Graph>> NewCudaGraph(Device device) { return Ref<Graph>(MakeRef<CudaGraph>(device)); }

}  // namespace oneflow_lite
