// SPDX-License-Identifier: Apache-2.0
//
// CUB's stable merge sort of numbers, which compares what they stand for: rows of a matrix, element
// by element, or the elements of rows too long for a radix sort.
#include <cub/device/device_merge_sort.cuh>

#include "primitive/cuda/sort/ordered_rows.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 256;

struct InOrder {
  KeyRows in;
  bool rows;  // the numbers are of rows, not of elements

  __device__ uint64_t Key(int64_t i) const { return KeyAt<uint64_t>(in.code, in.x, i); }
  __device__ bool operator()(int64_t a, int64_t b) const {
    if (!rows) {
      const int64_t row_a = a / in.cols, row_b = b / in.cols;
      return row_a != row_b ? row_a < row_b : Key(a) < Key(b);
    }
    for (int64_t i = 0; i < in.cols; ++i) {
      const uint64_t u = Key(a * in.cols + i), v = Key(b * in.cols + i);
      if (u != v) return u < v;
    }
    return false;
  }
};

__global__ void __launch_bounds__(kThreads) NumberKernel(int64_t n, int64_t* numbers) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) numbers[i] = i;
}

// From the elements' numbers in order to values and places within the row.
__global__ void __launch_bounds__(kThreads)
    PlaceKernel(KeyRows in, void* values, int64_t* numbers) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, n = in.rows * in.cols;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    const int64_t from = numbers[i];
    CopyElement(in.code.bits, in.x, from, values, i);
    numbers[i] = from - from / in.cols * in.cols;
  }
}

// A null workspace asks for its size.
cudaError_t SortNumbers(const KeyRows& in, bool rows, void* workspace, size_t* bytes,
                        int64_t* numbers, cudaStream_t stream) {
  const int64_t n = rows ? in.rows : in.rows * in.cols;
  if (workspace) {
    const cudaError_t error =
        Launch(NumberKernel, (n + kThreads - 1) / kThreads, kThreads, 0, stream, n, numbers);
    if (error != cudaSuccess) return error;
  }
  return cub::DeviceMergeSort::StableSortKeys(workspace, *bytes, numbers, n, InOrder{in, rows},
                                              stream);
}

}  // namespace

cudaError_t SortRowsBytes(const KeyRows& keys, size_t* bytes) {
  *bytes = 0;
  return SortNumbers(keys, true, nullptr, bytes, nullptr, nullptr);
}

cudaError_t LaunchSortRows(const KeyRows& keys, void* workspace, size_t bytes, int64_t* order,
                           cudaStream_t stream) {
  return SortNumbers(keys, true, workspace, &bytes, order, stream);
}

cudaError_t LongestSortBytes(const KeyRows& keys, size_t* bytes) {
  *bytes = 0;
  return SortNumbers(keys, false, nullptr, bytes, nullptr, nullptr);
}

cudaError_t LaunchLongestSort(const KeyRows& keys, void* workspace, size_t bytes, void* values,
                              int64_t* places, cudaStream_t stream) {
  const cudaError_t error = SortNumbers(keys, false, workspace, &bytes, places, stream);
  if (error != cudaSuccess) return error;
  const int64_t n = keys.rows * keys.cols;
  return Launch(PlaceKernel, (n + kThreads - 1) / kThreads, kThreads, 0, stream, keys, values,
                places);
}

}  // namespace cuda
}  // namespace oneflow_lite
