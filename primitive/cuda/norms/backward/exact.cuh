// SPDX-License-Identifier: Apache-2.0
//
// The gradient of layer_norm's weight over few rows, where it is little more than one x_hat. That
// may lie so near 0 that nothing of it is left of a mean rounded to the compute type, nor of
// distances from it that are summed in it. So a row's centre is found in double here:
//
//   dweight[j] = sum over rows of dy * (x - mean - r) * rstd,   r = mean over columns of x - mean
//
// Each block of columns sums the rows itself; of rows too wide for that, a kernel before it sums
// chunks.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/norms/math.cuh"
#include "primitive/cuda/norms/plan.h"

namespace oneflow_lite {
namespace cuda {

struct NormExactPolicy {
  static constexpr int kMostRows = 4;
  static constexpr int kThreads = 256;          // of a block; each has one column
  static constexpr int64_t kOwnColumns = 2048;  // that each block sums itself, at most
  static constexpr int64_t kChunk = 2048;       // columns of a chunk, unless there were too many
  static constexpr int kMostChunks = 1024;      // of a row
};

// Parts of a row's sum that a kernel leaves beforehand; 0: blocks sum the rows themselves.
inline int ExactChunks(int64_t cols) {
  using P = NormExactPolicy;
  if (cols <= P::kOwnColumns) return 0;
  const int64_t chunks = CeilDiv(cols, P::kChunk);
  return static_cast<int>(chunks < P::kMostChunks ? chunks : P::kMostChunks);
}

// Of every row: its part of the sum of x - mean over columns [begin, end).
using NormDistances = SumOf<double, NormExactPolicy::kMostRows>;
template <class T>
__device__ __forceinline__ NormDistances SumDistances(const NormBackward<T>& a, int64_t begin,
                                                      int64_t end) {
  constexpr int kRows = NormExactPolicy::kMostRows;
  double mean[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) mean[r] = r < a.rows ? static_cast<double>(a.mean[r]) : 0;
  NormDistances sums;
#pragma unroll 4  // of latency, not of bytes, there is much
  for (int64_t col = begin + threadIdx.x; col < end; col += blockDim.x) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= a.rows) continue;
      sums.v[r] += static_cast<double>(a.x[r * a.x_stride + col]) - mean[r];
    }
  }
  return sums;
}

// parts[chunks]: a block each.
template <class T>
__global__ void __launch_bounds__(NormExactPolicy::kThreads)
    NormDistancesKernel(const __grid_constant__ NormBackward<T> a, NormDistances* parts) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  const int64_t chunk = blockIdx.x, chunks = gridDim.x;
  const NormDistances mine =
      SumDistances(a, a.cols * chunk / chunks, a.cols * (chunk + 1) / chunks);
  const NormDistances sums = block.Reduce(mine, Plus{}, NormDistances{});
  if (threadIdx.x == 0) parts[chunk] = sums;
}

// chunks: of parts; 0: there are none, and each block sums the rows.
template <class T>
__global__ void __launch_bounds__(NormExactPolicy::kThreads)
    NormExactKernel(const __grid_constant__ NormBackward<T> a, int chunks,
                    const NormDistances* parts) {
  constexpr int kRows = NormExactPolicy::kMostRows;
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  WaitForPreviousKernel();
  NormDistances sums;
  if (chunks == 0) sums = SumDistances(a, 0, a.cols);
#pragma unroll 1
  for (int i = threadIdx.x; i < chunks; i += blockDim.x) sums = sums + parts[i];
  sums = block.Reduce(sums, Plus{}, NormDistances{});
  const int64_t col = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col >= a.cols) return;
  double gradient = 0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r >= a.rows) continue;
    const double v = static_cast<double>(a.x[r * a.x_stride + col]) - a.mean[r];
    const double x_hat = (v - sums.v[r] / static_cast<double>(a.cols)) * a.rstd[r];
    gradient += static_cast<double>(a.dy[r * a.cols + col]) * x_hat;
  }
  StoreWeightGradient<T>(a.dweight, a.float_weight, col, static_cast<ComputeType<T>>(gradient));
}

namespace internal {

// Whether the gradient of the weight is found that way.
template <bool kCentre, class T>
bool WantsExact(const NormBackward<T>& a) {
  return kRecentre<T, kCentre> && a.dweight && !a.from_output &&
         a.rows <= NormExactPolicy::kMostRows;
}

template <class T, bool kCentre>
int64_t ExactWorkspaceBytes(int64_t rows, int64_t cols) {
  if (!kRecentre<T, kCentre> || rows > NormExactPolicy::kMostRows) return 0;
  return ExactChunks(cols) * static_cast<int64_t>(sizeof(NormDistances));
}

// a.dweight alone. It only reads what other kernels read, and leaves nothing in the workspace that
// is needed afterwards: it goes before them, because dx may be dy.
template <bool kCentre, class T>
cudaError_t LaunchExact(const NormBackward<T>& a, const DeviceLimits& limits, cudaStream_t stream,
                        void* workspace) {
  if constexpr (kRecentre<T, kCentre>) {
    using P = NormExactPolicy;
    const int chunks = ExactChunks(a.cols);
    auto* const parts = static_cast<NormDistances*>(workspace);
    const int64_t blocks = CeilDiv(a.cols, P::kThreads);
    if (chunks == 0) {
      return Launch(NormExactKernel<T>, blocks, P::kThreads, 0, stream, a, chunks, parts);
    }
    const cudaError_t error =
        Launch(NormDistancesKernel<T>, chunks, P::kThreads, 0, stream, a, parts);
    if (error != cudaSuccess) return error;
    return LaunchAfter(limits, NormExactKernel<T>, dim3(static_cast<unsigned>(blocks)), P::kThreads,
                       stream, a, chunks, parts);
  }
  return cudaErrorInvalidValue;
}

}  // namespace internal
}  // namespace cuda
}  // namespace oneflow_lite
