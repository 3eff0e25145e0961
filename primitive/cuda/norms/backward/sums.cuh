// SPDX-License-Identifier: Apache-2.0
//
// The small kernels beside the norms' backward, the last step of the gradients of weight and bias:
// parts are added up, or what norms/backward/few.cuh left is corrected.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/chip/launch.cuh"
#include "primitive/cuda/norms/math.cuh"
#include "primitive/cuda/norms/policy.h"

namespace oneflow_lite::cuda {

// dweight and dbias from parts[units][kinds] (of any grid), added up in a fixed order.
// blockIdx.y: which. A pack has `vectors` of 16 bytes of C; 1 where columns are in their order.
// kWays: of a block's threads with the same columns.
template <class Weight, class C, int kWays>
__global__ void __launch_bounds__(NormPolicy::kReduceLanes* kWays)
    NormReducePartsKernel(const C* parts, int units, int64_t cols, int vectors, Weight* dweight,
                          Weight* dbias) {
  using P = NormPolicy;
  constexpr int N = kPackSize<C>, kLanes = P::kReduceLanes;
  constexpr int kColumns = kLanes * N;
  __shared__ C slots[kWays][kColumns];
  WaitForPreviousKernel();
  Weight* gradient = blockIdx.y == 0 ? dweight : dbias;
  if (!gradient) return;
  const int lane = threadIdx.x % kLanes, way = threadIdx.x / kLanes;
  const int64_t pitch = PartPitch<C>(cols), stride = int64_t{gridDim.y} * pitch;
  const int64_t first = int64_t{blockIdx.x} * kColumns + lane * N;
  const C* part = parts + blockIdx.y * pitch + first + way * stride;
  Pack<C, N> sum = {};
  if (first + N <= cols) {
#pragma unroll 1
    for (int unit = way; unit < units; unit += P::kReduceUnroll * kWays) {
      Pack<C, N> more[P::kReduceUnroll];
      Unroll<P::kReduceUnroll>([&](int u) {
        more[u] = Pack<C, N>{};
        if (unit + u * kWays < units) more[u] = LoadAlignedPack<N>(part + u * kWays * stride);
      });
      Unroll<P::kReduceUnroll>([&](int u) { sum += more[u]; });
      part += P::kReduceUnroll * kWays * stride;
    }
  } else if (first < cols) {  // what is left of the last 16 bytes
#pragma unroll 1
    for (int unit = way; unit < units; unit += kWays, part += kWays * stride) {
      Unroll<N>([&](int i) { sum.v[i] += first + i < cols ? part[i] : C(0); });
    }
  }
  Unroll<N>([&](int i) { slots[way][lane * N + i] = sum.v[i]; });
  __syncthreads();
  const int64_t place = int64_t{blockIdx.x} * kColumns + threadIdx.x;
  if (threadIdx.x >= kColumns || place >= cols) return;
  C totals[4] = {};  // side by side: one sum would wait for each addition in turn
  Unroll<kWays>([&](int w) { totals[w % 4] += slots[w][threadIdx.x]; });
  const C total = (totals[0] + totals[1]) + (totals[2] + totals[3]);
  const int64_t vector = place / N;
  int64_t col = place;
  if (vectors > 1) {
    const int64_t packs = pitch / (N * vectors);
    col = (vector % packs * vectors + vector / packs) * N + place % N;
  }
  gradient[col] = ConvertTo<Weight>(total);
}

// dweight less sum over rows of dy * residual.
template <class T>
__global__ void __launch_bounds__(NormPolicy::kCorrectColumns* NormPolicy::kCorrectWays)
    NormFewCorrectKernel(const __grid_constant__ NormBackward<T> a,
                         const ComputeType<T>* residual) {
  using C = ComputeType<T>;
  using P = NormPolicy;
  constexpr C negligible = sizeof(C) == 8 ? C(2e-15) : C(1e-6);  // beside x_hat
  __shared__ C slots[P::kCorrectWays][P::kCorrectColumns];
  WaitForPreviousKernel();
  constexpr int kAtOnce = 4;  // one after another, each load would take as long as all of them
  bool needed = false;
#pragma unroll 1
  for (int64_t row = threadIdx.x; row < a.rows; row += kAtOnce * blockDim.x) {
    C r[kAtOnce];
    Unroll<kAtOnce>([&](int i) {
      r[i] = row + i * blockDim.x < a.rows ? residual[row + i * blockDim.x] : C(0);
    });
    Unroll(r, [&](const C one) { needed |= !(one <= negligible && one >= -negligible); });
  }
  if (!__syncthreads_or(needed)) return;
  const int lane = threadIdx.x % P::kCorrectColumns, way = threadIdx.x / P::kCorrectColumns;
  const int64_t col = int64_t{blockIdx.x} * P::kCorrectColumns + lane;
  C sum = 0;
  if (col < a.cols) {
#pragma unroll 8
    for (int64_t row = way; row < a.rows; row += P::kCorrectWays) {
      sum += ConvertTo<C>(a.dy[row * a.cols + col]) * residual[row];
    }
  }
  slots[way][lane] = sum;
  __syncthreads();
  if (way != 0 || col >= a.cols) return;
#pragma unroll
  for (int w = 1; w < P::kCorrectWays; ++w) sum += slots[w][lane];
  const C before = a.float_weight ? static_cast<C>(static_cast<const float*>(a.dweight)[col])
                                  : ConvertTo<C>(static_cast<const T*>(a.dweight)[col]);
  StoreWeightGradient<T>(a.dweight, a.float_weight, col, before - sum);
}

// The gradient of layer_norm's weight over few rows, where it is little more than one x_hat. That
// may lie so near 0 that nothing of it is left of a mean rounded to the compute type, nor of
// distances from it that are summed in it. So a row's centre is found in double here:
//
//   dweight[j] = sum over rows of dy * (x - mean - r) * rstd,   r = mean over columns of x - mean
//
// Each block of columns sums the rows itself; of rows too wide for that, a kernel before it sums
// chunks.

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
  return static_cast<int>(Min(CeilDiv(cols, P::kChunk), P::kMostChunks));
}

