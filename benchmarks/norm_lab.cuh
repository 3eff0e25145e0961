// SPDX-License-Identifier: Apache-2.0
//
// What the labs of the norms' kernels share: data, arrays, bounds, streams and a timer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "primitive/cuda/norm.cuh"

using namespace oneflow_lite::cuda;

#define CHECK(call)                                                                         \
  do {                                                                                      \
    const cudaError_t error = (call);                                                       \
    if (error != cudaSuccess) {                                                             \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error)); \
      std::exit(2);                                                                         \
    }                                                                                       \
  } while (0)

namespace {

DeviceLimits limits;

// -- Data ------------------------------------------------------------------------------------

__device__ double Uniform(uint64_t i, uint64_t seed) {
  uint64_t z = i * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull + 1;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}
// Nearly normal: a sum of four uniforms.
template <class T>
__global__ void FillKernel(T* p, int64_t n, uint64_t seed, double mean, double spread) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * blockDim.x) {
    double u = 0;
    for (int k = 0; k < 4; ++k) u += Uniform(4 * i + k, seed);
    p[i] = ConvertTo<T>(mean + spread * (u - 2) * 1.7320508);
  }
}
template <class T>
void Fill(T* p, int64_t n, uint64_t seed, double mean, double spread) {
  FillKernel<<<2048, 256>>>(p, n, seed, mean, spread);
  CHECK(cudaGetLastError());
}

template <class T>
struct Array {
  explicit Array(int64_t n, int64_t offset = 0) : n(n) {
    CHECK(cudaMalloc(&base, (n + offset) * sizeof(T) + 16));
    data = static_cast<T*>(base) + offset;
  }
  Array(const Array&) = delete;
  ~Array() { cudaFree(base); }
  std::vector<T> Host() const {
    std::vector<T> host(n);
    CHECK(cudaMemcpy(host.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }
  int64_t n;
  void* base = nullptr;
  T* data = nullptr;
};

__device__ double BlockSum(double v) {
  __shared__ double slots[32];
  for (int m = 16; m; m /= 2) v += __shfl_xor_sync(~0u, v, m);
  __syncthreads();
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) v += slots[w];
  return v;
}

template <class T>
__device__ double WeightAt(const void* w, bool is_float, int64_t c, double missing) {
  if (!w) return missing;
  return is_float ? static_cast<const float*>(w)[c]
                  : ConvertTo<double>(static_cast<const T*>(w)[c]);
}

__device__ double StepAt(double v, int mantissa, int lowest) {
  int e = lowest;
  if (v != 0) e = max(lowest, ilogb(v));
  return ldexp(1.0, e - mantissa);
}
// What rounding to T costs at v: a step of the 16-bit floats.
template <class T>
__device__ double Rounding(double v) {
  if (sizeof(T) > 2) return 0;
  return std::is_same_v<T, __half> ? StepAt(v, 10, -14) : StepAt(v, 7, -126);
}
__device__ void RaiseTo(double* worst, double v) {
  // Not negative, so that the order of the bits is the order of the values; NaN is the largest.
  if (v != v) v = HUGE_VAL;
  atomicMax(reinterpret_cast<unsigned long long*>(worst),
            static_cast<unsigned long long>(__double_as_longlong(v)));
}

template <class T>
const char* NameOf() {
  return std::is_same_v<T, __half>          ? "half"
         : std::is_same_v<T, __nv_bfloat16> ? "bfloat16"
         : std::is_same_v<T, float>         ? "float"
                                            : "double";
}

// -- Times -----------------------------------------------------------------------------------

__global__ void SpinKernel(int64_t cycles) {
  const int64_t start = clock64();
  while (clock64() - start < cycles) {
  }
}
__global__ void ReadKernel(const uint4* p, int64_t n, uint32_t* sink) {
  uint32_t sum = 0;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * blockDim.x) {
    sum ^= p[i].x ^ p[i].w;
  }
  if (sum == 0x12345678) *sink = sum;
}
// The stream of the same bytes: two reads, one write.
__global__ void __launch_bounds__(512)
    StreamKernel(const uint4* a, const uint4* b, uint4* c, int64_t n) {
  const int64_t i = (blockIdx.x * int64_t{blockDim.x}) * 2 + threadIdx.x;
  uint4 u[2], v[2];
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    if (i + k * blockDim.x < n) u[k] = a[i + k * blockDim.x], v[k] = b[i + k * blockDim.x];
  }
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    if (i + k * blockDim.x >= n) continue;
    c[i + k * blockDim.x] = {u[k].x ^ v[k].x, u[k].y ^ v[k].y, u[k].z ^ v[k].z, u[k].w ^ v[k].w};
  }
}

struct Timer {
  Timer() : flush(256 << 20), sink(1) {
    CHECK(cudaMemset(flush.data, 1, flush.n));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
  }
  template <class F>
  double Once(F&& f) {
    ReadKernel<<<1024, 512>>>(reinterpret_cast<const uint4*>(flush.data), flush.n / 16, sink.data);
    SpinKernel<<<1, 1>>>(60000);
    CHECK(cudaEventRecord(begin));
    f();
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    return ms * 1e3;
  }
  Array<char> flush;
  Array<uint32_t> sink;
  cudaEvent_t begin, end;
};

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

template <class F>
int ForTypes(const std::string& dtype, const std::string& op, F&& f) {
  int result = 0;
  const auto ops = [&](auto tag) {
    if (op != "rms") result += f(tag, std::true_type{});
    if (op != "layer") result += f(tag, std::false_type{});
  };
  if (dtype.empty() || dtype == "half") ops(__half());
  if (dtype.empty() || dtype == "bfloat16") ops(__nv_bfloat16());
  if (dtype.empty() || dtype == "float") ops(float());
  if (dtype.empty() || dtype == "double") ops(double());
  return result;
}

}  // namespace
