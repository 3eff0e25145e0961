// SPDX-License-Identifier: Apache-2.0
//
// A block per row sums a stretch of one element per thread, and carries the total on to the next.
// CUB's scan over the device would share a row out among blocks, but in an order that changes from
// run to run, and with it the last bits of a sum of floats.
#include <cub/block/block_scan.cuh>

#include "primitive/cuda/elementwise.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kScanThreads = 512;

template <class T>
__global__ void __launch_bounds__(kScanThreads)
    CumSumKernel(int64_t rows, int64_t cols, bool reverse, const T* x, T* y) {
  using C = ComputeType<T>;
  using Scan = cub::BlockScan<C, kScanThreads>;
  __shared__ typename Scan::TempStorage storage;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* from = x + row * cols;
    T* to = y + row * cols;
    C carry = 0;
    for (int64_t start = 0; start < cols; start += kScanThreads) {
      const int64_t k = start + threadIdx.x;
      const int64_t i = reverse ? cols - 1 - k : k;
      C sum = k < cols ? ConvertTo<C>(from[i]) : C(0);
      C total;
      __syncthreads();  // the storage is free again
      Scan(storage).InclusiveSum(sum, sum, total);
      if (k < cols) to[i] = ConvertTo<T>(static_cast<C>(carry + sum));
      carry = static_cast<C>(carry + total);
    }
  }
}

template <class T>
cudaError_t LaunchCumSum(int64_t rows, int64_t cols, bool reverse, const void* x, void* y,
                         cudaStream_t stream) {
  if (rows <= 0 || cols <= 0) return cudaSuccess;
  return Launch(CumSumKernel<T>, rows, kScanThreads, 0, stream, rows, cols, reverse,
                static_cast<const T*>(x), static_cast<T*>(y));
}

}  // namespace

CumSumLauncher FindCumSum(DType dtype) {
  return VisitDeviceNumeric<CumSumLauncher>(dtype, [](auto tag) -> CumSumLauncher {
    return &LaunchCumSum<typename decltype(tag)::type>;
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
