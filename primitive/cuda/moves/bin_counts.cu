// SPDX-License-Identifier: Apache-2.0
//
// Each block counts what it meets in shared memory, and adds its counts to those of the others as
// it ends. More bins than fit there are counted in the result itself.
#include "primitive/cuda/moves/bin_counts_launch.h"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kBlocks = 4;                 // of a multiprocessor
constexpr int kPacks = 4;                  // of a thread, under way at a time
constexpr int64_t kMostShared = 12 << 10;  // bins, of 4 bytes each

// The bin of an element, or `count`: primitive/bin_counts.h. T: what is computed in.
template <class T>
struct BinOf {
  T low, high, width;
  int64_t count;

  BinOf(const BinCountsProblem& p)
      : low(static_cast<T>(p.low)),
        high(static_cast<T>(p.high)),
        width(static_cast<T>(p.high - p.low)),
        count(p.bins) {}
  template <class E>
  __device__ __forceinline__ int64_t operator()(E element) const {
    constexpr T kFar = T(1 << 30) * T(1 << 30);  // fits int64
    const T x = static_cast<T>(element);
    if (!(x >= low && x <= high)) return count;
    const T place = (x - low) * static_cast<T>(count) / width;
    // A NaN, where low is high or a product is infinite, is in the first one.
    const int64_t bin = place > 0 ? static_cast<int64_t>(place < kFar ? place : kFar) : 0;
    return bin < count ? bin : count - 1;
  }
};
// Integers from 0 on that are their own bins.
struct OwnBin {
  int64_t count;

  OwnBin(const BinCountsProblem& p) : count(p.bins) {}
  __device__ __forceinline__ int64_t operator()(int64_t x) const {
    return static_cast<uint64_t>(x) < static_cast<uint64_t>(count) ? x : count;
  }
};

template <class E, class Bin>
__global__ void __launch_bounds__(kThreads)
    BinCountsKernel(Bin bin, bool shared, const E* x, int64_t n, unsigned long long* counts) {
  extern __shared__ uint32_t own[];
  const auto held = static_cast<uint32_t>(shared ? bin.count : 0);
  for (uint32_t k = threadIdx.x; k < held; k += kThreads) own[k] = 0;
  __syncthreads();
  const auto count = [&](E v) {
    const int64_t at = bin(v);
    if (at == bin.count) return;
    if (shared) {
      atomicAdd(own + at, 1u);
      return;
    }
    // One of the lanes that meet adds for all of them.
    const unsigned peers = __match_any_sync(__activemask(), static_cast<long long>(at));
    if (threadIdx.x % 32 == static_cast<unsigned>(__ffs(static_cast<int>(peers)) - 1)) {
      atomicAdd(counts + at, static_cast<unsigned long long>(__popc(peers)));
    }
  };
  constexpr int N = kPackSize<E>;
  const int64_t step = int64_t{gridDim.x} * kThreads * N;
  int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * N;
  if (IsAlignedFor<uint4>(x)) {
    for (; i + (kPacks - 1) * step + N <= n; i += kPacks * step) {
      Pack<E, N> packs[kPacks];
#pragma unroll
      for (int k = 0; k < kPacks; ++k) packs[k] = LoadAlignedPack<N>(x + i + k * step);
#pragma unroll
      for (const Pack<E, N>& pack : packs) {
#pragma unroll
        for (const E v : pack.v) count(v);
      }
    }
  }
  for (; i < n; i += step) {
    for (int64_t j = i; j < i + N && j < n; ++j) count(x[j]);
  }
  __syncthreads();
  for (uint32_t k = threadIdx.x; k < held; k += kThreads) {
    if (own[k] != 0) atomicAdd(counts + k, static_cast<unsigned long long>(own[k]));
  }
}

template <class E, class Bin>
cudaError_t LaunchBins(const BinCountsProblem& p, const DeviceLimits& limits, cudaStream_t stream) {
  if (p.bins <= 0) return cudaSuccess;
  const auto bytes = static_cast<size_t>(p.bins) * sizeof(*p.counts);
  const cudaError_t error = cudaMemsetAsync(p.counts, 0, bytes, stream);
  if (error != cudaSuccess || p.n <= 0) return error;
  const bool shared = p.bins <= kMostShared;
  const int64_t most = int64_t{kBlocks} * limits.multiprocessors;
  const int64_t blocks = CeilDiv(p.n, int64_t{kThreads} * kPackSize<E>);
  return Launch(BinCountsKernel<E, Bin>, blocks < most ? blocks : most, kThreads,
                shared ? static_cast<size_t>(p.bins) * sizeof(uint32_t) : 0, stream, Bin(p), shared,
                static_cast<const E*>(p.x), p.n, reinterpret_cast<unsigned long long*>(p.counts));
}

cudaError_t LaunchIntegers(const BinCountsProblem& p, const DeviceLimits& limits,
                           cudaStream_t stream) {
  if (p.low == 0 && p.high == static_cast<double>(p.bins) - 0.5) {
    return LaunchBins<int64_t, OwnBin>(p, limits, stream);
  }
  return LaunchBins<int64_t, BinOf<double>>(p, limits, stream);
}

}  // namespace

BinCountsLauncher FindBinCounts(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return &LaunchBins<float, BinOf<float>>;
    case DType::kFloat64:
      return &LaunchBins<double, BinOf<double>>;
    case DType::kInt64:
      return &LaunchIntegers;
    default:
      return nullptr;
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
