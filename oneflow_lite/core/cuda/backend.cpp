// SPDX-License-Identifier: Apache-2.0
//
// CUDA as a DeviceBackend. The library registers itself when it is opened, if the driver finds a
// device; that makes no context. Nothing here is ever destroyed: tensors may outlive main().
#include <cuda_runtime_api.h>

#include <mutex>
#include <vector>

#include "oneflow_lite/core/cuda/allocator.h"
#include "oneflow_lite/core/cuda/cuda_status.h"
#include "oneflow_lite/core/cuda/graph.h"
#include "oneflow_lite/core/cuda/stream.h"
#include "oneflow_lite/core/device_backend.h"

namespace oneflow_lite {
namespace {

Device CudaDevice(int index) { return {DeviceType::kCUDA, static_cast<int16_t>(index)}; }

DeviceProperties ReadProperties(int index) {
  DeviceProperties p;
  cudaDeviceProp prop;
  if (cudaGetDeviceProperties(&prop, index) != cudaSuccess) {
    cudaGetLastError();
    p.name = "unknown CUDA device";
    return p;
  }
  p.name = prop.name;
  p.compute_capability = prop.major * 10 + prop.minor;
  p.multiprocessors = prop.multiProcessorCount;
  p.shared_memory_per_block = prop.sharedMemPerBlockOptin;
  p.shared_memory_per_sm = prop.sharedMemPerMultiprocessor;
  p.l2_bytes = static_cast<size_t>(prop.l2CacheSize);
  p.total_memory = prop.totalGlobalMem;
  p.supports_clusters = prop.clusterLaunch != 0;
  p.supports_cooperative_launch = prop.cooperativeLaunch != 0;
  return p;
}

class CudaDeviceBackend final : public DeviceBackend {
 public:
  explicit CudaDeviceBackend(int count) : devices_(count) {}

  int DeviceCount() override { return static_cast<int>(devices_.size()); }
  const DeviceProperties& Properties(int index) override {
    PerDevice& d = devices_[index];
    std::call_once(d.once, [&] {
      d.properties = ReadProperties(index);
      d.default_stream = MakeRef<CudaStream>(CudaDevice(index), &d.properties, nullptr,
                                             CudaStream::Ownership::kDefault);
    });
    return d.properties;
  }

  StatusOr<void*> Allocate(size_t nbytes, Stream& stream) override {
    return GetCudaAllocator(stream.device().index).Allocate(nbytes, NativeStream(stream));
  }
  void Free(void* data, size_t, Device device) override {
    GetCudaAllocator(device.index).Free(data);
  }
  Status RecordStream(void* data, Stream& stream) override {
    GetCudaAllocator(stream.device().index).RecordStream(data, NativeStream(stream));
    return OkStatus();
  }
  void EmptyCache(int index) override { GetCudaAllocator(index).EmptyCache(); }
  MemoryStats Stats(int index) override { return GetCudaAllocator(index).Stats(); }
  void ResetPeak(int index) override { GetCudaAllocator(index).ResetPeak(); }

  Status CopyOnDevice(void* dst, const void* src, size_t nbytes, Stream& stream) override {
    return CopyAsync(dst, src, nbytes, cudaMemcpyDeviceToDevice, stream, "copy on the device");
  }
  Status CopyFromHost(void* dst, const void* src, size_t nbytes, Stream& stream) override {
    if (nbytes == 0) return OkStatus();
    if (stream.capturing()) {  // replays would read src again
      OFL_ASSIGN_OR_RETURN(const void* kept, KeptByCapture(stream, src, nbytes));
      return CopyOnDevice(dst, kept, nbytes, stream);
    }
    OFL_RETURN_IF_ERROR(
        CopyAsync(dst, src, nbytes, cudaMemcpyHostToDevice, stream, "copy from the host"));
    // Pageable memory has been staged by now; pinned memory is read later, when its owner may have
    // changed it.
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, src) != cudaSuccess) {
      cudaGetLastError();
      return OkStatus();
    }
    return attributes.type == cudaMemoryTypeHost ? stream.Synchronize() : OkStatus();
  }
  Status CopyToHost(void* dst, const void* src, size_t nbytes, Stream& stream) override {
    if (nbytes == 0) return OkStatus();
    if (stream.capturing()) {
      return Error(ErrorKind::kRuntime,
                   "a copy to the host cannot be captured in a graph: there are no values before "
                   "it is replayed");
    }
    OFL_RETURN_IF_ERROR(
        CopyAsync(dst, src, nbytes, cudaMemcpyDeviceToHost, stream, "copy to the host"));
    return stream.Synchronize();
  }

  Ref<Stream> DefaultStream(int index) override {
    Properties(index);
    return devices_[index].default_stream;
  }
  StatusOr<Ref<Stream>> NewStream(int index) override {
    return CudaStream::New(CudaDevice(index), &Properties(index));
  }
  StatusOr<Ref<Stream>> ExternalStream(int index, void* native) override {
    if (!native) return DefaultStream(index);
    return Ref<Stream>(MakeRef<CudaStream>(CudaDevice(index), &Properties(index),
                                           static_cast<cudaStream_t>(native),
                                           CudaStream::Ownership::kExternal));
  }
  StatusOr<Ref<Event>> NewEvent(int index, bool timing) override {
    return NewCudaEvent(CudaDevice(index), timing);
  }
  StatusOr<Ref<Graph>> NewGraph(int index) override { return NewCudaGraph(CudaDevice(index)); }
  Status Synchronize(int index) override {
    DeviceGuard guard(index);
    return CudaStatus(cudaDeviceSynchronize(), "device synchronisation");
  }
  void MakeCurrent(int index) override {
    if (cudaSetDevice(index) != cudaSuccess) cudaGetLastError();  // the next call tells
  }

 private:
  struct PerDevice {
    std::once_flag once;
    DeviceProperties properties;
    Ref<Stream> default_stream;
  };

  static Status CopyAsync(void* dst, const void* src, size_t nbytes, cudaMemcpyKind kind,
                          Stream& stream, const char* what) {
    if (nbytes == 0) return OkStatus();
    DeviceGuard guard(stream.device().index);
    return CudaStatus(cudaMemcpyAsync(dst, src, nbytes, kind, NativeStream(stream)), what);
  }

  std::vector<PerDevice> devices_;
};

const bool registered = [] {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  if (count > 0) RegisterBackend(DeviceType::kCUDA, new CudaDeviceBackend(count));
  return count > 0;
}();

}  // namespace
}  // namespace oneflow_lite
