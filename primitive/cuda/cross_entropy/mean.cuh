// SPDX-License-Identifier: Apache-2.0
//
// What makes one loss of the losses of all rows: one block each, meant for as many rows as it reads
// quickly.
#pragma once

#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/chip/pack.cuh"

namespace oneflow_lite {
namespace cuda {

namespace internal {

// The sum over rows of f(row) by the threads of a block; f is called for several rows at once, so
// that it is waited for once.
template <class S, class F>
__device__ __forceinline__ S SumOverRows(int64_t rows, Block& block, const F& f) {
  constexpr int kAtOnce = 8;
  S sum = 0;
  for (int64_t row = threadIdx.x; row < rows; row += kAtOnce * int64_t{blockDim.x}) {
    S some[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int64_t at = row + i * int64_t{blockDim.x};
      some[i] = at < rows ? f(at) : S(0);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) sum += some[i];
  }
  return block.Reduce(sum, Plus{}, S(0));
}

}  // namespace internal

// 1 over the number of targets that are not ignored.
template <class C>
__global__ void __launch_bounds__(kWarp* kMaxWarps)
    MeanWeightKernel(const int64_t* target, int64_t rows, int64_t ignore_index, C* weight) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  const auto counted = internal::SumOverRows<int64_t>(
      rows, block, [&](int64_t row) { return target[row] != ignore_index; });
  if (threadIdx.x == 0) *weight = C(1) / static_cast<C>(counted);
}
template <class C>
cudaError_t LaunchMeanWeight(const int64_t* target, int64_t rows, int64_t ignore_index, C* weight,
                             cudaStream_t stream) {
  return Launch(MeanWeightKernel<C>, 1, kWarp * kMaxWarps, 0, stream, target, rows, ignore_index,
                weight);
}

// *value = *weight times the sum of the losses; *weight as above, 1 where target is null.
template <class T, class C>
__global__ void __launch_bounds__(kWarp* kMaxWarps)
    ReduceLossKernel(const C* loss, const int64_t* target, int64_t rows, int64_t ignore_index,
                     T* value, C* weight) {
  __shared__ __align__(16) char scratch[Block::kScratchBytes];
  Block block(scratch);
  const C sum = internal::SumOverRows<C>(rows, block, [&](int64_t row) { return loss[row]; });
  C each = 1;
  if (target) {
    each /= static_cast<C>(internal::SumOverRows<int64_t>(
        rows, block, [&](int64_t row) { return target[row] != ignore_index; }));
  }
  if (threadIdx.x != 0) return;
  *value = ConvertTo<T>(sum * each);
  *weight = each;
}
template <class T, class C>
cudaError_t LaunchReduceLoss(const C* loss, const int64_t* target, int64_t rows,
                             int64_t ignore_index, T* value, C* weight, cudaStream_t stream) {
  return Launch(ReduceLossKernel<T, C>, 1, kWarp * kMaxWarps, 0, stream, loss, target, rows,
                ignore_index, value, weight);
}

}  // namespace cuda
}  // namespace oneflow_lite
