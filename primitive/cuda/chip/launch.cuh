// SPDX-License-Identifier: Apache-2.0
//
// Launching kernels: no device queries, no allocation, one error code.
//
//   return Launch(MyKernel<float>, blocks, threads, /*shared=*/0, stream, x, y, n);
#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

#include <atomic>
#include <type_traits>

#include "primitive/cuda/chip/device_limits.h"
#ifdef __CUDACC__  // host files include this header for its launchers' types
#include "primitive/cuda/chip/device_query.cuh"
#endif

namespace oneflow_lite::cuda {

// The largest grid along x. A kernel either loops over what such a grid does not cover, or says
// that its grid covers all rows; then rows that fit in memory need fewer blocks, or the launcher
// checks.
inline constexpr int64_t kMaxBlocks = (int64_t{1} << 31) - 1;

// What a launcher gives that does not serve the rows: another may.
inline constexpr cudaError_t kNotServed = static_cast<cudaError_t>(-1);

// Calls f(std::true_type) or f(std::false_type).
template <class F>
cudaError_t VisitBool(bool value, F&& f) {
  return value ? f(std::true_type{}) : f(std::false_type{});
}
// Calls f(std::integral_constant) with the one of these numbers that n is, or else the last.
template <int kFirst, int... kOthers, class F>
cudaError_t VisitNumber(int64_t n, F&& f) {
  if constexpr (sizeof...(kOthers) > 0) {
    if (n != kFirst) return VisitNumber<kOthers...>(n, f);
  }
  return f(std::integral_constant<int, kFirst>{});
}
// Lanes that have a row, and what each holds of it, packs or columns.
template <int kLanes, int kPacks>
struct GroupShape {
  static constexpr int lanes = kLanes, packs = kPacks;
};
// Calls f(shape) with the first of these shapes that holds n, or the last.
template <class First, class... Others, class F>
cudaError_t VisitShapes(int64_t n, F&& f) {
  if constexpr (sizeof...(Others) > 0) {
    if (n > First::lanes * First::packs) return VisitShapes<Others...>(n, f);
  }
  return f(First{});
}

// Where a launch goes, and device memory that it may use, or null.
struct LaunchSite {
  const DeviceLimits& limits;
  cudaStream_t stream;
  void* workspace = nullptr;
};
// The launch of a matrix' rows.
struct RowCall : LaunchSite {
  int64_t rows, cols;
};

// How the blocks of a launch belong together.
struct LaunchKind {
  int cluster = 1;           // blocks of a cluster
  bool cooperative = false;  // all blocks are resident and may meet at a barrier
  bool after = false;        // they may be in place before the kernel in front has ended
};

// What the driver is told of a launch. It points into itself, and is not copied.
class LaunchConfig {
 public:
  LaunchConfig(const LaunchKind& kind, dim3 blocks, int threads, size_t shared,
               cudaStream_t stream) {
    config_.gridDim = blocks;
    config_.gridDim.x -= blocks.x % static_cast<unsigned>(kind.cluster);  // whole clusters
    config_.blockDim = dim3(static_cast<unsigned>(threads));
    config_.dynamicSmemBytes = shared;
    config_.stream = stream;
    config_.attrs = attributes_;
    if (kind.cluster > 1) {
      Add(cudaLaunchAttributeClusterDimension).clusterDim = {static_cast<unsigned>(kind.cluster), 1,
                                                             1};
    } else if (kind.cooperative) {
      Add(cudaLaunchAttributeCooperative).cooperative = 1;
    }
    if (kind.after) {
      constexpr auto kAfter = cudaLaunchAttributeProgrammaticStreamSerialization;
      Add(kAfter).programmaticStreamSerializationAllowed = 1;
    }
  }
  LaunchConfig(const LaunchConfig&) = delete;
  const cudaLaunchConfig_t* get() const { return &config_; }

 private:
  cudaLaunchAttributeValue& Add(cudaLaunchAttributeID id) {
    cudaLaunchAttribute& attribute = attributes_[config_.numAttrs++];
    attribute.id = id;
    return attribute.val;
  }
  cudaLaunchConfig_t config_ = {};
  cudaLaunchAttribute attributes_[2] = {};
};

inline unsigned GridOf(int64_t blocks) { return static_cast<unsigned>(Min(blocks, kMaxBlocks)); }
template <class... Params, class... Args>
cudaError_t LaunchAs(LaunchKind kind, void (*kernel)(Params...), int64_t blocks, int threads,
                     size_t shared, cudaStream_t stream, const Args&... args) {
  const LaunchConfig config(kind, GridOf(blocks), threads, shared, stream);
  return cudaLaunchKernelEx(config.get(), kernel, Params(args)...);
}
template <class... Params, class... Args>
cudaError_t Launch(void (*kernel)(Params...), int64_t blocks, int threads, size_t shared,
                   cudaStream_t stream, const Args&... args) {
  return LaunchAs({}, kernel, blocks, threads, shared, stream, args...);
}

// Lets the kernel use all the shared memory that a block of the device may have. The driver says
// how much that is, and not `limits`: those of one caller may be lower than those of the next, and
// this is done once per kernel and device.
template <auto kernel>
cudaError_t AllowAllShared(const DeviceLimits& limits) {
  static std::atomic<uint64_t> allowed{0};
  const uint64_t bit = limits.device < 64 ? uint64_t{1} << limits.device : 0;
  if (allowed.load(std::memory_order_relaxed) & bit) return cudaSuccess;
  int most = 0;
  cudaError_t error =
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, limits.device);
  if (error != cudaSuccess) return error;
  error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
  if (error == cudaSuccess) allowed.fetch_or(bit, std::memory_order_relaxed);
  return error;
}

