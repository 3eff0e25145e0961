// SPDX-License-Identifier: Apache-2.0
//
// A thread finds the place of one element: it counts those of the row that come before it, which
// pass by in tiles of shared memory. No order of threads has a say in the result.
#include "primitive/cuda/elementwise.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kSortThreads = 256;

// Whether a comes before b; NaN after everything else.
template <class C>
__device__ __forceinline__ bool Before(C a, C b) {
  return a < b || (b != b && a == a);
}

template <class T>
__global__ void __launch_bounds__(kSortThreads)
    SortKernel(int64_t rows, int64_t cols, int64_t tiles, bool descending, const T* x, T* values,
               int64_t* indices) {
  using C = ComputeType<T>;
  __shared__ C tile[kSortThreads];
  for (int64_t work = blockIdx.x; work < rows * tiles; work += gridDim.x) {
    const int64_t row = work / tiles;
    const int64_t own = (work - row * tiles) * kSortThreads + threadIdx.x;
    const T* from = x + row * cols;
    const C mine = own < cols ? ConvertTo<C>(from[own]) : C(0);
    int64_t before = 0;
    for (int64_t start = 0; start < cols; start += kSortThreads) {
      const int64_t i = start + threadIdx.x;
      __syncthreads();
      tile[threadIdx.x] = i < cols ? ConvertTo<C>(from[i]) : C(0);
      __syncthreads();
      const int count = static_cast<int>(cols - start < kSortThreads ? cols - start : kSortThreads);
      for (int k = 0; k < count; ++k) {
        const C other = tile[k];
        const bool less = descending ? Before(mine, other) : Before(other, mine);
        const bool more = descending ? Before(other, mine) : Before(mine, other);
        before += less || (!more && start + k < own);
      }
    }
    if (own < cols) {
      values[row * cols + before] = from[own];
      indices[row * cols + before] = own;
    }
  }
}

template <class T>
cudaError_t LaunchSort(int64_t rows, int64_t cols, bool descending, const void* x, void* values,
                       int64_t* indices, cudaStream_t stream) {
  if (rows <= 0 || cols <= 0) return cudaSuccess;
  const int64_t tiles = CeilDiv(cols, kSortThreads);
  return Launch(SortKernel<T>, rows * tiles, kSortThreads, 0, stream, rows, cols, tiles, descending,
                static_cast<const T*>(x), static_cast<T*>(values), indices);
}

}  // namespace

SortLauncher FindSort(DType dtype) {
  return VisitDeviceAll<SortLauncher>(
      dtype, [](auto tag) -> SortLauncher { return &LaunchSort<typename decltype(tag)::type>; });
}

}  // namespace cuda
}  // namespace oneflow_lite
