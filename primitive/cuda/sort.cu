// SPDX-License-Identifier: Apache-2.0
//
// CUB's stable merge sort of the elements' numbers, all rows in one go: by row, then by value. One
// instance for every dtype, because each compares as int64.
#include <cub/device/device_merge_sort.cuh>

#include "primitive/cuda/elementwise.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

// A number that orders as the float does: NaN is the largest, both zeros are one.
__device__ __forceinline__ int64_t KeyOf(double x) {
  if (x != x) return INT64_MAX;
  const int64_t bits = __double_as_longlong(x + 0.0);
  return bits < 0 ? bits ^ INT64_MAX : bits;
}

__device__ __forceinline__ int64_t KeyAt(DType dtype, const void* x, int64_t i) {
  switch (dtype) {
    case DType::kFloat16:
      return KeyOf(__half2float(static_cast<const __half*>(x)[i]));
    case DType::kBFloat16:
      return KeyOf(__bfloat162float(static_cast<const __nv_bfloat16*>(x)[i]));
    case DType::kFloat32:
      return KeyOf(static_cast<const float*>(x)[i]);
    case DType::kFloat64:
      return KeyOf(static_cast<const double*>(x)[i]);
    case DType::kInt8:
      return static_cast<const int8_t*>(x)[i];
    case DType::kInt16:
      return static_cast<const int16_t*>(x)[i];
    case DType::kInt32:
      return static_cast<const int32_t*>(x)[i];
    case DType::kInt64:
      return static_cast<const int64_t*>(x)[i];
    default:
      return static_cast<const uint8_t*>(x)[i];
  }
}

struct InOrder {
  DType dtype;
  bool descending;
  int64_t cols;
  const void* x;

  __device__ bool operator()(int64_t a, int64_t b) const {
    const int64_t row_a = a / cols, row_b = b / cols;
    if (row_a != row_b) return row_a < row_b;
    const int64_t u = KeyAt(dtype, x, a), v = KeyAt(dtype, x, b);
    return descending ? v < u : u < v;
  }
};

__global__ void __launch_bounds__(kElementwiseThreads) NumberKernel(int64_t n, int64_t* numbers) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) numbers[i] = i;
}

// From the elements' numbers in order to values and places within the row.
template <class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    PickKernel(int64_t n, int64_t cols, const T* x, T* values, int64_t* numbers) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    const int64_t from = numbers[i];
    values[i] = x[from];
    numbers[i] = from - from / cols * cols;
  }
}

template <class T>
cudaError_t LaunchPick(const SortProblem& p, void* values, int64_t* numbers, cudaStream_t stream) {
  const int64_t n = p.rows * p.cols;
  return Launch(PickKernel<T>, CeilDiv(n, kElementwiseThreads), kElementwiseThreads, 0, stream, n,
                p.cols, static_cast<const T*>(p.x), static_cast<T*>(values), numbers);
}

cudaError_t Pick(const SortProblem& p, void* values, int64_t* numbers, cudaStream_t stream) {
  switch (SizeOf(p.dtype)) {
    case 1:
      return LaunchPick<uint8_t>(p, values, numbers, stream);
    case 2:
      return LaunchPick<uint16_t>(p, values, numbers, stream);
    case 4:
      return LaunchPick<uint32_t>(p, values, numbers, stream);
    default:
      return LaunchPick<uint64_t>(p, values, numbers, stream);
  }
}

// A null workspace asks for its size.
cudaError_t SortNumbers(const SortProblem& p, void* workspace, size_t* bytes, int64_t* numbers,
                        cudaStream_t stream) {
  const InOrder in_order{p.dtype, p.descending, p.cols, p.x};
  return cub::DeviceMergeSort::StableSortKeys(workspace, *bytes, numbers, p.rows * p.cols, in_order,
                                              stream);
}

}  // namespace

cudaError_t SortWorkspaceBytes(const SortProblem& p, size_t* bytes) {
  *bytes = 0;
  return SortNumbers(p, nullptr, bytes, nullptr, nullptr);
}

cudaError_t LaunchSort(const SortProblem& p, void* workspace, size_t bytes, void* values,
                       int64_t* indices, cudaStream_t stream) {
  const int64_t n = p.rows * p.cols;
  if (n <= 0) return cudaSuccess;
  cudaError_t error = Launch(NumberKernel, CeilDiv(n, kElementwiseThreads), kElementwiseThreads, 0,
                             stream, n, indices);
  if (error == cudaSuccess) error = SortNumbers(p, workspace, &bytes, indices, stream);
  return error == cudaSuccess ? Pick(p, values, indices, stream) : error;
}

}  // namespace cuda
}  // namespace oneflow_lite
