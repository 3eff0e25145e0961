// SPDX-License-Identifier: Apache-2.0
//
// The kernels that a measurement needs beside the measured: streams that move bytes and do nothing
// else (the yardsticks), a read that empties the L2, a spin that keeps the GPU busy while the host
// enqueues, and launches of an empty kernel. All move 16 bytes at a time; sizes are in bytes and
// multiples of 16. nvcc brings the CUDA headers.
#include <cstdint>

namespace {

constexpr int kThreads = 256;
constexpr int kUnroll = 4;  // packs in flight per thread: 16 KB per block
// Of two inputs, one pack each per thread and no cache hints are the fastest on an H200: 4.40 TB/s
// against 3.95 with four and hints.
template <bool kTwo>
constexpr int kPacksOf = kTwo ? 1 : kUnroll;

__device__ uint4 Xor(uint4 a, uint4 b) { return {a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w}; }

// z = x, or x ^ y where there are two inputs: the arithmetic hides behind either.
template <bool kTwo>
__global__ void __launch_bounds__(kThreads)
    Stream(const uint4* __restrict__ x, const uint4* __restrict__ y, uint4* __restrict__ z,
           int64_t n) {
  constexpr int kPacks = kPacksOf<kTwo>;
  const int64_t begin = int64_t{blockIdx.x} * kThreads * kPacks + threadIdx.x;
  uint4 a[kPacks];
  uint4 b[kPacks];
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int64_t at = begin + i * kThreads;
    if (at < n) a[i] = kTwo ? x[at] : __ldcs(x + at);
    if (kTwo && at < n) b[i] = y[at];
  }
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int64_t at = begin + i * kThreads;
    if (at >= n) continue;
    if (kTwo) {
      z[at] = Xor(a[i], b[i]);
    } else {
      __stcs(z + at, a[i]);
    }
  }
}

// Every block reads its share and leaves one word. Plain loads, so that they fill the L2.
__global__ void __launch_bounds__(kThreads)
    Read(const uint4* __restrict__ x, int64_t n, uint32_t* __restrict__ words) {
  uint4 sum = {};
  const int64_t step = int64_t{gridDim.x} * kThreads * kUnroll;
  for (int64_t begin = int64_t{blockIdx.x} * kThreads * kUnroll + threadIdx.x; begin < n;
       begin += step) {
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (begin + i * kThreads < n) sum = Xor(sum, x[begin + i * kThreads]);
    }
  }
  const uint32_t word = __reduce_xor_sync(0xffffffffu, sum.x ^ sum.y ^ sum.z ^ sum.w);
  if (threadIdx.x % 32 == 0) words[blockIdx.x * (kThreads / 32) + threadIdx.x / 32] = word;
}

__global__ void Spin(int64_t nanoseconds) {
  uint64_t start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (static_cast<int64_t>(now - start) < nanoseconds);
}

__global__ void Nothing() {}

}  // namespace

static const char* Said(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
static cudaStream_t Native(void* stream) { return static_cast<cudaStream_t>(stream); }

template <bool kTwo>
static const char* LaunchStream(const void* x, const void* y, void* z, int64_t bytes, void* s) {
  const int64_t n = bytes / 16;
  constexpr int kPacks = kThreads * kPacksOf<kTwo>;  // of a block
  const int64_t blocks = (n + kPacks - 1) / kPacks;
  Stream<kTwo><<<static_cast<unsigned>(blocks), kThreads, 0, Native(s)>>>(
      static_cast<const uint4*>(x), static_cast<const uint4*>(y), static_cast<uint4*>(z), n);
  return Said(cudaGetLastError());
}

const char* LaunchCopy(const void* x, const void*, void* z, int64_t bytes, void* s) {
  return LaunchStream<false>(x, nullptr, z, bytes, s);
}
const char* LaunchAdd(const void* x, const void* y, void* z, int64_t bytes, void* s) {
  return LaunchStream<true>(x, y, z, bytes, s);
}
const char* LaunchMemcpy(const void* x, const void*, void* z, int64_t bytes, void* s) {
  return Said(cudaMemcpyAsync(z, x, bytes, cudaMemcpyDeviceToDevice, Native(s)));
}
// z holds 8 words for each of `blocks`.
const char* LaunchRead(const void* x, void* z, int64_t bytes, int blocks, void* s) {
  Read<<<blocks, kThreads, 0, Native(s)>>>(static_cast<const uint4*>(x), bytes / 16,
                                           static_cast<uint32_t*>(z));
  return Said(cudaGetLastError());
}
const char* LaunchSpin(int64_t nanoseconds, void* s) {
  Spin<<<1, 1, 0, Native(s)>>>(nanoseconds);
  return Said(cudaGetLastError());
}
const char* LaunchNothing(int64_t times, void* s) {
  for (int64_t i = 0; i < times; ++i) Nothing<<<1, 1, 0, Native(s)>>>();
  return Said(cudaGetLastError());
}
