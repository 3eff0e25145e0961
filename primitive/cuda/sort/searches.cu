// SPDX-License-Identifier: Apache-2.0
//
// Searches by halves, a thread for each element; and the longest run of each sorted row, a block
// for each row.
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "primitive/cuda/sort/ordered_rows.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) SearchKernel(SearchRun run) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, per_row = run.numel / run.rows;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < run.numel; i += step) {
    const int64_t start = run.rows == 1 ? 0 : i / per_row * run.cols;
    const uint64_t key = KeyAt<uint64_t>(run.code, run.x, i);
    int64_t low = 0, high = run.cols;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      const uint64_t other = KeyAt<uint64_t>(run.code, run.sorted, start + middle);
      if (other < key || (run.right && other == key)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (run.out_int32) {
      static_cast<int32_t*>(run.places)[i] = static_cast<int32_t>(low);
    } else {
      static_cast<int64_t*>(run.places)[i] = low;
    }
  }
}

struct Larger {
  __device__ long long operator()(long long a, long long b) const { return a > b ? a : b; }
};

// A run and where it ends; the longer one wins, of two the first.
struct Run {
  long long length, end;
};
struct Longer {
  __device__ Run operator()(const Run& a, const Run& b) const {
    return b.length > a.length || (b.length == a.length && b.end < a.end) ? b : a;
  }
};

__global__ void __launch_bounds__(kThreads) LongestRunKernel(KeyRows in, int64_t* places) {
  using Scan = cub::BlockScan<long long, kThreads>;
  using Reduce = cub::BlockReduce<Run, kThreads>;
  __shared__ union {
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce;
  } memory;
  for (int64_t row = blockIdx.x; row < in.rows; row += gridDim.x) {
    const int64_t start = row * in.cols;
    Run longest{0, in.cols};
    long long begun = 0;  // where the run began that reaches into the tile
    for (int64_t tile = 0; tile < in.cols; tile += kThreads) {
      const int64_t i = tile + threadIdx.x;
      long long begins = 0, mine, last;
      if (i > 0 && i < in.cols) {
        const uint64_t key = KeyAt<uint64_t>(in.code, in.x, start + i);
        if (key != KeyAt<uint64_t>(in.code, in.x, start + i - 1)) begins = i;
      }
      Scan(memory.scan).InclusiveScan(begins, mine, Larger(), last);
      __syncthreads();
      mine = mine > begun ? mine : begun;
      begun = last > begun ? last : begun;
      if (i < in.cols && i - mine + 1 > longest.length) longest = {i - mine + 1, i};
    }
    longest = Reduce(memory.reduce).Reduce(longest, Longer());
    if (threadIdx.x == 0) places[row] = longest.end;
    __syncthreads();
  }
}

}  // namespace

cudaError_t LaunchSearch(const SearchRun& run, cudaStream_t stream) {
  if (run.numel <= 0) return cudaSuccess;
  return Launch(SearchKernel, (run.numel + kThreads - 1) / kThreads, kThreads, 0, stream, run);
}

cudaError_t LaunchLongestRun(const KeyRows& sorted, int64_t* places, cudaStream_t stream) {
  if (sorted.rows <= 0) return cudaSuccess;
  return Launch(LongestRunKernel, sorted.rows, kThreads, 0, stream, sorted, places);
}

}  // namespace cuda
}  // namespace oneflow_lite
