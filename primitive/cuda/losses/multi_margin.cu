// SPDX-License-Identifier: Apache-2.0
//
// multi_margin: a warp or a block per row, which it reads once forward; backward it counts first
// and finds the row in the cache the second time.
#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/losses/multi_margin_launch.h"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {
namespace {

constexpr int64_t kLongRow = 1024;  // classes: a block per row from here on

template <class T>
struct MultiMarginRun {
  using C = ComputeType<T>;
  int64_t rows, classes;
  C margin;
  bool squared;
  const T* x;
  const int64_t* target;
  const T* dloss;
  T* y;

  // How far x is above the margin, 0 below; NaN stays.
  __device__ C Over(T v, C least) const {
    const C over = ConvertTo<C>(v) + least;
    return over <= C(0) ? C(0) : over;
  }
  __device__ C Term(C over) const { return squared ? over * over : over; }
  __device__ C Slope(C over) const { return over == C(0) ? C(0) : squared ? 2 * over : C(1); }
};

// f(j, pack) for packs of the row, shared out to the group, several asked for before the first is
// waited for; the last elements one by one.
template <class T, class Group, class F>
__device__ __forceinline__ void ForRow(const Group& group, const T* row, int64_t classes, F&& f) {
  constexpr int N = kPackSize<T>, K = 4;
  const int64_t whole = classes / N * N, step = int64_t{group.size()} * N;
  int64_t j = int64_t{group.rank()} * N;
  if (IsAlignedFor<uint4>(row)) {
    for (; j + (K - 1) * step < whole; j += K * step) {
      Pack<T, N> packs[K];
#pragma unroll
      for (int k = 0; k < K; ++k) packs[k] = LoadAlignedPack<N>(row + j + k * step);
#pragma unroll
      for (int k = 0; k < K; ++k) f(j + k * step, packs[k]);
    }
  }
#pragma unroll 2
  for (; j < whole; j += step) f(j, LoadPack<N>(row + j));
  for (j = whole + group.rank(); j < classes; j += group.size()) f(j, LoadPack<1>(row + j));
}

// Which of N elements is the target's, `ahead` of the first; -1: none.
template <int N>
__device__ __forceinline__ int OwnIn(int64_t ahead) {
  return ahead >= 0 && ahead < N ? static_cast<int>(ahead) : -1;
}

template <bool kBackward, class T, class Group>
__device__ __forceinline__ void MultiMarginRow(const MultiMarginRun<T>& run, int64_t r,
                                               Group& group) {
  using C = ComputeType<T>;
  const T* row = run.x + r * run.classes;
  const int64_t t = run.target[r];
  const bool inside = t >= 0 && t < run.classes;
  const C least = inside ? run.margin - ConvertTo<C>(row[t]) : C(NAN);
  C sum = 0;
  ForRow(group, row, run.classes, [&](int64_t j, const auto& pack) {
    constexpr int N = static_cast<int>(sizeof(pack) / sizeof(T));
    const int own = OwnIn<N>(t - j);
#pragma unroll
    for (int e = 0; e < N; ++e) {
      const C over = run.Over(pack.v[e], least);
      if (e != own) sum += kBackward ? run.Slope(over) : run.Term(over);
    }
  });
  sum = group.Reduce(sum, Plus{}, C(0));
  if constexpr (!kBackward) {
    if (group.rank() == 0) run.y[r] = ConvertTo<T>(sum / static_cast<C>(run.classes));
  } else {
    const C flow = ConvertTo<C>(run.dloss[r]) / static_cast<C>(run.classes);
    T* dx = run.y + r * run.classes;
    ForRow(group, row, run.classes, [&](int64_t j, const auto& pack) {
      constexpr int N = static_cast<int>(sizeof(pack) / sizeof(T));
      const int own = OwnIn<N>(t - j);
      Pack<T, N> slopes;
#pragma unroll
      for (int e = 0; e < N; ++e) {
        const C slope = e == own ? -sum : run.Slope(run.Over(pack.v[e], least));
        slopes.v[e] = ConvertTo<T>(slope * flow);
      }
      StorePack<N>(dx + j, slopes);
    });
  }
}

template <bool kBackward, class T>
__global__ void __launch_bounds__(kElementwiseThreads)
    MultiMarginKernel(const __grid_constant__ MultiMarginRun<T> run, bool long_rows) {
  __shared__ alignas(16) char scratch[Block::kScratchBytes];
  if (long_rows) {
    Block block(scratch);
    for (int64_t r = blockIdx.x; r < run.rows; r += gridDim.x) {
      MultiMarginRow<kBackward>(run, r, block);
    }
    return;
  }
  constexpr int kWarps = kElementwiseThreads / kWarp;
  LaneGroup<kWarp> lanes;
  for (int64_t r = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; r < run.rows;
       r += int64_t{gridDim.x} * kWarps) {
    MultiMarginRow<kBackward>(run, r, lanes);
  }
}

template <bool kBackward, class T>
cudaError_t LaunchMultiMargin(const MultiMarginProblem& p, cudaStream_t stream) {
  if (p.rows <= 0) return cudaSuccess;
  const MultiMarginRun<T> run{p.rows,
                              p.classes,
                              static_cast<ComputeType<T>>(p.margin),
                              p.squared,
                              static_cast<const T*>(p.x),
                              p.target,
                              static_cast<const T*>(p.dloss),
                              static_cast<T*>(p.y)};
  const bool long_rows = p.classes >= kLongRow;
  const int64_t blocks = long_rows ? p.rows : CeilDiv(p.rows, kElementwiseThreads / kWarp);
  return Launch(MultiMarginKernel<kBackward, T>, blocks, kElementwiseThreads, 0, stream, run,
                long_rows);
}

}  // namespace

MultiMarginLaunchers FindMultiMargin(DType dtype) {
  return VisitDeviceFloating<MultiMarginLaunchers>(dtype, [](auto tag) {
    using T = typename decltype(tag)::type;
    return MultiMarginLaunchers{&LaunchMultiMargin<false, T>, &LaunchMultiMargin<true, T>};
  });
}

}  // namespace cuda
}  // namespace oneflow_lite
