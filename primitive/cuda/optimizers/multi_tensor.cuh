// SPDX-License-Identifier: Apache-2.0
//
// One launch over many tensors: their addresses travel as a kernel argument, and each block works
// on one chunk of one tensor.
//
//   struct Scale { float by; __device__ void Run(const TensorTable<1>& t, int i, int64_t begin,
//                                                int64_t end) const; };
//   TensorTable<1> table;  // data[0][i], numel[i], count
//   return ForTensors(table, Scale{2}, stream);
#pragma once

#include "primitive/cuda/chip/launch.cuh"

namespace oneflow_lite {
namespace cuda {

inline constexpr int kChunkElements = 16384;
inline constexpr int kTensorThreads = 256;
// So that a table of seven lists stays below the 32,764 bytes that a kernel's arguments may have.
inline constexpr int kMaxTensors = 448;

template <int kLists>
struct TensorTable {
  int count = 0;
  int first_chunk[kMaxTensors + 1];  // the block that begins tensor i; filled by ForTensors
  int64_t numel[kMaxTensors];
  void* data[kLists][kMaxTensors];  // data[l][i]: tensor i of list l
};

// F::Run(table, tensor, begin, end) handles the elements [begin, end) of a tensor, with a block.
template <int kLists, class F>
__global__ void __launch_bounds__(kTensorThreads)
    TensorsKernel(const __grid_constant__ TensorTable<kLists> table, const __grid_constant__ F f) {
  const int block = static_cast<int>(blockIdx.x);
  int low = 0, high = table.count;  // the last tensor whose first chunk is not behind this block
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (table.first_chunk[middle] <= block ? low : high) = middle;
  }
  const int64_t begin = int64_t{block - table.first_chunk[low]} * kChunkElements;
  const int64_t rest = table.numel[low] - begin;
  f.Run(table, low, begin, begin + (rest < kChunkElements ? rest : kChunkElements));
}

// Precondition: count is at most kMaxTensors. Empty tensors have no block.
template <int kLists, class F>
cudaError_t ForTensors(TensorTable<kLists>& table, const F& f, cudaStream_t stream) {
  int64_t chunks = 0;
  for (int i = 0; i < table.count; ++i) {
    table.first_chunk[i] = static_cast<int>(chunks);
    chunks += (table.numel[i] + kChunkElements - 1) / kChunkElements;
  }
  if (chunks == 0) return cudaSuccess;
  if (chunks > kMaxBlocks) return cudaErrorInvalidValue;
  table.first_chunk[table.count] = static_cast<int>(chunks);
  return Launch(TensorsKernel<kLists, F>, chunks, kTensorThreads, 0, stream, table, f);
}

}  // namespace cuda
}  // namespace oneflow_lite
