// SPDX-License-Identifier: Apache-2.0
//
// Each block marks in shared memory what it meets, a byte for each number, and joins its marks to
// those of the others as it ends.
#include <type_traits>

#include "primitive/cuda/moves/presence_launch.h"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kBlocks = 2;  // of a multiprocessor: both have room for all marks
constexpr int kPacks = 4;   // of a thread, under way at a time
constexpr int64_t kMostMarks = 1 << 16;

// What numbers' distances are counted in: they wrap around, so that what is below a range lies
// beyond it.
template <class T>
using Distance = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    PresenceKernel(const T* x, int64_t n, Distance<T> low, uint32_t size, uint8_t* seen) {
  extern __shared__ uint32_t words[];
  auto* own = reinterpret_cast<uint8_t*>(words);
  const uint32_t count = (size + 3) / 4;
  for (uint32_t w = threadIdx.x; w < count; w += kThreads) words[w] = 0;
  __syncthreads();
  const auto mark = [&](T v) {
    const Distance<T> at = static_cast<Distance<T>>(v) - low;
    if (at < size) own[at] = 1;
  };
  constexpr int N = kPackSize<T>;
  const int64_t step = int64_t{gridDim.x} * kThreads * N;
  int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * N;
  if (IsAlignedFor<uint4>(x)) {
    for (; i + (kPacks - 1) * step + N <= n; i += kPacks * step) {
      Pack<T, N> packs[kPacks];
#pragma unroll
      for (int k = 0; k < kPacks; ++k) packs[k] = LoadAlignedPack<N>(x + i + k * step);
#pragma unroll
      for (const Pack<T, N>& pack : packs) {
#pragma unroll
        for (const T v : pack.v) mark(v);
      }
    }
  }
  for (; i < n; i += step) {
    for (int64_t j = i; j < i + N && j < n; ++j) mark(x[j]);
  }
  __syncthreads();
  for (uint32_t w = threadIdx.x; w < count; w += kThreads) {
    const uint32_t word = words[w];
    if (word == 0) continue;
    if (4 * w + 4 <= size) {
      auto* to = reinterpret_cast<uint32_t*>(seen) + w;
      if (word & ~*static_cast<volatile uint32_t*>(to)) atomicOr(to, word);
    } else {
      for (uint32_t k = 4 * w; k < size; ++k) {
        if (own[k]) seen[k] = 1;
      }
    }
  }
}

template <class T>
cudaError_t LaunchPresence(const PresenceProblem& p, const DeviceLimits& limits,
                           cudaStream_t stream) {
  if (p.size <= 0) return cudaSuccess;
  cudaError_t error = cudaMemsetAsync(p.seen, 0, p.size, stream);
  if (error != cudaSuccess || p.n <= 0) return error;
  error = AllowAllShared<&PresenceKernel<T>>(limits);
  if (error != cudaSuccess) return error;
  const int64_t most = int64_t{kBlocks} * limits.multiprocessors;
  const int64_t blocks = CeilDiv(p.n, int64_t{kThreads} * kPackSize<T>);
  auto* seen = reinterpret_cast<uint8_t*>(p.seen);
  for (int64_t begin = 0; begin < p.size && error == cudaSuccess; begin += kMostMarks) {
    const int64_t size = p.size - begin < kMostMarks ? p.size - begin : kMostMarks;
    error =
        Launch(PresenceKernel<T>, blocks < most ? blocks : most, kThreads,
               static_cast<size_t>(CeilDiv(size, 4) * 4), stream, static_cast<const T*>(p.x), p.n,
               static_cast<Distance<T>>(p.low + begin), static_cast<uint32_t>(size), seen + begin);
  }
  return error;
}

}  // namespace

PresenceLauncher FindPresence(DType dtype) {
  return VisitDeviceNumeric<PresenceLauncher>(dtype, [](auto tag) -> PresenceLauncher {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) return &LaunchPresence<T>;
    return nullptr;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