// Of every row: its part of the sum of x - mean over columns [begin, end).
using NormDistances = SumOf<double, NormExactPolicy::kMostRows>;
template <class T>
OFL_DEVICE NormDistances SumDistances(const NormBackward<T>& a, int64_t begin, int64_t end) {
  constexpr int kRows = NormExactPolicy::kMostRows;
  double mean[kRows];
  Unroll<kRows>([&](int r) { mean[r] = r < a.rows ? static_cast<double>(a.mean[r]) : 0; });
  NormDistances sums;
#pragma unroll 4  // of latency, not of bytes, there is much
  for (int64_t col = begin + threadIdx.x; col < end; col += blockDim.x) {
    Unroll<kRows>([&](int r) {
      if (r >= a.rows) return;
      sums.v[r] += static_cast<double>(a.x[r * a.x_stride + col]) - mean[r];
    });
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
  Unroll<kRows>([&](int r) {
    if (r >= a.rows) return;
    const double v = static_cast<double>(a.x[r * a.x_stride + col]) - a.mean[r];
    const double x_hat = (v - sums.v[r] / static_cast<double>(a.cols)) * a.rstd[r];
    gradient += static_cast<double>(a.dy[r * a.cols + col]) * x_hat;
  });
  StoreWeightGradient<T>(a.dweight, a.float_weight, col, static_cast<ComputeType<T>>(gradient));
}

namespace internal {

// dweight and dbias of so many parts, whose packs have `vectors`.
template <bool kCentre, class T>
cudaError_t ReduceParts(const NormBackward<T>& a, const void* parts, int64_t units, int vectors,
                        const LaunchSite& site) {
  using C = ComputeType<T>;
  using P = NormPolicy;
  if (!a.dweight && !a.dbias) return cudaSuccess;
  const dim3 blocks(static_cast<unsigned>(CeilDiv(a.cols, P::kReduceLanes * kPackSize<C>)),
                    static_cast<unsigned>(kNormKinds<kCentre>));
  return VisitBool(a.float_weight, [&](auto of_float) {
    using Weight = std::conditional_t<decltype(of_float)::value, float, T>;
    const auto launch = [&](auto ways) {
      constexpr int kWays = decltype(ways)::value;
      return LaunchAfter(site, NormReducePartsKernel<Weight, C, kWays>, blocks,
                         P::kReduceLanes * kWays, static_cast<const C*>(parts),
                         static_cast<int>(units), a.cols, vectors, static_cast<Weight*>(a.dweight),
                         static_cast<Weight*>(a.dbias));
    };
    // Of few parts, as those of wide rows are, most ways would have nothing.
    const bool few = units <= P::kReduceUnroll * P::kFewReduceWays;
    return VisitNumber<P::kFewReduceWays, P::kReduceWays>(few ? P::kFewReduceWays : P::kReduceWays,
                                                          launch);
  });
}

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
cudaError_t LaunchExact(const NormBackward<T>& a, const LaunchSite& site) {
  if constexpr (kRecentre<T, kCentre>) {
    using P = NormExactPolicy;
    const int chunks = ExactChunks(a.cols);
    auto* const parts = static_cast<NormDistances*>(site.workspace);
    const int64_t blocks = CeilDiv(a.cols, P::kThreads);
    if (chunks == 0) {
      return Launch(NormExactKernel<T>, blocks, P::kThreads, 0, site.stream, a, chunks, parts);
    }
    const cudaError_t error =
        Launch(NormDistancesKernel<T>, chunks, P::kThreads, 0, site.stream, a, parts);
    if (error != cudaSuccess) return error;
    return LaunchAfter(site, NormExactKernel<T>, dim3(static_cast<unsigned>(blocks)), P::kThreads,
                       a, chunks, parts);
  }
  return cudaErrorInvalidValue;
}

}  // namespace internal
}  // namespace oneflow_lite::cuda