namespace internal {

// Lets the kernel run in clusters of more than eight blocks.
template <auto kernel>
cudaError_t AllowLargeClusters() {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
}

// A kernel that begins with WaitForPreviousKernel(): its blocks may be in place before the kernel
// in front of it has ended, on devices that can do that: those that have clusters.
template <class... Params, class... Args>
cudaError_t LaunchAfter(const LaunchSite& site, void (*kernel)(Params...), dim3 blocks, int threads,
                        const Args&... args) {
  const LaunchConfig config({1, false, site.limits.clusters}, blocks, threads, 0, site.stream);
  return cudaLaunchKernelEx(config.get(), kernel, Params(args)...);
}

// Asks the driver how many clusters of so many blocks of the kernel the device holds at once. 0
// where it can place none, and where the driver refuses to say.
template <auto kernel>
int AskForClusters(int blocks, int threads, size_t shared) {
  const LaunchConfig config({blocks}, static_cast<unsigned>(blocks), threads, shared, nullptr);
  int clusters = 0;
  cudaError_t error = blocks > 8 ? AllowLargeClusters<kernel>() : cudaSuccess;
  if (error == cudaSuccess) error = cudaOccupancyMaxActiveClusters(&clusters, kernel, config.get());
  if (error == cudaSuccess) return clusters;
  cudaGetLastError();
  return 0;
}

}  // namespace internal

// LaunchAs of a kernel with much shared memory, or in clusters of any size.
template <auto kernel, class... Args>
cudaError_t LaunchLarge(LaunchKind kind, int64_t blocks, int threads, size_t shared,
                        const LaunchSite& site, const Args&... args) {
  cudaError_t error = AllowAllShared<kernel>(site.limits);
  if (error == cudaSuccess && kind.cluster > 8) error = internal::AllowLargeClusters<kernel>();
  if (error != cudaSuccess) return error;
  return LaunchAs(kind, kernel, blocks, threads, shared, site.stream, args...);
}

// How many clusters of so many blocks, at most 16, of the kernel with `shared` bytes each the
// device holds at once. The driver is asked once per kernel, device and size; an answer of 0 is
// remembered too, so that a launch finds the plan that its workspace was made for.
template <auto kernel>
int KnownClusters(int blocks, int threads, size_t shared, const DeviceLimits& limits) {
  static std::atomic<int> known[64][17];  // one more; 0: not asked yet
  if (limits.device < 0 || limits.device >= 64) {
    return internal::AskForClusters<kernel>(blocks, threads, shared);
  }
  std::atomic<int>& slot = known[limits.device][blocks];
  int clusters = slot.load(std::memory_order_relaxed) - 1;
  if (clusters < 0) {
    clusters = internal::AskForClusters<kernel>(blocks, threads, shared);
    slot.store(clusters + 1, std::memory_order_relaxed);
  }
  return clusters;
}
// The most blocks a cluster of the kernel may have with `shared` bytes each: 16 where the device
// can place such clusters, 8 where it has clusters, else 1.
template <auto kernel>
int MaxClusterBlocks(int threads, size_t shared, const DeviceLimits& limits) {
  if (!limits.clusters) return 1;
  return KnownClusters<kernel>(16, threads, shared, limits) > 0 ? 16 : 8;
}
// How many clusters of 2 to 16 blocks of the kernel, a block per multiprocessor, the device holds
// at once. The driver is asked about blocks with three quarters of the shared memory, whatever a
// plan's have: there is no room for a second one then.
template <auto kernel>
int MaxClusters(int blocks, int threads, const DeviceLimits& limits) {
  if (!limits.clusters) return 0;
  if (AllowAllShared<kernel>(limits) != cudaSuccess) cudaGetLastError();  // then none will fit
  const size_t shared = static_cast<size_t>(limits.shared_per_block) / 4 * 3;
  const int clusters = KnownClusters<kernel>(blocks, threads, shared, limits);
  return static_cast<int>(Min(clusters, limits.multiprocessors / blocks));
}

}  // namespace oneflow_lite::cuda
