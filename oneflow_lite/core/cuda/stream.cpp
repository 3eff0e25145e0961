// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/cuda/stream.h"

#include <mutex>
#include <utility>
#include <vector>

#include "oneflow_lite/core/cuda/allocator.h"
#include "oneflow_lite/core/cuda/cuda_status.h"
#include "oneflow_lite/core/cuda/graph.h"

namespace oneflow_lite {
namespace {

// Streams that nobody holds at present, by device. Never destroyed: streams outlive static objects.
struct IdleStream {
  cudaStream_t stream = nullptr;
  uint32_t* counters = nullptr;
};
struct StreamPool {
  std::mutex mutex;
  std::vector<std::vector<IdleStream>> idle;
};
StreamPool& Pool() {
  static auto* pool = new StreamPool;
  return *pool;
}

class CudaEvent final : public Event {
 public:
  CudaEvent(Device device, cudaEvent_t event) : device_(device), event_(event) {}

  Status Record(Stream& stream) override {
    if (stream.device() != device_) return WrongDevice(stream);
    DeviceGuard guard(device_.index);
    OFL_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(event_, NativeStream(stream)), "event record"));
    recorded_ = true;
    return OkStatus();
  }
  Status Wait(Stream& stream) override {
    if (stream.device().type != DeviceType::kCUDA) return WrongDevice(stream);
    DeviceGuard guard(stream.device().index);
    return CudaStatus(cudaStreamWaitEvent(NativeStream(stream), event_, 0), "wait for an event");
  }
  Status Synchronize() override {
    DeviceGuard guard(device_.index);
    return CudaStatus(cudaEventSynchronize(event_), "event synchronisation");
  }
  // The device is current, lest a thread that has used none makes a context on the first GPU.
  StatusOr<bool> Query() override {
    DeviceGuard guard(device_.index);
    const cudaError_t error = cudaEventQuery(event_);
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    OFL_RETURN_IF_ERROR(CudaStatus(error, "event query"));
    return true;
  }
  StatusOr<float> ElapsedMs(Event& end) override {
    auto* other = dynamic_cast<CudaEvent*>(&end);
    if (!other || !recorded_ || !other->recorded_) {
      return Error(ErrorKind::kRuntime,
                   "elapsed time needs two CUDA events with timing that were both recorded");
    }
    float ms = 0;
    OFL_RETURN_IF_ERROR(
        CudaStatus(cudaEventElapsedTime(&ms, event_, other->event_), "elapsed time"));
    return ms;
  }

 private:
  ~CudaEvent() override { cudaEventDestroy(event_); }
  Status WrongDevice(const Stream& stream) const {
    return Error(ErrorKind::kRuntime, "an event of ", device_.ToString(),
                 " cannot be used on a stream of ", stream.device().ToString());
  }

  Device device_;
  cudaEvent_t event_;
  bool recorded_ = false;
};

}  // namespace

StatusOr<Ref<Stream>> CudaStream::New(Device device, const DeviceProperties* properties) {
  IdleStream found;
  {
    StreamPool& pool = Pool();
    std::lock_guard lock(pool.mutex);
    const auto index = static_cast<size_t>(device.index);
    if (index < pool.idle.size() && !pool.idle[index].empty()) {
      found = pool.idle[index].back();
      pool.idle[index].pop_back();
    }
  }
  if (!found.stream) {
    DeviceGuard guard(device.index);
    OFL_RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&found.stream, cudaStreamNonBlocking), "new stream"));
  }
  auto stream = MakeRef<CudaStream>(device, properties, found.stream, Ownership::kPooled);
  stream->counters_ = found.counters;
  return Ref<Stream>(std::move(stream));
}

CudaStream::~CudaStream() {
  if (ownership_ == Ownership::kPooled) {
    StreamPool& pool = Pool();
    std::lock_guard lock(pool.mutex);
    const auto index = static_cast<size_t>(device().index);
    if (pool.idle.size() <= index) pool.idle.resize(index + 1);
    pool.idle[index].push_back({stream_, counters_});
  } else if (ownership_ == Ownership::kExternal) {
    GetCudaAllocator(device().index).ForgetStream(stream_);
    DeviceGuard guard(device().index);
    RelaxedCapture relaxed;
    cudaFree(counters_);
  }
}

Status CudaStream::Synchronize() {
  DeviceGuard guard(device().index);
  return CudaStatus(cudaStreamSynchronize(stream_), "stream synchronisation");
}

bool CudaStream::capturing() const {
  if (!stream_) return false;  // the legacy stream cannot be captured
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream_, &status) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return status == cudaStreamCaptureStatusActive;
}

StatusOr<const uint64_t*> CudaStream::RandomShift() {
  if (!capturing()) return nullptr;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  OFL_RETURN_IF_ERROR(CudaStatus(cudaStreamGetCaptureInfo(stream_, &status, &id), "capture info"));
  return RandomShiftOfCapture(id);
}

uint32_t* CudaStream::Counters() {
  if (capturing()) return nullptr;
  std::lock_guard lock(counters_mutex_);
  if (!counters_) {
    constexpr size_t kBytes = kCounters * sizeof(uint32_t);
    RelaxedCapture relaxed;
    void* data = nullptr;
    if (cudaMalloc(&data, kBytes) != cudaSuccess ||
        cudaMemsetAsync(data, 0, kBytes, stream_) != cudaSuccess) {
      cudaFree(data);
      cudaGetLastError();
      return nullptr;
    }
    counters_ = static_cast<uint32_t*>(data);
  }
  return counters_;
}

StatusOr<Ref<Event>> NewCudaEvent(Device device, bool timing) {
  DeviceGuard guard(device.index);
  cudaEvent_t event = nullptr;
  OFL_RETURN_IF_ERROR(CudaStatus(
      cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming),
      "new event"));
  return Ref<Event>(MakeRef<CudaEvent>(device, event));
}

}  // namespace oneflow_lite
