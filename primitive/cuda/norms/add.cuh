// SPDX-License-Identifier: Apache-2.0
//
// The residual connection in front of a norm by itself, for rows that no kernel of both serves.
#pragma once

#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/norms/math.cuh"
#include "primitive/cuda/norms/policy.h"
#include "primitive/cuda/rows/io.cuh"

namespace oneflow_lite::cuda {

// sum = x + residual, a block per row, or per `chunk` columns of what is then a single row.
template <class T>
__global__ void __launch_bounds__(NormPolicy::kSumThreads)
    NormAddKernel(const __grid_constant__ NormForward<T> a, T* sum, int64_t chunk) {
  using C = ComputeType<T>;
  constexpr int N = kPackSize<T>;
  const int64_t chunks = (a.cols + chunk - 1) / chunk;
  for (int64_t item = blockIdx.x; item < a.rows * chunks; item += gridDim.x) {
    const int64_t row = item / chunks, first = item % chunks * chunk;
    const int64_t cols = a.cols - first < chunk ? a.cols - first : chunk;
    const T* x = a.x + row * a.x_stride + first;
    const T* residual = a.residual + row * a.cols + first;
    T* to = sum + row * a.cols + first;
    const RowSpan<N> span(ElementsToBoundary(to), cols);
    const auto add = [&](auto size, int64_t col) {
      constexpr int kSize = decltype(size)::value;
      auto v = ConvertPack<C>(LoadPack<kSize>(x + col));
      v += ConvertPack<C>(LoadPack<kSize>(residual + col));
      StorePack(to + col, ConvertPack<T>(v));
    };
    for (int64_t p = threadIdx.x; p < span.packs; p += blockDim.x) {
      add(std::integral_constant<int, N>{}, span.PackColumn(p));
    }
    const int extra = threadIdx.x;
    if (extra < span.extras()) add(std::integral_constant<int, 1>{}, span.Column(extra));
  }
}

namespace internal {

// sum = a.x + a.residual, dense. Rows that are dense in x too are added as one.
template <class T>
cudaError_t LaunchAdd(NormForward<T> a, T* sum, cudaStream_t stream) {
  int64_t chunk = a.cols;
  if (a.x_stride == a.cols) {
    a.cols *= a.rows;
    a.rows = 1;
    chunk = int64_t{NormPolicy::kSumThreads} * kPackSize<T>;
  }
  return Launch(NormAddKernel<T>, a.rows * CeilDiv(a.cols, chunk), NormPolicy::kSumThreads, 0,
                stream, a, sum, chunk);
}

}  // namespace internal
}  // namespace oneflow_lite::cuda
