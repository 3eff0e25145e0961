// SPDX-License-Identifier: Apache-2.0
//
// The norms of many tensors: a block adds up one chunk, then a block per tensor its chunks' sums.
// The order of all additions is fixed, so that the same call gives the same bits.
#include "primitive/cuda/optimizers/launch.h"
#include "primitive/cuda/optimizers/multi_tensor.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// Sums of |x|^p, or maxima where p is infinite. Of two numbers a NaN stays.
struct NormTerms {
  double p;
  __device__ bool maximum() const { return p > 1e300; }
  template <class C>
  __device__ C Add(C sum, C x) const {
    x = x < C(0) ? -x : x;
    if (p == 2) return sum + x * x;
    if (p == 1) return sum + x;
    if (maximum()) return Join(sum, x);
    return sum + static_cast<C>(pow(static_cast<double>(x), p));
  }
  template <class C>
  __device__ C Join(C a, C b) const {
    if (!maximum()) return a + b;
    return a != a || a >= b ? a : b;
  }
  __device__ double Root(double sum) const {
    return p == 1 || maximum() ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
  }
};

// Over the block's threads; thread 0 has the result.
__device__ double JoinBlock(double x, const NormTerms& terms) {
  __shared__ double shared[kTensorThreads];
  shared[threadIdx.x] = x;
  for (int half = kTensorThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) {
      shared[threadIdx.x] = terms.Join(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
  }
  return shared[0];
}

template <class T>
struct NormChunk {
  using C = ComputeType<T>;
  static constexpr int N = kPackSize<T>;
  NormTerms terms;
  double* parts;

  __device__ void Run(const TensorTable<1>& table, int tensor, int64_t begin, int64_t end) const {
    const T* x = static_cast<const T*>(table.data[0][tensor]);
    C sum = C(0);
    for (int64_t i = begin + int64_t{threadIdx.x} * N; i < end; i += kTensorThreads * N) {
      if (i + N <= end) {
        const Pack<C, N> v = ConvertPack<C>(LoadPack<N>(x + i));
#pragma unroll
        for (int k = 0; k < N; ++k) sum = terms.Add(sum, v.v[k]);
      } else {
        for (int64_t j = i; j < end; ++j) {
          sum = terms.Add(sum, ConvertPack<C>(LoadPack<1>(x + j)).v[0]);
        }
      }
    }
    const double total = JoinBlock(static_cast<double>(sum), terms);
    if (threadIdx.x == 0) parts[blockIdx.x] = total;
  }
};

template <class C>
__global__ void __launch_bounds__(kTensorThreads)
    JoinChunksKernel(const __grid_constant__ TensorTable<1> table, NormTerms terms,
                     const double* parts, C* norms) {
  const int tensor = static_cast<int>(blockIdx.x);
  double sum = 0;
  const int end = table.first_chunk[tensor + 1];
  for (int i = table.first_chunk[tensor] + static_cast<int>(threadIdx.x); i < end;
       i += kTensorThreads) {
    sum = terms.Join(sum, parts[i]);
  }
  sum = JoinBlock(sum, terms);
  if (threadIdx.x == 0) norms[tensor] = static_cast<C>(terms.Root(sum));
}

int64_t ChunksOf(const NormedTensor* tensors, int64_t count) {
  int64_t chunks = 0;
  for (int64_t i = 0; i < count; ++i) {
    chunks += (tensors[i].numel + kChunkElements - 1) / kChunkElements;
  }
  return chunks;
}

template <class T>
cudaError_t LaunchNorms(double p, const NormedTensor* tensors, int64_t count, void* norms,
                        double* parts, cudaStream_t stream) {
  using C = ComputeType<T>;
  const NormTerms terms{p};
  TensorTable<1> table;
  for (int64_t i = 0; i < count; i += table.count) {
    table.count = 0;
    for (int64_t j = i; j < count && table.count < kMaxTensors; ++j) {
      const int k = table.count++;
      table.numel[k] = tensors[j].numel;
      table.data[0][k] = const_cast<void*>(tensors[j].data);
    }
    // Without a chunk ForTensors launches nothing and leaves the table's end open.
    for (int k = 0; k <= table.count; ++k) table.first_chunk[k] = 0;
    cudaError_t error = ForTensors(table, NormChunk<T>{terms, parts}, stream);
    if (error == cudaSuccess) {
      error = Launch(JoinChunksKernel<C>, table.count, kTensorThreads, 0, stream, table, terms,
                     static_cast<const double*>(parts), static_cast<C*>(norms) + i);
    }
    if (error != cudaSuccess) return error;
    parts += table.first_chunk[table.count];
  }
  return cudaSuccess;
}

}  // namespace

TensorNormsLaunchers FindTensorNorms(DType dtype) {
  return VisitDeviceFloating<TensorNormsLaunchers>(dtype, [](auto tag) -> TensorNormsLaunchers {
    return {&ChunksOf, &LaunchNorms<typename decltype(tag)::type>};
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
